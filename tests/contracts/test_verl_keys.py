"""Keys that nothing reads are refused wherever they are; those that verl reads stay possible."""

import os
import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.keys import OPEN, READ_BY_VERL, check_keys
from recipe.hint.command.compose import flat_names
from recipe.run.errors import ConfigError

# Where verl reads a section without a dataclass, and what it is called there.
READERS = {
    "data": [("utils/dataset/rl_dataset.py", "config"), ("trainer/ppo/v1/*.py", "data")],
    "trainer": [("trainer/ppo/v1/*.py", "trainer"), ("utils/tracking.py", r'config\["trainer"\]')],
}


@pytest.fixture(scope="module")
def verl(config_paths):
    file = Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml"
    return OmegaConf.to_container(OmegaConf.load(file), resolve=False)


@pytest.fixture
def laptop(composed):
    return composed("hardware=laptop")


def sections(node, prefix=""):
    """Every mapping of verl's file that has entries of its own."""
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and name not in OPEN:
            yield name
            yield from sections(value, f"{name}.")


def test_verls_file_of_all_defaults_is_what_it_composes(verl):
    with initialize_config_dir(os.environ["HINT_VERL_CONFIG"], version_base=None):
        defaults = OmegaConf.to_container(compose("ppo_trainer"), resolve=False)
    assert set(flat_names(defaults)) - set(flat_names(verl)) == {"model_engine"}


def test_a_key_that_nothing_reads_is_refused_in_every_section(verl, laptop):
    names = list(sections(verl))
    assert len(names) > 80
    taken = []
    for name in names:
        OmegaConf.update(laptop, f"{name}.qqqq", 1, force_add=True)
        try:
            check_keys(laptop)
            taken.append(name)
        except ConfigError as error:
            assert str(error).startswith(f"{name}.qqqq is a key that neither verl nor")
        with_section = OmegaConf.select(laptop, name)
        OmegaConf.set_struct(with_section, False)
        del with_section["qqqq"]
    assert taken == []


def test_mode_sync_takes_no_setting_of_an_asynchronous_one(composed):
    """verl would do two updates a step, its servers asleep when the second one samples."""
    given = "+trainer.v1.sync.parameter_sync_step=2"
    with pytest.raises(ConfigError, match=r"trainer.v1.sync.parameter_sync_step: mode sync has no"):
        check_keys(composed("hardware=laptop", given))


def test_a_letter_too_few_is_answered_with_the_right_name(verl, laptop):
    # Every third setting of four letters and more, with its third letter left out.
    known = set(flat_names(verl))
    leaves = [
        name for name in sorted(known) if name.startswith(("trainer.", "data.", "algorithm."))
    ]
    leaves = [name for name in leaves if not name.startswith("data.apply_chat")][::3]
    asked = wrong = 0
    for name in leaves:
        section, _, leaf = name.rpartition(".")
        typo = f"{section}.{leaf[:2]}{leaf[3:]}"
        if len(leaf) < 4 or leaf.startswith("_") or typo in known:
            continue
        node = OmegaConf.select(laptop, section)
        OmegaConf.update(laptop, typo, 1, force_add=True)
        with pytest.raises(ConfigError) as caught:
            check_keys(laptop)
        asked += 1
        wrong += f"did you mean {name}?" not in str(caught.value)
        OmegaConf.set_struct(node, False)
        del node[typo.rpartition(".")[2]]
    assert asked > 30
    assert wrong <= 1, f"{wrong} of {asked}"


@pytest.mark.parametrize(
    "given",
    [
        "+trainer.remove_previous_ckpt_in_save=true",
        "+data.cache_dir=/tmp",
        # fields of verl's dataclasses
        "+actor_rollout_ref.rollout.repetition_penalty=1.1",
        "+actor_rollout_ref.actor.checkpoint.save_lora_only=true",
        # mappings of vLLM's, the template's, Ray's, the optimizer's
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.max_logprobs=5",
        "+data.apply_chat_template_kwargs.enable_thinking=false",
        "+ray_kwargs.ray_init.address=auto",
        "+ray_kwargs.ray_init.runtime_env.env_vars.A=b",
        "+actor_rollout_ref.actor.optim.override_optimizer_config={fused: true}",
        "model_engine=megatron",
    ],
)
def test_a_key_that_is_read_stays_possible(composed, given):
    check_keys(composed("hardware=laptop", given))


def test_a_key_of_a_file_is_refused_like_one_of_the_command(composed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/one.yaml").write_text("# @package _global_\ntrainer: {totl_epochs: 3}\n")
    config = composed(
        "hardware=laptop",
        f"hydra.searchpath=[file://{os.environ['HINT_VERL_CONFIG']},"
        f"file://{os.environ['HINT_REPO']}/configs,file://{tmp_path}]",
        "+mine=one",
    )
    with pytest.raises(
        ConfigError, match=r"trainer\.totl_epochs .* did you mean trainer\.total_ep"
    ):
        check_keys(config)


def test_the_keys_that_verl_reads_and_does_not_list_are_these(verl):
    package = Path(os.environ["HINT_VERL_CONFIG"]).parents[1]
    known = set(flat_names(verl))
    found = {"model_engine"}  # the choice of verl's own files
    for section, places in READERS.items():
        for files, called in places:
            for path in package.glob(files):
                read = re.findall(rf'\b{called}\.get\(\s*"(\w+)"', path.read_text())
                found |= {f"{section}.{key}" for key in read} - known
    assert found == set(READ_BY_VERL)
