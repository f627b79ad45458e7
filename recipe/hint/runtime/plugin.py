"""Loaded by verl in every process (``VERL_USE_EXTERNAL_MODULES``): makes the CPU a platform.

Does nothing unless ``VERL_PLATFORM=cpu``, so that on GPUs verl stays exactly as installed.
"""

import os

if os.environ.get("VERL_PLATFORM") == "cpu":
    from recipe.hint.runtime.cpu import device as cpu_platform

    cpu_platform.install()
