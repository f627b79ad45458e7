"""Every command of the GPU check passes the checks before a start, with the GPU's presets too."""

import time
from dataclasses import dataclass, field

import pytest
import torch
from omegaconf import open_dict

from recipe.hint.adapter import models
from recipe.hint.adapter.preflight.run import preflight
from recipe.hint.adapter.preflight.settings import check_keys
from recipe.hint.command.compose import split_command
from recipe.run.errors import HintError
from recipe.study import gpu_check
from recipe.study.bench import apply_bench_mode, split_arguments

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Recorder(gpu_check.Check):
    """Writes down the first command of a part in place of running it."""

    commands: list = field(default_factory=list)

    def run(self, name, *settings, script="main_hint.py", **more):
        preset = "laptop" if self.device == "cpu" else "gpu1_tiny"
        settings = [each.lstrip("+") if self.device == "cpu" else each for each in settings]
        folder = self.folder / name
        self.commands.append([f"hardware={preset}", f"hint.run_dir={folder}", *settings])
        raise HintError("written down")


@pytest.fixture
def machine(monkeypatch):
    """A machine with two devices and flash-attn."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(models, "flash_attn_missing", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


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
        gpu_check.numbers_of(part, check)
    except HintError as error:
        assert str(error) == "written down"
    [argv] = check.commands
    argv, bench = split_arguments(argv)
    options, settings = split_command(argv)
    assert options == []
    config = composed(*settings, "preflight_only=true")
    check_keys(config)
    if part == "arms":
        apply_bench_mode(config, bench)
    with open_dict(config):  # what Hydra fills in at the start
        config.trainer.experiment_name = "check"
    models.choose_attention(config)
    told = preflight(config, settings)
    assert any(line.startswith("batch ") for line in told)
