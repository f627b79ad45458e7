"""What the checks before a start say of a model's chat template and of its stops."""

import shutil
from functools import partial
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf
from random_model import FAMILIES, build_tokenizer
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from recipe.hint.adapter.chat_template import Renderer
from recipe.hint.adapter.preflight import inputs
from recipe.hint.adapter.preflight.inputs import Lengths
from recipe.hint.adapter.preflight.inputs import load_model as read_model
from recipe.hint.settings import build_method, settings_of
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


def test_a_response_that_vllm_would_not_stop_is_said_with_the_token_to_add(load):
    _, model = load("gemma3", stops=(1,))
    [warning] = model.warnings
    assert "'<end_of_turn>', at which vLLM does not stop" in warning
    assert "add 106 to eos_token_id in" in warning


def test_an_end_token_that_begins_a_turn_is_refused_with_the_one_that_ends_it(
    composed, folders, tmp_path
):
    broken = shutil.copytree(folders("qwen25"), tmp_path / "broken")
    tokenizer = AutoTokenizer.from_pretrained(broken)
    tokenizer.eos_token = "<|im_start|>"  # as transformers reads SmolLM2's GGUF file
    tokenizer.save_pretrained(broken)
    config = composed("hardware=laptop", f"actor_rollout_ref.model.path={broken}")
    with pytest.raises(ConfigError, match=r"eos token '<\|im_start\|>'.* '<\|im_end\|>'"):
        read_model(config, has_weights=False)


def test_a_refused_system_turn_is_folded_in_every_count(load):
    _, model = load("gemma2")
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


@pytest.mark.parametrize(("prompt_length", "is_refused"), [(111, True), (112, False)])
def test_the_longest_prompt_that_is_not_dropped_needs_room_for_a_second_turn(
    load, prompt_length, is_refused
):
    given = [f"actor_rollout_ref.rollout.prompt_length={prompt_length}", "trainer.method=score"]
    config, model = load("qwen25", *given, "data.max_response_length=48")
    method = build_method(config.trainer, settings_of(config))
    some = SimpleNamespace(problems=[SimpleNamespace(messages=[{"role": "user", "content": "?"}])])
    check = partial(inputs.check_turns, config, method, model, Lengths(longest_prompt=64), some)
    if is_refused:
        pytest.raises(ConfigError, check).match("may have 112 tokens")
    else:
        check()
