"""What a model must have for a run: verl, vLLM, the checks and the engines must agree on it."""

import math
import re
import shutil
from types import SimpleNamespace

import pytest
from engines import run_process
from omegaconf import OmegaConf
from transformers import AutoTokenizer, Gemma3Config, Qwen2Config
from verl.workers.rollout.utils import get_max_position_embeddings

from recipe import REPOSITORY
from recipe.hint.adapter.engine_builder import EngineBuilder
from recipe.hint.adapter.preflight.machine import has_gpu
from recipe.hint.adapter.preflight.model import (
    CPU_HEAD_SIZES,
    check_bucket,
    check_critic_model,
    check_head_size,
    load_model,
)
from recipe.hint.adapter.preflight.settings import read_sizes
from recipe.hint.settings import read_settings
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


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, ""),
        ({"tokenizer": lambda text: text.replace('"!": 3', '"!!": 3')}, "another vocabulary"),
        ({"config": lambda text: re.sub(r"(max_position\w+.: )\d+", r"\1 8", text)}, "has 8 pos"),
        ({"config": lambda text: "{"}, "cannot be read"),
    ],
)
def test_a_critic_of_another_model_must_read_the_policys_tokens(composed, tmp_path, changed, says):
    shutil.copytree(REPOSITORY / "data/tiny/base", tmp_path / "critic")
    for name, change in changed.items():
        path = tmp_path / f"critic/{name}.json"
        path.write_text(change(before := path.read_text()))
        assert path.read_text() != before
    config = composed("hardware=laptop", f"critic.model.path={tmp_path / 'critic'}")
    model = load_model(config)
    if not says:
        check_critic_model(config, model, read_sizes(config))
        return
    with pytest.raises(ConfigError, match=rf"^critic\.model\.path=.*{says}"):
        check_critic_model(config, model, read_sizes(config))


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


def test_a_critic_has_the_positions_that_verl_gives_it(composed, tmp_path):
    shutil.copytree(REPOSITORY / "data/tiny/base", tmp_path / "critic")
    few = "+critic.model.override_config.max_position_embeddings=8"
    config = composed("hardware=laptop", f"critic.model.path={tmp_path / 'critic'}", few)
    with pytest.raises(ConfigError, match="has 8 positions"):
        check_critic_model(config, load_model(config), read_sizes(config))


@pytest.mark.skipif(has_gpu(), reason="needs vLLM's CPU build")
def test_the_head_sizes_known_on_a_cpu_are_those_of_vllm():
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert list(CPU_HEAD_SIZES) == CPUAttentionBackend.get_supported_head_sizes()


@pytest.mark.parametrize(("heads", "size"), [(4, 24), (1, 96), (3, 32)])
def test_heads_without_attention_on_a_cpu_are_refused(config, heads, size):
    model = Qwen2Config(hidden_size=96, num_attention_heads=heads)  # 96 / 4 = 24
    if size in CPU_HEAD_SIZES:
        assert check_head_size(config, model, "small") is None
        return
    with pytest.raises(ConfigError, match=r"small has attention heads of 24 dimensions.* 32, 64"):
        check_head_size(config, model, "small")
    config.trainer.device = "cuda"
    assert check_head_size(config, model, "small") is None


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
        with pytest.raises(ConfigError, match=rf"{BUCKET}=2048 .*{name}.*give {needed_mb} or more"):
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


def test_a_bucket_that_shared_memory_cannot_hold_is_refused_on_a_cpu(config, monkeypatch):
    # A container has 64 MB unless it is given more. 20 weights of 2^20 x 4 bytes: 80 MB.
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=64 * 2**20))
    sizes = [2**20] * 20
    with pytest.raises(ConfigError, match=rf"80 MB of shared.* 64 MB free.*{BUCKET}=4 or more"):
        check_bucket(config, sizes, "large")
    check_bucket(config, sizes[:16], "small enough")
    OmegaConf.update(config, BUCKET, 64)  # the weights go in two buckets
    check_bucket(config, sizes, "large")
    OmegaConf.update(config, BUCKET, 2048)
    config.trainer.device = "cuda"
    check_bucket(config, sizes, "large")


def test_the_largest_weight_is_read_from_the_headers_of_the_model(config):
    # The embedded model: every weight is far below 1 MB, the bucket is a whole number of them.
    OmegaConf.update(config, BUCKET, 1)
    load_model(config)
    OmegaConf.update(config, BUCKET, 0)
    with pytest.raises(
        ConfigError, match=f"{BUCKET}=0 is below the largest weight.*give 1 or more"
    ):
        load_model(config)


@pytest.mark.long
def test_verl_sends_what_fits_a_bucket_of_shared_memory_and_stops_at_what_does_not():
    # 2^18 numbers of 4 bytes are 1 MB, and one more is not sent: the receiver waits for ever.
    fits, is_larger = run_process("bucket_process.py", timeout_s=120)
    assert fits == {"equal": True}
    assert "update_weights_bucket_megabytes" in is_larger["error"]
    assert is_larger["waits"] and is_larger["got"] == []
