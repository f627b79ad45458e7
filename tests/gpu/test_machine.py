"""The parts of ``scripts/gpu_check.sh``, one test each: ``pytest -m gpu``.

``HINT_GPU_STAND_IN=cpu`` lets the CPU take the GPU's place.
"""

import os
import sys

import pytest
import torch
from gpu_parts import PARTS, numbers_of, run

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu")


@pytest.mark.parametrize("name", PARTS)
def test_the_part_works_on_this_machine(folder, name):
    device, part = os.environ.get("HINT_GPU_STAND_IN", "cuda"), PARTS[name]
    if device == "cpu" and "not_on_cpu" in part:
        pytest.skip(part["not_on_cpu"])
    if device == "cuda" and (missing := part.get("num_gpus", 1) - torch.cuda.device_count()) > 0:
        pytest.skip(f"needs {missing} more GPUs")
    run(name, device, folder)
    numbers = numbers_of(name, device, folder)
    assert numbers
    shown = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
    sys.stdout.write(f"\n{name}: {'; '.join(shown)}\n")
