"""The critic: verl's value workers with one value a turn, and ArCHer's critic of utterances."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch.distributed.fsdp import FSDPModule
from verl.single_controller.base import decorator
from verl.utils import tensordict_utils as tu
from verl.utils.device import get_torch_device
from verl.utils.metric import AggregationType, Metric
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithValueHead
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.padding import no_padding_2_padding

from recipe.hint.credit.archer import expectile_weights

# What a type checker sees as the base: verl's decorator hides the type of the class.
_ValueEngine: Any = FSDPEngineWithValueHead
_Worker: Any = TrainingWorker
_on_every_process = decorator.register(dispatch_mode=getattr(decorator.Dispatch, "ONE_TO_ALL"))  # noqa: B009 - verl registers it


class CriticWorker(_Worker):
    """verl's worker of a critic, whose head begins with the same weights in every run.

    verl draws them from an unseeded generator; ``critic.fsdp.seed`` seeds it here.
    """

    @_on_every_process
    def reset(self) -> None:
        """Build the model."""
        torch.manual_seed(self.engine_config.seed)
        self.engine.initialize()


def turn_value_loss(
    model_output: dict[str, Any], data: TensorDict, dp_group: Any = None
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return half the squared error of V at the state before each turn, and metrics.

    V is read at the last token of the prompt, which sees nothing of the response. Rows without a
    token in the loss (padding) do not count. Nested: ``values`` (N, tokens), ``returns`` (one a
    row, repeated) and ``response_mask`` (N, T).
    """
    values_N = no_padding_2_padding(model_output["values"], data)[:, 0]
    rows = data.select("returns", "response_mask").to_padded_tensor(0)
    is_in_N = rows["response_mask"].sum(dim=-1) > 0
    errors_N = (values_N - rows["returns"][:, 0]) * is_in_N
    loss = 0.5 * (errors_N**2).sum() / data["global_batch_size"] * data["dp_size"]
    return loss, {"vf_loss": Metric(value=loss, aggregation=AggregationType.SUM)}


UTTERANCE = "utterance_critic"


class Heads(torch.nn.Linear):
    """A linear layer in float32, also where the model computes in less.

    An advantage is a small difference of two values; near 1, bfloat16 has steps of 1/256.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the values of each token."""
        with torch.autocast(input.device.type, enabled=False):
            bias = None if self.bias is None else self.bias.float()
            return torch.nn.functional.linear(input.float(), self.weight.float(), bias)


@EngineRegistry.register(model_type=UTTERANCE, backend=["fsdp", "fsdp2"], device=["cuda", "npu"])
class UtteranceEngine(_ValueEngine):
    """Four heads on a causal language model: Q1 and Q2 of an utterance, V1 and V2 of its state.

    One pass over state and utterance gives all of them: V is read at the last token of the state,
    Q at the last one of the utterance.
    """

    def _build_module(self) -> Any:
        self.model_config.model_type = "value_model"  # what verl's own builder asserts
        module = super()._build_module()
        old = module.score
        module.score = Heads(old.in_features, 4, bias=old.bias is not None, dtype=old.weight.dtype)
        torch.nn.init.normal_(module.score.weight, std=module.config.initializer_range)
        if old.bias is not None:
            torch.nn.init.zeros_(module.score.bias)
        module.num_labels = 4
        return module

    def prepare_model_outputs(
        self, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: Any
    ) -> dict[str, torch.Tensor]:
        """Return ``utterance``: Q1, Q2, V1, V2 of each row, (N, 4)."""
        offsets = micro_batch["input_ids"].offsets()
        logits = output.logits
        if tu.get_non_tensor_data(data=micro_batch, key="use_remove_padding", default=True):
            heads_T4 = self._gather_and_unpad_packed(logits.squeeze(0), output_args["pad_size"])
            starts_N = offsets[:-1]
        else:
            heads_T4 = logits.flatten(0, 1)
            starts_N = torch.arange(len(logits), device=logits.device) * logits.shape[1]
        q_N2 = heads_T4[starts_N + offsets.diff() - 1, :2]
        v_N2 = heads_T4[starts_N + micro_batch["prompts"].offsets().diff() - 1, 2:]
        return {"utterance": torch.cat([q_N2, v_N2], dim=-1)}


def utterance_loss(
    model_output: dict[str, Any], data: TensorDict, dp_group: Any = None, *, expectile: float
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return the squared errors of Q and of V, each where its rows have a target, and metrics.

    ``utterance`` is (N, 4), ``q_targets`` and ``v_targets`` (N, 2): NaN where a row has none. For
    ``expectile`` see ``expectile_weights``; 0.5 is half the squared error.
    """
    heads_N4 = model_output["utterance"]
    q_N2, v_N2 = heads_N4[:, :2], heads_N4[:, 2:]
    weights_N2 = expectile_weights(data["v_targets"], v_N2.detach(), expectile)
    scale = data["dp_size"] / data["global_batch_size"]
    q_loss = 0.5 * _squares(q_N2, data["q_targets"]).sum()
    v_loss = (weights_N2 * _squares(v_N2, data["v_targets"])).sum()
    return (q_loss + v_loss) * scale, {
        name: Metric(value=value * scale, aggregation=AggregationType.SUM)
        for name, value in (("q_loss", q_loss), ("v_loss", v_loss))
    }


def _squares(found: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return squared errors; 0 and without a gradient where there is no target."""
    has_target = ~targets.isnan()
    return torch.where(has_target, found - torch.where(has_target, targets, 0.0), 0.0) ** 2


class UtteranceCriticWorker(CriticWorker):
    """ArCHer's critic and its slow target: a second set of the weights that this process holds.

    The target replaces the weights while it is evaluated, on each process's own shards. It is never
    trained, and evaluated in evaluation mode. It is in float32, whatever the weights are: a slow
    step is less than the rounding of bfloat16.
    """

    def __init__(self, config: Any) -> None:
        TrainingWorker.__init__(self, dataclasses.replace(config, model_type=UTTERANCE))
        self._target: list[torch.Tensor] = []

    @_on_every_process
    def reset(self) -> None:
        """Build the model; the target begins with its weights."""
        CriticWorker.reset(self)
        self._target = [each.detach().to(torch.float32, copy=True) for each in self._shards()]

    @decorator.register(
        dispatch_mode=decorator.make_nd_compute_dataproto_dispatch_fn(mesh_name="train"),
        blocking=False,
    )
    def infer_target(self, data: TensorDict) -> TensorDict:
        """Return ``utterance`` of the slow target, (N, 4)."""
        kept = [each.clone() for each in self._shards()]
        _copy(self._target, self._shards())
        try:
            return self.infer_batch(data)
        finally:
            _copy(kept, self._shards())

    @_on_every_process
    def soft_update(self, tau: float) -> tuple[float, float]:
        """Move the target to the weights; return its squared distance and their own square."""
        lag, size = 0.0, 0.0
        for target, online in zip(self._target, self._shards(), strict=True):
            online = online.to(target.device, torch.float32)
            target.copy_(target + tau * (online - target))
            lag += (target - online).square().sum().item()
            size += online.square().sum().item()
        return lag, size

    @_on_every_process
    def save_checkpoint(
        self, local_path: str, hdfs_path: Any = None, global_step: int = 0, **keep: Any
    ) -> None:
        """Save model, optimizer and this process's part of the target."""
        self.engine.save_checkpoint(local_path, hdfs_path, global_step, **keep)
        torch.save(self._target, self._target_file(local_path))

    @_on_every_process
    def load_checkpoint(
        self, local_path: str, hdfs_path: Any = None, del_local_after_load: bool = False
    ) -> None:
        """Load what :meth:`save_checkpoint` saved, on as many processes."""
        target = torch.load(self._target_file(local_path), weights_only=True)
        self.engine.load_checkpoint(local_path, hdfs_path, del_local_after_load)
        _copy(target, self._target)

    def _target_file(self, folder: str) -> Path:
        return Path(folder) / f"target_world_size_{self.world_size}_rank_{self.rank}.pt"

    def _shards(self) -> list[torch.Tensor]:
        """Return the part of each parameter that this process holds, where it is now.

        verl moves them to the CPU without waiting for the copy. FSDP must gather all parameters
        again, so that it sees what is written to the shards: the root of FSDP1 keeps those of the
        last evaluation, and every module of FSDP2 does where ``reshard_after_forward`` is off.
        """
        get_torch_device().synchronize()
        module = self.engine.module
        for handle in getattr(module, "_all_handles", None) or ():
            if handle.uses_sharded_strategy:
                handle.reshard(free_unsharded_flat_param=True)
        for each in module.modules():
            if isinstance(each, FSDPModule):
                each.reshard()
        parameters = [each.data for each in module.parameters()]
        return [each.to_local() if hasattr(each, "to_local") else each for each in parameters]


def _copy(values: list[torch.Tensor], to: list[torch.Tensor]) -> None:
    for each, value in zip(to, values, strict=True):
        each.copy_(value)
