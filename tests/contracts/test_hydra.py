"""Hydra and verl's settings: ours are laid over verl's, from anywhere, and nothing is unknown."""

import functools
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig, RolloutConfig
from verl.workers.config.rollout import AgentLoopConfig

from recipe.hint.command.compose import CONFIG_DIR, REPOSITORY
from recipe.hint.runtime.preflight.settings import leaves
from recipe.hint.settings import HintSettings, read_settings

pytestmark = pytest.mark.usefixtures("config_paths")

PRESETS = sorted(path.stem for path in (REPOSITORY / "configs/hardware").glob("*.yaml"))
# Settings of this package inside verl's sections.
OURS = {
    "preflight_only",
    "trainer.method",
    "trainer.hint_accuracy_min_threshold",
    "trainer.hint_accuracy_max_threshold",
    "trainer.eval_only",
}
# Settings that verl reads but does not write into its YAML.
TYPED = {f"actor_rollout_ref.rollout.{item.name}" for item in fields(RolloutConfig)} | {
    f"actor_rollout_ref.rollout.agent.{item.name}" for item in fields(AgentLoopConfig)
}
# Mappings whose keys belong to somebody else: vLLM, transformers, Ray, torch.
OPEN = (
    "actor_rollout_ref.rollout.engine_kwargs.vllm.",
    "actor_rollout_ref.model.override_config.",
    "actor_rollout_ref.actor.fsdp_config.mixed_precision.",
    # The same by reference.
    "actor_rollout_ref.ref.fsdp_config.mixed_precision",
    "critic.fsdp.mixed_precision",
    "ray_kwargs.ray_init.",
)


def ours(path: Path) -> list[str]:
    """The settings that one of our files gives."""
    node = yaml.safe_load(path.read_text())
    given = {key: node[key] for key in node if key not in ("hydra", "defaults")}
    return [name for name, _ in leaves(given)]


def test_the_laptop_preset_composes_from_any_working_directory(composed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = composed("hardware=laptop")
    assert config.trainer.method == "sage-light"  # of our primary config
    assert config.trainer.device == "cpu"  # of the preset, over ours and verl's
    assert config.algorithm.gamma == 1.0  # of verl
    assert Path(config.data.train_files) == REPOSITORY / "data/tiny/train.parquet"
    assert Path(config.actor_rollout_ref.model.path).is_dir()


@functools.cache
def verls_settings(folder: str) -> set[str]:
    with initialize_config_dir(folder, version_base=None):
        node = OmegaConf.to_container(compose("ppo_trainer"), resolve=False)
        return {name for name, _ in leaves(node)}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_hardware_preset_composes(composed, preset):
    config = composed(f"hardware={preset}")
    node = OmegaConf.to_container(config.hint, resolve=True)
    assert isinstance(read_settings(node), HintSettings)


@pytest.mark.parametrize(
    "path",
    [
        CONFIG_DIR / "hint_trainer.yaml",
        *sorted((REPOSITORY / "configs").glob("hardware/*.yaml")),
        *sorted((REPOSITORY / "configs").glob("experiment/*.yaml")),
    ],
    ids=lambda path: path.stem,
)
def test_every_setting_we_give_is_one_that_verl_or_we_have(path):
    # Composition itself accepts any key from a file; only command-line overrides are checked.
    known = verls_settings(os.environ["HINT_VERL_CONFIG"]) | OURS | TYPED
    unknown = [
        name for name in ours(path) if name not in known and not name.startswith(("hint.", *OPEN))
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "override",
    ["trainer.totl_epochs=3", "hint.max_levl=2", "actor_rollout_ref.rollout.nn=4", "hints.seed=1"],
)
def test_a_mistyped_setting_is_refused(composed, override):
    name = override.split("=")[0]
    with pytest.raises(ConfigCompositionException, match=f"Could not override '{name}'"):
        composed("hardware=laptop", override)


def test_verls_typed_rollout_section_accepts_the_composed_settings(composed):
    rollout = omega_conf_to_dataclass(composed("hardware=laptop").actor_rollout_ref.rollout)
    assert isinstance(rollout, RolloutConfig)
    # Read from data.max_response_length by verl's own interpolation.
    assert (rollout.prompt_length, rollout.response_length) == (64, 48)
    assert rollout.engine_kwargs["vllm"]["distributed_executor_backend"] == "uni"


def test_verls_typed_model_section_loads_the_embedded_model_without_a_network(composed):
    model = omega_conf_to_dataclass(composed("hardware=laptop").actor_rollout_ref.model)
    assert isinstance(model, HFModelConfig)
    assert model.hf_config.tie_word_embeddings is True
    assert model.processor is None
    assert len(model.tokenizer) == model.hf_config.vocab_size


def test_verls_typed_actor_section_accepts_the_composed_settings(composed):
    actor = omega_conf_to_dataclass(composed("hardware=laptop").actor_rollout_ref.actor)
    assert actor.strategy == "fsdp2"
    assert actor.fsdp_config.mixed_precision["param_dtype"] == "fp32"
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (0.2, 0.28)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_gpu_trains_with_the_engine_that_the_cpu_was_tested_with(composed, preset):
    config = composed(f"hardware={preset}", "trainer.nnodes=1")
    actor, critic = config.actor_rollout_ref.actor, config.critic
    assert (actor.strategy, config.actor_rollout_ref.ref.strategy, critic.strategy) == (
        ("fsdp2",) * 3
    )
    # The critic leaves vLLM as much room as the actor does.
    for name in ("param_offload", "optimizer_offload"):
        assert critic.fsdp[name] == actor.fsdp_config[name]


def test_verl_is_found_without_being_imported():
    # Its plugins read the environment, which only the settings decide.
    code = (
        "import sys; from recipe.hint.main_hint import set_config_paths; set_config_paths(); "
        "print(sorted({'verl', 'torch', 'ray', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
