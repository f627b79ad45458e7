"""Every command of the GPU check passes the checks before a start, with the GPU's presets too."""

import time
from dataclasses import dataclass, field

import pytest
from omegaconf import OmegaConf, open_dict
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl.workers.config import RolloutConfig

from recipe.hint.adapter import attention
from recipe.hint.adapter.preflight.keys import check_keys
from recipe.hint.adapter.preflight.run import preflight
from recipe.hint.command.compose import split_command
from recipe.study.bench import gpu_check
from recipe.study.bench.commands import CommandError
from recipe.study.bench.settings import apply_bench_mode, split_arguments
from recipe.worlds import random_model

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Recorder(gpu_check.Check):
    """Writes down the first command of a part in place of running it."""

    commands: list = field(default_factory=list)

    def run(self, name, *settings, script="recipe/hint/main_hint.py", **more):
        preset = "laptop" if self.device == "cpu" else "gpu1_tiny"
        folder = self.folder / name
        self.commands.append([f"hardware={preset}", f"hint.run_dir={folder}", *settings])
        raise CommandError("written down")


@pytest.fixture
def machine(monkeypatch):
    """A machine with two devices and flash-attn, and a small model for the large one."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(attention, "flash_attn_missing", lambda: None)
    monkeypatch.setattr(gpu_check, "_num_devices", lambda: 2)
    monkeypatch.setattr(random_model, "HALF_BILLION", random_model.SMALL)


@pytest.mark.parametrize(
    ("part", "device"),
    [
        *((name, "cuda") for name in gpu_check.PARTS if name != "versions"),
        ("separate_async", "cpu"),
        # The same settings on the preset that most tests run with.
        *(
            pytest.param(name, "cpu", marks=pytest.mark.long)
            for name in gpu_check.PARTS
            if name not in ("versions", "sleep", "separate_async")
        ),
    ],
)
def test_a_part_asks_for_nothing_that_is_refused(part, device, composed, machine, tmp_path):
    check = Recorder(device, tmp_path, time.monotonic() + 60)
    try:
        gpu_check.PARTS[part](check)
    except CommandError as error:
        assert str(error) == "written down"
    [argv] = check.commands
    argv, bench = split_arguments(argv)
    options, settings, action = split_command(argv)
    assert (options, action) == ([], "run")
    config = composed(*settings, "preflight_only=true")
    check_keys(config)
    if part in ("arms", "half_billion"):
        apply_bench_mode(config, bench)
    with open_dict(config):  # what Hydra fills in at the start
        config.trainer.experiment_name = "check"
    attention.choose_attention(config)
    told = preflight(config, settings)
    assert any(line.startswith("batch ") for line in told)


def test_verls_own_command_takes_the_settings_of_a_run(composed, tmp_path):
    config = composed("hardware=gpu1_tiny", "trainer.method=grpo")
    with open_dict(config):
        config.trainer.experiment_name = "plain"
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
    plain = OmegaConf.create(gpu_check.plain_settings(tmp_path / "config.yaml", steps=3))
    validate_config(plain, use_reference_policy=False, use_critic=False)
    assert isinstance(omega_conf_to_dataclass(plain.actor_rollout_ref.rollout), RolloutConfig)
    assert plain.trainer.total_training_steps == 3
    assert plain.actor_rollout_ref.rollout.agent.agent_loop_manager_class is None
    # verl's own rewards raise for the data sources of the embedded problems.
    score = get_custom_reward_fn(plain)
    row = {"data_source": "tiny/hard", "ground_truth": "87", "extra_info": {}}
    assert score(solution_str="So \\boxed{87}", **row) == 1
    assert score(solution_str="So \\boxed{878}", **row) == 0
