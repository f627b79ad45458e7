"""What a model must have for a run: verl, vLLM, the checks and the engines must agree on it."""

from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer, Gemma3Config
from verl.workers.rollout.utils import get_max_position_embeddings

from recipe import REPOSITORY
from recipe.hint.adapter.engine import EngineBuilder
from recipe.hint.adapter.preflight.inputs import load_model
from recipe.hint.settings import read_settings


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
    assert builder._client.room([0] * 95) == 1


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
