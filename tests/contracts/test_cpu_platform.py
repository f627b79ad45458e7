"""The gaps of verl on a machine without an accelerator, one test per gap (laptop_platform.py).

The gaps are closed by patching the process, so the patched process is one of its own:
cpu_process.py, which prints what it saw with and without the patches.
"""

import subprocess
import sys

import pytest
from engines import ROOT, environment, run_process

from recipe.run.devices import has_gpu

pytestmark = pytest.mark.slow

cpu_build = pytest.mark.skipif(has_gpu(), reason="needs vLLM's CPU build")


@pytest.fixture(scope="module")
def seen():
    return run_process("cpu_process.py")


def test_verl_runs_on_the_platform_that_the_plugin_registers(seen):
    assert seen["platform"] == ["CpuPlatform", "cpu", "gloo", "GPU"]
    assert seen["verl.utils.device"] == ["cpu", False]  # its name; no weights over device IPC


def test_the_backend_that_verl_asks_for_is_accepted_on_the_cpu(seen):
    assert "Duplicate device type cpu" in seen["doubled backend without the patch"]
    assert seen["sum over one process"] == 3.0


@cpu_build
def test_the_cpu_build_of_vllm_is_found_under_the_name_that_verl_asks_for(seen):
    assert seen["vllm version"].endswith("+cpu")
    assert seen["version of nothing"] == "PackageNotFoundError"


def test_a_shared_segment_may_be_closed_while_a_tensor_looks_at_it(seen):
    assert seen["close without the patch"] == "BufferError"
    assert seen["tensor after close"] == [7, 7, 7, 7]


def test_memory_is_left_as_it_is_where_verl_pins_it(seen):
    assert "accelerator" in seen["pin without the patch"]
    assert seen["pinned"] is True


def test_a_critic_is_loaded_without_flash_attention(seen):
    assert "FlashAttention" in seen["critic without the patch"]
    assert seen["values"] == [1, 3, 1]  # one value per token


def test_log_probs_of_a_trainer_in_bf16_are_taken_in_fp32(seen):
    # From 16 to 32 the neighbours of a number in bf16 are 2^-3 = 0.125 apart.
    assert 0.03 < seen["log-probs without the patch"] < 0.125
    assert seen["log-probs"] < 1e-5


def test_every_call_that_verl_makes_on_its_device_exists(seen):
    assert seen["device calls that fail"] == []


def test_the_plugin_does_nothing_on_another_platform():
    code = (
        "import sys, recipe.laptop.plugin; "
        "print(sorted({'torch', 'verl', 'recipe.laptop.device'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment() | {"VERL_PLATFORM": "cuda"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_platform_answers_everything_that_verl_may_ask(seen):
    assert seen["unanswered"] == []
