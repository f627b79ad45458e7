"""What the checks before a start say of a model's chat template and of its stops."""

import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf
from random_model import FAMILIES, build_tokenizer
from transformers import AutoConfig, GenerationConfig

from recipe.hint.adapter.chat_template import Renderer
from recipe.hint.adapter.preflight import inputs
from recipe.hint.adapter.preflight.inputs import check_conversations
from recipe.hint.adapter.preflight.inputs import load_model as read_model
from recipe.hint.prompt import Texts
from recipe.hint.settings import build_method, settings_of
from recipe.problems.columns import make_row, write_rows
from recipe.run.errors import ConfigError

pytestmark = pytest.mark.slow  # real vocabularies of up to 262,144 tokens


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder per family with everything but the weights."""
    made = {}

    def folder(name, stops=None):
        if (name, stops) not in made:
            family, place = FAMILIES[name], tmp_path_factory.mktemp(name)
            build_tokenizer(family).save_pretrained(place)
            AutoConfig.for_model(family.model_type, vocab_size=16).save_pretrained(place)
            ids = stops or tuple(family.special[each] for each in family.stops)
            GenerationConfig(eos_token_id=list(ids)).save_pretrained(place)
            made[name, stops] = place
        return made[name, stops]

    return folder


@pytest.fixture
def load(composed, folders):
    def load(name, *overrides, stops=None):
        path = f"actor_rollout_ref.model.path={folders(name, stops)}"
        config = composed("hardware=laptop", path, *overrides)
        OmegaConf.resolve(config)
        return config, read_model(config, has_weights=False)

    return load


def test_a_template_that_writes_the_date_is_said_to_until_the_date_is_fixed(load):
    [warning] = load("llama32")[1].warnings
    assert "today's date into every prompt" in warning
    option = warning.split(" with ")[1]
    assert option == "+data.apply_chat_template_kwargs.date_string='26 Jul 2024'"
    model = load("llama32", option)[1]
    assert model.warnings == ()
    text = model.renderer.tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False, **model.renderer.options
    )
    assert "Today Date: 26 Jul 2024" in text


def test_a_response_that_vllm_would_not_stop_is_said_with_the_token_to_add(load):
    _, model = load("gemma3", stops=(1,))
    [warning] = model.warnings
    assert "'<end_of_turn>', at which vLLM does not stop" in warning
    assert "add 106 to eos_token_id in" in warning


def test_a_refused_system_turn_is_folded_in_every_count_and_said_once(load):
    config, model = load("gemma2")
    [warning] = model.warnings
    assert "refuses a system turn" in warning
    turns = [{"role": "system", "content": "Box it."}, {"role": "user", "content": "1+1?"}]
    folded = [{"role": "user", "content": "Box it.\n\n1+1?"}]
    assert model.count_tokens([turns]) == model.count_tokens([folded])
    model.check_template(turns)


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_counted_as_they_are_sampled_from(load, family):
    _, model = load(family)
    for name in model.renderer.tokenizer.all_special_tokens:
        turns = [{"role": "user", "content": f"What is {name} for? {name}{name}"}]
        renderer = Renderer(model.renderer.tokenizer, 1024)
        assert model.count_tokens([turns, turns]) == [len(renderer.render(turns))] * 2


def test_verls_filter_that_would_drop_such_rows_without_a_word_is_refused(load, tmp_path):
    path = tmp_path / "rows.parquet"
    write_rows([make_row("1+1?", "2", solution="Count.", row_id="a")], str(path))
    [row] = pq.read_table(path).to_pylist()
    assert [turn["role"] for turn in row["prompt"]] == ["system", "user"]
    config, model = load("gemma2", "data.filter_overlong_prompts=true", f"data.val_files={path}")
    val = inputs.read_files(config, "data.val_files")
    with pytest.raises(ConfigError, match="would drop every row with a system turn"):
        inputs.check_lengths(config, model, val=val)


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_prompt_that_verls_filter_drops_needs_no_room_for_its_later_turns(
    load, tmp_path, is_dropped
):
    """Of one row of 9 words and one of 3,000; a prompt may have 64 tokens, a later one 1,500."""
    path = tmp_path / "rows.parquet"
    texts = ("What is one and one, as a number?", "and " * 3000)
    rows = [make_row(text, "2", solution="Count.", row_id=text[:8]) for text in texts]
    write_rows(rows, str(path))
    given = ["trainer.method=score", f"data.val_files={path}", "data.max_prompt_length=128"]
    given.append(f"data.filter_overlong_prompts={is_dropped}")
    config, model = load("qwen25", *given)
    config.actor_rollout_ref.rollout.prompt_length = 1500
    files = inputs.read_files(config, "data.val_files")
    settings = settings_of(config)
    method = build_method(config.trainer, settings)
    if is_dropped:
        check_conversations(config, method, model, Texts(), files)
        return
    with pytest.raises(ConfigError, match=r"prompt_length=1500 does not hold every turn"):
        check_conversations(config, method, model, Texts(), files)
