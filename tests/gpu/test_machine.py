"""The parts of ``scripts/gpu_check.sh``, one test each: ``pytest -m gpu``.

``HINT_GPU_STAND_IN=cpu`` lets the CPU take the GPU's place.
"""

import os
import time

import pytest

from recipe.study.gpu_check import PARTS, Check, run_part

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    device = os.environ.get("HINT_GPU_STAND_IN", "cuda")
    return Check(device, tmp_path_factory.mktemp("gpu"), time.monotonic() + 5400)


@pytest.mark.parametrize("name", PARTS)
def test_the_part_works_on_this_machine(check, name):
    result = run_part(name, check)
    if result["result"] == "not here":
        pytest.skip(result["reason"])
    assert result["result"] == "ok", result["reason"]
    assert result["numbers"]
