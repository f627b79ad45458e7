"""What a model must have for a run: verl, vLLM, the checks and the engines must agree on it."""

import math
from types import SimpleNamespace

import pytest
from engines import run_process
from omegaconf import OmegaConf
from transformers import AutoTokenizer, Gemma3Config
from verl.workers.rollout.utils import get_max_position_embeddings

from recipe import REPOSITORY
from recipe.hint.adapter.engine import EngineBuilder
from recipe.hint.adapter.preflight.model import (
    CPU_HEAD_SIZES,
    check_bucket,
    load_model,
)
from recipe.hint.settings import read_settings
from recipe.run.devices import has_gpu
from recipe.run.errors import ConfigError


@pytest.fixture
def config(composed):
    return composed("hardware=laptop", "actor_rollout_ref.rollout.max_model_len=null")


def test_a_model_with_its_text_settings_in_a_part_of_their_own_has_a_context(config):
    # Its config has no positions of its own, those of its text model are in `text_config`.
    model = Gemma3Config(text_config={"max_position_embeddings": 96})
    assert not hasattr(model, "max_position_embeddings")
    worker = SimpleNamespace(
        config=config,
        llm_client=None,
        model_config=SimpleNamespace(hf_config=model),
        tokenizer=AutoTokenizer.from_pretrained(REPOSITORY / "data/tiny/base"),
        hf_model_type="qwen2",
    )
    builder = EngineBuilder(
        worker, read_settings(OmegaConf.to_container(config.hint, resolve=True))
    )
    assert get_max_position_embeddings(model) == 96
    # 95 tokens leave room for one more.
    assert builder._client.has_room([0] * 95) and not builder._client.has_room([0] * 96)


POSITIONS = "actor_rollout_ref.model.override_config.max_position_embeddings"
SERVED = "actor_rollout_ref.rollout.engine_kwargs.vllm.hf_overrides"
LENGTH = "actor_rollout_ref.rollout.max_model_len"


@pytest.mark.parametrize(
    ("given", "context"),
    [
        ([], 2048),
        ([f"+{POSITIONS}=512"], 512),
        ([f"+{POSITIONS}=4096", f"{LENGTH}=2048"], 2048),
        ([f"+{POSITIONS}=4096", f"+{SERVED}.max_position_embeddings=4096"], 4096),
        (  # vLLM reckons 2048 x 4
            [
                f"+{POSITIONS}=8192",
                f"+{SERVED}.rope_parameters={{rope_type:yarn,rope_theta:10000.0,factor:4.0,"
                "original_max_position_embeddings:2048}",
            ],
            8192,
        ),
    ],
)
def test_positions_are_those_that_verl_and_vllm_are_given(composed, given, context):
    config = composed("hardware=laptop", f"{LENGTH}=null", *given)
    assert load_model(config).context == context


@pytest.mark.skipif(has_gpu(), reason="needs vLLM's CPU build")
def test_the_head_sizes_known_on_a_cpu_are_those_of_vllm():
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert list(CPU_HEAD_SIZES) == CPUAttentionBackend.get_supported_head_sizes()


BUCKET = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"


@pytest.mark.parametrize(
    ("name", "shape", "needed_mb"),
    [
        ("Llama-3.1-8B", (128256, 4096), 2004),  # 525,336,576 x 4 bytes = 2004 x 2^20
        ("Qwen2.5-7B", (152064, 3584), 2079),
        ("Qwen3-8B", (151936, 4096), 2374),
        ("gemma-2-9b", (256000, 3584), 3500),
    ],
)
def test_a_weight_above_the_bucket_of_the_sync_is_refused_on_a_cpu(config, name, shape, needed_mb):
    # verl's own bucket has 2048 MB.
    sizes = [1000, math.prod(shape)]
    if needed_mb <= 2048:
        check_bucket(config, sizes, name)
    else:
        with pytest.raises(ConfigError, match=rf"{BUCKET}=2048: .*{name}.*give {needed_mb} "):
            check_bucket(config, sizes, name)
    OmegaConf.update(config, BUCKET, needed_mb)
    check_bucket(config, sizes, name)
    OmegaConf.update(config, BUCKET, needed_mb - 1)
    with pytest.raises(ConfigError, match=f"give {needed_mb} or more"):
        check_bucket(config, sizes, name)
    # Half the bytes: 256,000 x 3,584 x 2 = 1750 MB.
    config.actor_rollout_ref.actor.fsdp_config.model_dtype = "bf16"
    OmegaConf.update(config, BUCKET, 2048)
    check_bucket(config, sizes, name)


@pytest.mark.long
def test_verl_sends_what_fits_a_bucket_of_shared_memory_and_stops_at_what_does_not():
    # 2^18 numbers of 4 bytes are 1 MB, and one more is not sent: the receiver waits for ever.
    fits, is_larger = run_process("bucket_process.py", timeout_s=120)
    assert fits == {"equal": True}
    assert "update_weights_bucket_megabytes" in is_larger["error"]
    assert is_larger["waits"] and is_larger["got"] == []
