import os
import sys
from pathlib import Path

from recipe.run.devices import has_gpu
from recipe.run.environment import CPU_ENVIRONMENT

# For the helpers beside the tests; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))

# verl and vLLM choose their platform when they are imported, which happens at collection.
if not has_gpu():
    for _name in ("VERL_PLATFORM", "VERL_ENGINE_DEVICE", "VERL_USE_EXTERNAL_MODULES"):
        os.environ.setdefault(_name, CPU_ENVIRONMENT[_name])
