"""The trainer's attention with flash-attn, without it, and with a build that does not load."""

import inspect
import sys

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from verl.workers.config import HFModelConfig

from recipe import REPOSITORY
from recipe.hint.adapter.models import choose_attention
from recipe.run.errors import ConfigError

MODEL = "actor_rollout_ref.model"


@pytest.fixture
def flash_attn(monkeypatch, tmp_path):
    """Put a package of that name on the path, with this source."""

    def put(source):
        (tmp_path / "flash_attn.py").write_text(source)
        monkeypatch.delitem(sys.modules, "flash_attn", raising=False)
        monkeypatch.syspath_prepend(tmp_path)

    return put


def given(config):
    return config.actor_rollout_ref.model.override_config.get("attn_implementation")


def capped(folder):
    """A model whose attention logits are capped: its configuration is all that is read."""
    AutoConfig.for_model("gemma2", vocab_size=16).save_pretrained(folder)
    return f"{MODEL}.path={folder}"


def test_flash_attn_stays_verls_default_where_it_can_be_imported(composed, flash_attn):
    flash_attn("")
    config = composed("hardware=gpu1_tiny")
    assert choose_attention(config) == []
    assert given(config) is None
    # What verl takes then.
    assert '"attn_implementation", "flash_attention_2"' in inspect.getsource(
        HFModelConfig.__post_init__
    )


def test_a_build_that_does_not_load_is_said_in_one_line_and_torchs_attention_serves(
    composed, flash_attn
):
    flash_attn("raise ImportError('undefined symbol:\\n_ZN3c10')")
    config = composed("hardware=gpu1_tiny")
    assert choose_attention(config) == [
        "attention sdpa: flash-attn cannot be imported (undefined symbol: _ZN3c10)"
    ]
    assert given(config) == "sdpa"


def test_a_model_that_caps_its_attention_takes_the_plain_one(composed, flash_attn, tmp_path):
    flash_attn("raise ImportError('none')")
    config = composed("hardware=gpu1_tiny", capped(tmp_path / "model"))
    [line] = choose_attention(config)
    assert line.startswith("attention eager:")
    assert given(config) == "eager"


def test_rows_that_several_devices_share_need_flash_attn(composed, flash_attn):
    flash_attn("raise ImportError('none')")
    name = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"
    with pytest.raises(ConfigError, match="needs flash-attn"):
        choose_attention(composed("hardware=gpu1_tiny", f"{name}=2"))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_rows_packed_into_one_do_not_see_each_other_without_flash_attn(attention):
    # As verl packs them: no mask, and positions that begin anew.
    model = AutoModelForCausalLM.from_pretrained(
        REPOSITORY / "data/tiny/base", attn_implementation=attention, dtype=torch.float32
    ).train()
    rows = [torch.arange(23)[None] + 5, torch.arange(31)[None] + 40]
    with torch.no_grad():
        alone_TV = torch.cat([model(row, use_cache=False).logits[0] for row in rows])
        packed = {
            "input_ids": torch.cat(rows, 1),
            "position_ids": torch.cat([torch.arange(23), torch.arange(31)])[None],
        }
        packed_TV = model(**packed, attention_mask=None, use_cache=False).logits[0]
        joined_TV = model(packed["input_ids"], use_cache=False).logits[0]
    assert (packed_TV - alone_TV).abs().max() < 1e-4
    assert (joined_TV - alone_TV).abs().max() > 1.0  # one row of 54 tokens is something else
