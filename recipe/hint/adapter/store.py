"""TransferQueue, in the one file that knows it: what a run publishes there, and reads back."""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import transfer_queue as tq
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu

from recipe.hint.credit.base import DROPPED, CreditRow
from recipe.hint.record import Outcome, PromptRecord, PublishedRow
from recipe.hint.schema import Response
from recipe.problems.schema import HINT_COLUMN_PREFIX
from recipe.run.typed import fields_of

# What a row carries beside verl's own, in its `extra_fields`.
RECORD_FIELD, SAMPLE_FIELD, CREDIT_FIELD = "hint_record", "hint_sample", "hint_credit"
STATE_FIELD = "hint_state_of_problem"
# Columns that only the rollout needs; the queue would hold each of them G times.
_NOT_STORED = {"problem", "solution", "answer", STATE_FIELD, "agent_name"}
# Columns that verl expects and that are empty here.
_EMPTY: dict[str, Any] = {"metrics": {}, "multi_modal_inputs": {}}
_PROMPTS_PER_WRITE = 16  # packing more would block the event loop for longer


def open_queue(config: Any = None) -> None:
    """Start the queue of the driver's ``transfer_queue`` node; without it, join the run's."""
    tq.init(config)


def close_queue() -> None:
    tq.close()


def tags_of(partition: str) -> dict[str, dict[str, Any]]:
    """Return the tags of all keys of a partition: of prompts (``is_prompt``) and of rows."""
    return (tq.kv_list(partition) or {}).get(partition, {})


def read_columns(keys: Sequence[str], partition: str, names: Sequence[str]) -> Any:
    """Return columns of rows as a TensorDict; one that no row has is left out."""
    return tq.kv_batch_get(keys=list(keys), partition_id=partition, select_fields=list(names))


def write_columns(keys: Sequence[str], partition: str, columns: dict[str, torch.Tensor]) -> Any:
    """Write columns of rows, and return verl's batch of these rows."""
    fields = TensorDict(columns, batch_size=len(keys))
    return tq.kv_batch_put(keys=list(keys), partition_id=partition, fields=fields)


def read_records(keys: Sequence[str], partition: str) -> list[tuple[PromptRecord, bytes]]:
    """Return the record and the sample that each of these first rows carries."""
    extras = _extras(read_columns(keys, partition, ["extra_fields"]))
    return [(PromptRecord.from_json(extra[RECORD_FIELD]), extra[SAMPLE_FIELD]) for extra in extras]


def credit_rows(data: Any, places: Sequence[int]) -> list[CreditRow]:
    """Return the rows at ``places`` of read columns, with the critic's values if there are any."""
    extras = _extras(data)
    values = data["values"].to_padded_tensor(0.0)[:, 0].tolist() if "values" in data else None
    return [
        CreditRow(**extras[place][CREDIT_FIELD] | {"value": values[place] if values else None})
        for place in places
    ]


def _extras(data: Any) -> list[Any]:
    return [tu.unwrap_non_tensor_data(each) for each in data["extra_fields"]]


def clean_restored_queue(partition: str = "train") -> None:
    """Retry the failed prompts of a restored queue, and remove the rows that have no prompt.

    A checkpoint may hold the failure that ended its run: the vLLM server died while it was written.
    The rows are those of the step that was saved: verl clears a step's rows after its save. Nothing
    takes restored ones out again, and each later checkpoint would hold them.
    """
    tags = tags_of(partition)
    prompts = {key for key, tag in tags.items() if tag.get("is_prompt")}
    if failed := [key for key in prompts if tags[key]["status"] == "failure"]:
        fresh = {"is_prompt": True, "status": "pending", "is_fatal": False}
        tq.kv_batch_put(keys=failed, partition_id=partition, tags=[fresh for _ in failed])
    if rows := [key for key in tags.keys() - prompts if key.split("_")[0] not in prompts]:
        tq.kv_clear(keys=rows, partition_id=partition)


async def mark(uids: Sequence[str], partition: str, status: str, **tags: Any) -> None:
    """Set the status of prompts, which verl sends as ``pending``: ``finished`` or ``failure``."""
    await tq.async_kv_batch_put(
        keys=list(uids), partition_id=partition, tags=[{"status": status, **tags} for _ in uids]
    )


@dataclass(slots=True, eq=False)
class _Finished:
    """A prompt rollout that waits to be written."""

    outcome: Outcome
    row: dict[str, Any]
    partition: str
    is_written: bool = False


class Publisher:
    """Writes finished rollouts, one call at a time; those that finish during a call share the next.

    A batch write is four round trips for any number of rows.
    """

    def __init__(self) -> None:
        self._waiting: list[_Finished] = []
        self._lock = asyncio.Lock()

    async def publish(self, outcome: Outcome, row: dict[str, Any], partition: str) -> None:
        """Write the rows that train to ``train`` or ``val``, then mark the prompt as finished.

        ``row`` is the prompt as verl's worker received it.

        Raises:
            Exception: What the queue raises for these rows. Others of the same write are stored.
        """
        mine = _Finished(outcome, row, partition)
        self._waiting.append(mine)
        await asyncio.sleep(0)  # for those that finish at the same time
        try:
            async with self._lock:  # in the order of the waiting
                if not mine.is_written:
                    await self._write(mine)
        finally:
            self._waiting.remove(mine)

    async def _write(self, mine: _Finished) -> None:
        """Write with those behind it; if that fails, alone, so that only faulty ones raise."""
        batch = [
            each
            for each in self._waiting
            # With the same columns: verl takes them from the first row.
            if (each.partition, each.row.keys()) == (mine.partition, mine.row.keys())
            and not each.is_written
        ][:_PROMPTS_PER_WRITE]
        try:
            await _put(batch, mine.partition)
        except Exception:
            if len(batch) == 1:
                raise
            batch = [mine]
            await _put(batch, mine.partition)
        for each in batch:
            each.is_written = True


async def _put(finished: Sequence[_Finished], partition: str) -> None:
    keys: list[str] = []
    try:
        rows = []
        for each in finished:
            for row in rows_of(each.outcome, each.row):
                rows.append(row)
                await asyncio.sleep(0)  # a row of 32,000 tokens takes 15 ms
        keys, fields, tags = (list(column) for column in zip(*rows, strict=True))
        columns = tu.list_of_dict_to_tensordict(fields)
        await tq.async_kv_batch_put(keys=keys, fields=columns, tags=tags, partition_id=partition)
        await mark([each.outcome.record.uid for each in finished], partition, "finished")
    except Exception:
        # A failed write leaves keys whose rows nobody can read. Its error is the one to tell.
        with contextlib.suppress(Exception):
            await tq.async_kv_clear(keys, partition)
        raise


def rows_of(
    outcome: Outcome, row: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield key, fields and tag of each row; record and sample travel on the first.

    A key is UID_ROW_0: to verl each row is a session of one turn, whatever ``CreditRow`` says. verl
    normalises the rewards of rows with the same ``uid`` together: that of the prompt, and
    ``uid/GROUP`` where a row has a group of its own. ``row`` is the prompt as verl's worker
    received it; each row of the queue has the prompt of its own turn.
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
        versions = {"min_global_steps": response.min_step, "max_global_steps": response.max_step}
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
        if not is_sampled:
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
