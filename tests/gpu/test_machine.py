"""The parts of ``scripts/gpu_check.sh``, one test each: ``pytest -m gpu``.

``HINT_GPU_STAND_IN=cpu`` lets the CPU take the GPU's place.
"""

import os
import time

import pytest

from recipe.study.gpu_check import PARTS, run_part

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu")


@pytest.mark.parametrize("name", PARTS)
def test_the_part_works_on_this_machine(folder, name):
    device = os.environ.get("HINT_GPU_STAND_IN", "cuda")
    result = run_part(name, device, folder, time.monotonic() + 1800)
    if result["result"] == "not here":
        pytest.skip(result["reason"])
    assert result["result"] == "ok", result["reason"]
    assert result["numbers"]
