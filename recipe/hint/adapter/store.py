"""Publish prompt rollouts to TransferQueue: rows under verl's keys, many in one batch write."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import transfer_queue as tq

from recipe.hint.credit.rows import DROPPED
from recipe.hint.record import Outcome, PublishedRow
from recipe.hint.schema import Response
from recipe.problems.schema import HINT_COLUMN_PREFIX
from recipe.run.typed import fields_of

RECORD_FIELD, SAMPLE_FIELD, CREDIT_FIELD = "hint_record", "hint_sample", "hint_credit"
STATE_FIELD = "hint_state_of_problem"
# Columns that only the rollout needs; the queue would hold each of them G times.
_NOT_STORED = {"problem", "solution", "answer", "first_attempts", STATE_FIELD, "agent_name"}
# Columns that verl expects and that are empty here.
_EMPTY: dict[str, Any] = {"metrics": {}, "multi_modal_inputs": {}}
_PROMPTS_PER_WRITE = 16  # packing more would block the event loop for longer
warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors is in prototype")


async def mark(uids: Sequence[str], partition: str, status: str, **tags: Any) -> None:
    """Set the status of prompts: ``running``, then ``finished`` or ``failure``."""
    await tq.async_kv_batch_put(
        keys=list(uids),
        partition_id=partition,
        tags=[{"status": status, **tags} for _ in uids],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    """A prompt rollout that waits to be written."""

    outcome: Outcome
    row: dict[str, Any]
    partition: str
    is_written: asyncio.Future[None]


class Publisher:
    """Writes finished rollouts, one call at a time; those that finish during a call share the next.

    A batch write is four round trips for any number of rows.
    """

    def __init__(self) -> None:
        self._waiting: list[_Finished] = []
        self._task: asyncio.Task[None] | None = None

    async def publish(self, outcome: Outcome, row: dict[str, Any], partition: str) -> None:
        """Write the rows that train, then mark the prompt as finished.

        Args:
            outcome: The result of the rollout.
            row: The prompt as verl's worker received it.
            partition: ``train`` or ``val``.

        Raises:
            Exception: What the queue raises for these rows. Others of the same write are stored.
            RuntimeError: The write was cancelled.
        """
        is_written = asyncio.get_running_loop().create_future()
        self._waiting.append(_Finished(outcome, row, partition, is_written))
        if self._task is None:
            self._task = asyncio.create_task(self._write_waiting())
        await is_written

    async def _write_waiting(self) -> None:
        finished: list[_Finished] = []
        try:
            while self._waiting:
                # With the same columns: verl takes them from the first row.
                first = self._waiting[0]
                finished = [
                    each
                    for each in self._waiting
                    if (each.partition, each.row.keys()) == (first.partition, first.row.keys())
                ][:_PROMPTS_PER_WRITE]
                self._waiting = [each for each in self._waiting if each not in finished]
                await _write_or_blame(finished, first.partition)
        finally:
            self._task = None
            # None is left, unless the write was cancelled, here or in TransferQueue.
            left, self._waiting = [*finished, *self._waiting], []
            for each in left:
                if not each.is_written.done():
                    error = RuntimeError("the write to TransferQueue was cancelled; see its logs")
                    each.is_written.set_exception(error)


async def _write_or_blame(finished: list[_Finished], partition: str) -> None:
    """Write all at once; if that fails, write each prompt alone, so that only faulty ones raise.

    A failed write leaves keys in the queue whose rows nobody can read: they are removed.
    """
    keys: list[str] = []
    try:
        rows = []
        for each in finished:
            for row in rows_of(each.outcome, each.row):
                rows.append(row)
                await asyncio.sleep(0)  # a row of 32,000 tokens takes 15 ms
        keys, fields, tags = (list(column) for column in zip(*rows, strict=True))
        columns: Any = Columns(fields)
        await tq.async_kv_batch_put(keys=keys, fields=columns, tags=tags, partition_id=partition)
        await mark([each.outcome.record.uid for each in finished], partition, "finished")
    except Exception as error:  # noqa: BLE001 - whatever it is, the prompt raises it
        if len(finished) > 1:
            for each in finished:
                await _write_or_blame([each], partition)
            return
        with contextlib.suppress(Exception):  # the first error is the one to tell
            await tq.async_kv_clear(keys, partition)
        if not finished[0].is_written.done():
            finished[0].is_written.set_exception(error)
        return
    for each in finished:
        if not each.is_written.done():
            each.is_written.set_result(None)


class Columns(dict[str, Any]):
    """Rows as columns, in place of a TensorDict, which would wrap and unwrap every plain value.

    Tensors of equal shape are stacked, as in verl.
    """

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        super().__init__({name: _column([row[name] for row in rows]) for name in rows[0]})
        self.batch_size = torch.Size([len(rows)])


def _column(values: list[Any]) -> Any:
    if not isinstance(values[0], torch.Tensor):
        return values
    if len({value.shape for value in values}) == 1:
        return torch.stack(values)
    # TransferQueue unpacks it three times, which takes ten times as long with a jagged layout.
    return torch.nested.as_nested_tensor(values, layout=torch.strided)


def rows_of(
    outcome: Outcome, row: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield key, fields and tag of each row; record and sample travel on the first.

    A key is UID_ROW_0: to verl each row is a session of one turn, whatever ``CreditRow`` says.

    verl normalises the rewards of rows with the same ``uid`` together: that of the prompt, and
    ``uid/GROUP`` where a row has a group of its own. Each row has the prompt of its own turn.

    Args:
        outcome: The result of the rollout.
        row: The prompt as verl's worker received it.
    """
    shared = {
        name: value
        for name, value in (row | _EMPTY).items()
        if name not in _NOT_STORED and not name.startswith(HINT_COLUMN_PREFIX)
    }
    uid, step = outcome.record.uid, row["global_steps"]
    for number, trained in enumerate(outcome.rows):
        credit, response, verdict = trained.credit, trained.turn.response, trained.turn.verdict
        num_tokens = len(response.token_ids_T)
        is_sampled = num_tokens > 0 and not response.is_given
        if not is_sampled:  # as if the weights of the step before had sampled it with certainty
            certain: dict[str, Any] = {"min_step": step - 1, "max_step": step - 1}
            response = replace(response, log_probs_T=[0.0] * num_tokens, **certain)
        tensors = _tensors(trained, response)
        versions = {
            "min_global_steps": response.min_step,
            "max_global_steps": response.max_step,
        }
        info = {  # what verl's validation and its dumps read of a row
            "acc": verdict.score if verdict else 0.0,
            "reason": verdict.reason if verdict else "",
            "extracted": verdict.extracted[:200] if verdict else "",
            **credit.facts,
        }
        extra = {
            "turn_scores": [],
            "tool_rewards": [],
            "reward_extra_info": info,
            **versions,
            RECORD_FIELD: outcome.record.as_json() if number == 0 else None,
            SAMPLE_FIELD: outcome.sample if number == 0 else b"",
            CREDIT_FIELD: fields_of(credit),
        }
        fields = {**tensors, **shared, "num_turns": 2 * (credit.turn + 1), "extra_fields": extra}
        if credit.group:
            fields["uid"] = f"{uid}/{credit.group}"
        tag = {
            "status": "success",
            "prompt_len": len(tensors["prompts"]),
            "response_len": len(tensors["responses"]),
            "seq_len": len(tensors["input_ids"]),
            "global_steps": step,
            **versions,
        }
        # What was not sampled as the trainer computes is not compared with it.
        if not (is_sampled and trained.is_sampled_alike):
            tag["is_not_compared"] = True
        yield f"{uid}_{number}_0", fields, tag


def _tensors(trained: PublishedRow, response: Response) -> dict[str, torch.Tensor]:
    """Return the tensors of one row in verl's layout.

    A teacher's text has no tokens and gets one, since verl needs at least one per row. A dropped
    row keeps one token in the loss: its reward is 0, so it adds nothing, and a batch of dropped
    groups still has a mean.
    """
    prompt_T, response_T = (
        torch.from_numpy(np.frombuffer(array("q", ids_T), dtype=np.int64))
        for ids_T in (trained.prompt_ids_T, response.token_ids_T or [0])
    )
    mask_T = torch.ones_like(response_T)
    if DROPPED in trained.credit.facts:
        mask_T[:-1] = 0
    rewards_T = torch.zeros(len(response_T))
    # With 16 significant bits the float32 sum of equal rewards is exact, and so is their mean. verl
    # would see a deviation in eight of 1.3, and give each row the advantage -0.1.
    rewards_T[-1] = (torch.tensor(float(trained.credit.reward)).view(torch.int32) & ~0xFF).view(
        torch.float32
    )
    log_probs_T = np.array(response.log_probs_T or [0.0], dtype=np.float32)
    return {
        "prompts": prompt_T,
        "responses": response_T,
        "input_ids": torch.cat([prompt_T, response_T]),
        "position_ids": torch.arange(len(prompt_T) + len(response_T)),
        "response_mask": mask_T,
        "loss_mask": mask_T,
        "rollout_log_probs": torch.from_numpy(log_probs_T),
        "rm_scores": rewards_T,
    }
