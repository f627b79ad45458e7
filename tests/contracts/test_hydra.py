"""Hydra and verl's settings: ours are laid over verl's, from anywhere, and nothing is unknown."""

import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from verl.utils.config import omega_conf_to_dataclass

from recipe import REPOSITORY
from recipe.hint.settings import HintSettings, read_settings

pytestmark = pytest.mark.usefixtures("config_paths")

PRESETS = sorted(path.stem for path in (REPOSITORY / "configs/hardware").glob("*.yaml"))
CHOICES = [
    f"{group}={path.stem}"
    for group in ("hardware", "experiment")
    for path in sorted((REPOSITORY / "configs" / group).glob("*.yaml"))
]


def test_the_laptop_preset_composes_from_any_working_directory(composed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = composed("hardware=laptop")
    assert config.trainer.method == "sage-light"  # of our primary config
    assert config.trainer.device == "cpu"  # of the preset, over ours and verl's
    assert config.algorithm.gamma == 1.0  # of verl
    assert Path(config.data.train_files) == REPOSITORY / "data/tiny/train.parquet"
    assert Path(config.actor_rollout_ref.model.path).is_dir()


@pytest.mark.parametrize("choice", CHOICES)
def test_every_preset_and_experiment_composes_and_gives_what_verl_or_we_read(composed, choice):
    # Composition itself accepts any key from a file.
    config = composed(choice)
    policy = config.actor_rollout_ref
    for section in (policy.rollout, policy.actor, config.algorithm):
        omega_conf_to_dataclass(section)
    node = OmegaConf.to_container(config.hint, resolve=True)
    assert isinstance(read_settings(node), HintSettings)


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
