"""Loaded by verl in every process (``VERL_USE_EXTERNAL_MODULES``).

Gives each run its own way of sending weights to vLLM. With ``VERL_PLATFORM=cpu`` it also makes the
CPU a platform; on GPUs nothing else of verl changes.
"""

import os

from verl.workers.rollout import base

if os.environ.get("VERL_PLATFORM") == "cpu":
    from recipe.hint.runtime.cpu import device as cpu_platform

    cpu_platform.install()

# Imported by verl where a trainer's worker makes its rollout.
base._ROLLOUT_REGISTRY["vllm", "async"] = "recipe.hint.runtime.weight_sender.RunServerAdapter"
