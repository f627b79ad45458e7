"""Every command of the GPU check passes the checks before a start, with the GPU's presets too."""

import pytest
import torch
from gpu_parts import PARTS, command
from omegaconf import open_dict

from recipe.hint.adapter import models
from recipe.hint.adapter.preflight.run import preflight
from recipe.hint.command import split_command
from recipe.study.evaluate import apply_evaluation_mode, preflight_evaluation

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", PARTS)
def test_a_part_asks_for_nothing_that_is_refused(part, composed, monkeypatch, tmp_path):
    # A machine with two devices and flash-attn.
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(models, "flash_attn_missing", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    _, _, *argv = command(part, "cuda", tmp_path)
    options, settings = split_command(argv)
    assert options == []
    config = composed(*settings, "preflight_only=true")
    with open_dict(config):  # what Hydra fills in at the start
        config.trainer.experiment_name = "check"
    models.choose_attention(config)
    if part == "evaluation":  # its checkpoint is made by another part
        config.actor_rollout_ref.model.path = "data/tiny/base"
        apply_evaluation_mode(config, "grpo")
        assert any(line.startswith("samples ") for line in preflight_evaluation(config))
        return
    told = preflight(config, settings)
    assert any(line.startswith("batch ") for line in told)
