"""Loaded by verl in every process (``VERL_USE_EXTERNAL_MODULES``).

Gives each run of the recipe its own way of sending weights to vLLM. With ``VERL_PLATFORM=cpu`` it
also makes the CPU a platform; on GPUs, and for other programs on verl, nothing else changes.
"""

import importlib
import os

from recipe.run.environment import RUN_VARIABLE

if os.environ.get("VERL_PLATFORM") == "cpu":
    importlib.import_module("recipe.laptop.device")

if os.environ.get(RUN_VARIABLE):
    from verl.workers.rollout import base

    # verl imports it where a trainer's worker builds its rollout.
    base._ROLLOUT_REGISTRY["vllm", "async"] = "recipe.hint.adapter.weight_sender.RunServerAdapter"
