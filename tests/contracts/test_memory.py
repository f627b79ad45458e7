"""The estimate of a device's memory: its arithmetic, and what torch keeps for a backward pass."""

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from recipe.hint.adapter.preflight import memory
from recipe.hint.adapter.preflight.memory import _HIDDEN, _INNER, device_memory, memory_lines

GIB = 2**30
LARGE = Qwen2Config(  # Qwen2.5-7B: 7.616e9 parameters
    architectures=["Qwen2ForCausalLM"], vocab_size=152064, hidden_size=3584, num_hidden_layers=28,
    intermediate_size=18944, num_attention_heads=28, num_key_value_heads=4,
    tie_word_embeddings=False,
)  # fmt: skip
NODE8 = ("hardware=node8", "trainer.method=sage", "actor_rollout_ref.model.path=x")
FSDP = "actor_rollout_ref.actor.fsdp_config"


@pytest.fixture(autouse=True)
def flash_attn(monkeypatch):
    monkeypatch.setattr(memory, "flash_attn_missing", lambda: None)


def test_a_trainer_of_eight_devices_holds_an_eighth_of_16_bytes_a_parameter(composed):
    (update, rollout), warnings = memory_lines(composed(*NODE8), LARGE, 80 * GIB)
    # 7.616e9 x 4 bytes / 8 = 3.5 GiB of weights and of gradients, twice that of Adam's moments;
    # 16,384 x 152,064 x (2 bytes, and 2 of the gradient) = 9.3;
    # (28 x 3,584 + 12 x 3,584 + 4 x 18,944) numbers x 16,384 x 2 bytes = 6.7
    parts = "logits (16,384 tokens x 152,064 x 4 bytes) 9.3, activations 6.7"
    state = "weights 3.5, gradients 3.5, Adam 7.1"
    assert update == f"memory    update 30.2 of 80.0 GiB a device: {state}, {parts}"
    # 0.7 x 80 = 56, 7.616e9 x 2 bytes = 14.2; Adam waits in RAM, the trainer's weights do not
    held = "vLLM (weights 14.2) 56.0, trainer 3.5"
    assert rollout == f"memory    rollout 59.5 of 80.0 GiB a device: {held}"
    assert warnings == []


def test_without_flash_attn_the_logits_are_there_three_times(composed, monkeypatch):
    monkeypatch.setattr(memory, "flash_attn_missing", lambda: "not built")
    update = memory_lines(composed(*NODE8), LARGE, 0)[0][0]
    assert "x 152,064 x 6 bytes) 13.9," in update  # 16,384 x 152,064 x 6


@pytest.mark.parametrize(
    ("given", "total", "warned"),
    [
        # 16,384 tokens take 16.0 GiB, so 131,072 take up to 128
        (["actor_rollout_ref.actor.ppo_max_token_len_per_gpu=131072"], 80, ["the update"]),
        # 0.7 x 24 + 3.5 + 7.1
        ([f"{FSDP}.optimizer_offload=false"], 24, ["the update", "the rollout"]),
        ([f"{FSDP}.offload_policy=true"], 24, []),  # 16.0, and 0.7 x 24
        (["actor_rollout_ref.model.lora_rank=8"], 24, []),  # 3.5 + 16.0, and 16.8 + 3.5
    ],
)
def test_each_thing_that_does_not_fit_gets_a_warning(given, total, warned, composed):
    _, warnings = memory_lines(composed(*NODE8, *given), LARGE, total * GIB)
    assert all(each.startswith(word) for each, word in zip(warnings, warned, strict=True))


def test_neither_an_unknown_model_nor_an_unknown_device_is_refused(composed, monkeypatch):
    lines, (warning,) = memory_lines(composed(*NODE8), object(), GIB)
    assert lines == [] and "is not known" in warning
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    lines, warnings = memory_lines(composed(*NODE8), LARGE, device_memory("cuda"))
    assert "update 30.2 GiB a device" in lines[0] and warnings == []


def kept_bytes(layers: int) -> int:
    sizes = {"hidden_size": 128, "intermediate_size": 512, "num_attention_heads": 4}
    config = Qwen2Config(vocab_size=9, num_hidden_layers=layers, num_key_value_heads=4, **sizes)
    model, kept = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16), []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda each: each):
        model.model(input_ids=torch.zeros(1, 64, dtype=torch.long))
    stored = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in kept}
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    return sum(stored[place] for place in stored.keys() - own)


def test_a_layer_keeps_at_most_what_is_said_for_the_backward_pass():
    numbers = (kept_bytes(3) - kept_bytes(1)) / 2 / 64 / 2  # of a layer and token, in bf16
    assert 0.83 < numbers / (_HIDDEN * 128 + _INNER * 512) <= 1.01
