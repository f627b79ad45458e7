"""What verl sends of a model with a LoRA adapter."""

import inspect

import pytest
import torch
from omegaconf import OmegaConf
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from verl.utils.fsdp_utils import collect_lora_params
from verl.workers.engine.fsdp.transformer_impl import FSDPEngine
from verl.workers.engine_workers import ActorRolloutRefWorker

from recipe import REPOSITORY
from recipe.hint.adapter.models import read_base_of_adapter


def test_to_devices_of_their_own_verl_sends_the_model_without_its_adapter(monkeypatch):
    # Why lora_rank is refused in mode separate_async. If this fails, the refusal may go.
    monkeypatch.setattr("verl.utils.fsdp_utils.fsdp_version", lambda _: 0)
    base = AutoModelForCausalLM.from_pretrained(REPOSITORY / "data/tiny/base")
    whole = {name: weight.clone() for name, weight in base.state_dict().items()}
    model = get_peft_model(base, LoraConfig(r=8, target_modules="all-linear"))
    sync = inspect.getsource(ActorRolloutRefWorker.update_weights)
    assert "get_per_tensor_param()" in sync
    default = (
        inspect.signature(FSDPEngine.get_per_tensor_param).parameters["base_sync_done"].default
    )
    sent = collect_lora_params(model, layered_summon=False, base_sync_done=default)
    assert sent.keys() == whole.keys()
    assert all(torch.equal(sent[name], weight) for name, weight in whole.items())
    adapter = collect_lora_params(model, layered_summon=False, base_sync_done=True)
    assert all("lora_" in name for name in adapter)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"lora_rank": 0, "lora_adapter_path": None}, "dummy"),
        ({"lora_rank": 8, "lora_adapter_path": None}, "auto"),
        ({"lora_rank": 0, "lora_adapter_path": "folder"}, "dummy"),
        ({"lora_rank": 8, "lora": {"merge": False}}, "auto"),
        ({"lora_rank": 8, "lora": {"merge": True}}, "dummy"),
    ],
)
def test_under_an_adapter_vllm_reads_the_model_itself_and_verl_sends_the_adapter_alone(
    model, expected
):
    nodes = {"model": model, "rollout": {"load_format": "dummy"}}
    config = OmegaConf.create({"actor_rollout_ref": nodes})
    read_base_of_adapter(config)
    assert config.actor_rollout_ref.rollout.load_format == expected
    worker = inspect.getsource(ActorRolloutRefWorker)
    assert 'base_sync_done: bool = "dummy" not in self.config.rollout.load_format' in worker
