"""Models in the shape of real ones: vLLM stops where they end, and has the trainer's weights.

On demand: ``pytest -m long``. The embedded model and its one stop are in test_weight_sync.py and
test_rollout_server.py.
"""

import pytest
from engines import run_process
from random_model import FAMILIES

from recipe.run.devices import has_gpu

pytestmark = pytest.mark.long
MEAN, MOST = 1e-6, 1e-4


@pytest.fixture(scope="module", params=FAMILIES)
def seen(request, tmp_path_factory):
    if has_gpu():
        pytest.skip("needs vLLM's CPU build")
    folder = tmp_path_factory.mktemp(request.param)
    return run_process("models_process.py", request.param, str(folder))


def test_responses_end_at_each_stop_of_the_model_and_at_nothing_else(seen):
    found = seen["loaded"]
    assert found["last"] == seen["stops"]
    assert found["inside"] == 0
    # 36 responses; those of 40 tokens without a stop are cut.
    assert found["stopped"] + found["cut"] == 36


def test_vllm_and_the_trainers_model_agree_before_and_after_a_sync(seen):
    for when in ("loaded", "synced"):
        assert seen[when]["mean"] <= MEAN, when
        assert seen[when]["max"] <= MOST, when
        # Large enough that a difference would show.
        assert seen[when]["mean probability"] > 1e-3, when
    assert seen["not synced"]["mean"] > 100 * seen["synced"]["mean"]
