"""The critic: verl's value workers, with one value a turn where a method has credit of its own."""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from tensordict import TensorDict
from transformers import AutoModelForTokenClassification
from verl.utils import model as verl_model
from verl.utils.metric import AggregationType, Metric
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithValueHead
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.padding import no_padding_2_padding


def _value_model(
    *, local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
) -> torch.nn.Module:
    """Load a model with a value head, with the attention that its configuration names."""
    return AutoModelForTokenClassification.from_pretrained(
        local_path, dtype=torch_dtype, config=model_config, trust_remote_code=trust_remote_code
    )


@EngineRegistry.register(
    model_type="value_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="cpu"
)
class CpuValueEngine(FSDPEngineWithValueHead):
    """verl's value engine where there is no flash attention, which verl names for it alone."""

    def _build_module(self) -> Any:
        with mock.patch.object(verl_model, "load_valuehead_model", _value_model):
            parent: Any = super()  # verl's decorator hides the type of the class
            return parent._build_module()


class CriticWorker(TrainingWorker):
    """verl's training worker; importing its class is what registers the engines above."""


def turn_value_loss(
    model_output: dict[str, Any], data: TensorDict, dp_group: Any = None
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return half the squared error of V at the state before each turn, and metrics.

    V is read at the last token of the prompt, which sees nothing of the response; no other token
    is regressed on. Rows without a token in the loss (padding) do not count.

    Args:
        model_output: ``values``, nested (N, tokens).
        data: ``returns`` and ``response_mask``, nested (N, T); each row has one return, repeated.
        dp_group: Not used.
    """
    values_N = no_padding_2_padding(model_output["values"], data)[:, 0]
    rows = data.select("returns", "response_mask").to_padded_tensor(0)
    is_in_N = rows["response_mask"].sum(dim=-1) > 0
    errors_N = (values_N - rows["returns"][:, 0]) * is_in_N
    loss = 0.5 * (errors_N**2).sum() / data["global_batch_size"] * data["dp_size"]
    return loss, {"vf_loss": Metric(value=loss, aggregation=AggregationType.SUM)}
