"""Where a model says how long a sequence may be: verl, the checks and the engines must agree."""

import os
from types import SimpleNamespace

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from transformers import AutoTokenizer, Gemma3Config, Qwen2Config
from verl.workers.rollout.utils import get_max_position_embeddings

from recipe.hint.command.compose import CONFIG_DIR, REPOSITORY, set_config_paths
from recipe.hint.errors import ConfigError
from recipe.hint.runtime.engine_builder import EngineBuilder
from recipe.hint.runtime.preflight.machine import has_gpu
from recipe.hint.runtime.preflight.model import CPU_HEAD_SIZES, check_head_size
from recipe.hint.settings import read_settings


@pytest.fixture
def config(monkeypatch):
    for name in ("HINT_REPO", "HINT_VERL_CONFIG"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
        monkeypatch.delenv(name)
    set_config_paths()
    with initialize_config_dir(str(CONFIG_DIR), version_base=None):
        given = ["hardware=laptop", "actor_rollout_ref.rollout.max_model_len=null"]
        return compose("hint_trainer", overrides=given)


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
