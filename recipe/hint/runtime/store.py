"""Publishing visits to TransferQueue: whole groups under verl's keys, many in one put."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transfer_queue as tq
from tensordict import NonTensorData
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from recipe.hint.hints.engine import Response
from recipe.hint.rollout import Outcome
from recipe.hint.schema import Verdict

# Columns that only the visit needs; every row of the queue would carry them G times.
_NOT_STORED = ("problem", "solution", "answer", "hint_state_of_problem", "agent_name")
_HINT_COLUMN = "hint_level_"
RECORD_FIELD, SAMPLE_FIELD = "hint_record", "hint_sample"
# Building the rows of a put holds up the event loop, about a millisecond a visit.
_VISITS_PER_PUT = 16


async def mark(uids: Sequence[str], partition: str, status: str, **tags: Any) -> None:
    """Set the status of prompts: running, then exactly one of finished and failure."""
    await tq.async_kv_batch_put(
        keys=list(uids),
        partition_id=partition,
        tags=[{"status": status, **tags} for _ in uids],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    """One visit that waits for its put; ``is_there`` is set when its rows can be read."""

    outcome: Outcome
    row: dict[str, Any]
    partition: str
    is_there: asyncio.Future[None]

    def shares_put_with(self, other: _Finished) -> bool:
        """verl takes the columns of a put from its first row and drops what only others have."""
        return self.partition == other.partition and self.row.keys() == other.row.keys()


class Publisher:
    """Puts finished visits, one call after the other; what ends during a call shares the next one.

    A put is four round trips for any number of rows.
    """

    def __init__(self) -> None:
        self._waiting: list[_Finished] = []
        self._task: asyncio.Task[None] | None = None

    async def publish(self, outcome: Outcome, row: dict[str, Any], partition: str) -> None:
        """Put the kept rollouts, then mark the prompt as finished.

        Args:
            outcome: What the visit decided.
            row: The prompt as verl's worker received it.
            partition: ``train`` or ``val``.

        Raises:
            Exception: What the queue raises for these rows; visits of the same put that can be
                stored are.
        """
        is_there = asyncio.get_running_loop().create_future()
        self._waiting.append(_Finished(outcome, row, partition, is_there))
        if self._task is None:
            self._task = asyncio.create_task(self._put_waiting())
        await is_there

    async def _put_waiting(self) -> None:
        try:
            while self._waiting:
                first = self._waiting[0]
                visits = [each for each in self._waiting if each.shares_put_with(first)]
                visits = visits[:_VISITS_PER_PUT]
                self._waiting = [each for each in self._waiting if each not in visits]
                await _put_or_blame(visits, first.partition)
        finally:
            self._task = None


async def _put_or_blame(visits: list[_Finished], partition: str) -> None:
    """One put; when it fails, each visit alone, so that the error reaches those it belongs to."""
    try:
        rows = [row for each in visits for row in rows_of(each.outcome, each.row)]
        keys, fields, tags = (list(column) for column in zip(*rows, strict=True))
        await tq.async_kv_batch_put(
            keys=keys, fields=list_of_dict_to_tensordict(fields), tags=tags, partition_id=partition
        )
        await mark([each.outcome.record.uid for each in visits], partition, "finished")
    except Exception as error:  # noqa: BLE001 - whatever it is, the visit raises it
        if len(visits) > 1:
            for visit in visits:
                await _put_or_blame([visit], partition)
        elif not visits[0].is_there.done():
            visits[0].is_there.set_exception(error)
        return
    for visit in visits:
        if not visit.is_there.done():
            visit.is_there.set_result(None)


def rows_of(
    outcome: Outcome, row: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Key, fields and tag of each kept rollout; record and sample travel on the group's first.

    All rows have the same uid, so verl normalises their rewards together; each row has the prompt
    of its own rollout. Of a dropped group every reward is 0 and one token a row is left in the
    loss, so that it adds nothing and a batch of dropped groups still has a mean.

    Args:
        outcome: What the visit decided.
        row: The prompt as verl's worker received it.
    """
    # The same object for all rows: wrapping a value for the queue costs more than reading it.
    shared = {
        name: value if isinstance(value, torch.Tensor) else NonTensorData(value)
        for name, value in row.items()
        if not _is_of_the_visit(name)
    }
    for session, (prompt_ids_T, response, verdict, score) in enumerate(_rollouts(outcome)):
        info = {
            "acc": verdict.score,
            "reason": verdict.reason,
            "extracted": verdict.extracted[:200],
        }
        extra = {
            "turn_scores": [],
            "tool_rewards": [],
            "reward_extra_info": info,
            "min_global_steps": response.min_step,
            "max_global_steps": response.max_step,
            RECORD_FIELD: outcome.record.as_json() if session == 0 else None,
            SAMPLE_FIELD: outcome.sample if session == 0 else b"",
        }
        field = _fields(prompt_ids_T, response, score, extra) | shared
        if outcome.record.is_dropped:
            field["response_mask"][:-1] = 0
        prompt_T = torch.tensor(prompt_ids_T, dtype=torch.int64)
        field["loss_mask"] = field["response_mask"]
        field["input_ids"] = torch.cat([prompt_T, field["responses"]])
        field["position_ids"] = torch.arange(len(field["input_ids"]), dtype=torch.int64)
        field["multi_modal_inputs"] = {}
        key = f"{outcome.record.uid}_{session}_0"
        yield key, field, _tag(row, response, len(prompt_T))


def _is_of_the_visit(name: str) -> bool:
    return name in _NOT_STORED or name.startswith(_HINT_COLUMN)


def _rollouts(outcome: Outcome) -> Iterator[tuple[list[int], Response, Verdict, float]]:
    """Prompt, answer, verdict and reward of each rollout that trains."""
    for group in outcome.groups:
        for response, verdict, score in zip(
            group.responses_G, group.verdicts_G, group.scores_G, strict=True
        ):
            yield group.prompt_ids_T, response, verdict, score


def _fields(
    prompt_ids_T: list[int], response: Response, score: float, extra: dict[str, Any]
) -> dict[str, Any]:
    """verl's own row layout for one single-turn answer."""
    return AgentLoopOutput(
        prompt_ids=prompt_ids_T,
        response_ids=response.token_ids_T,
        response_mask=[1] * len(response.token_ids_T),
        response_logprobs=response.log_probs_T,
        reward_score=score,
        num_turns=2,
        metrics=AgentLoopMetrics(),
        extra_fields=extra,
    ).as_dict()


def _tag(row: dict[str, Any], response: Response, prompt_len: int) -> dict[str, Any]:
    response_len = len(response.token_ids_T)
    return {
        "status": "success",
        "prompt_len": prompt_len,
        "response_len": response_len,
        "seq_len": prompt_len + response_len,
        "global_steps": row["global_steps"],
        "min_global_steps": response.min_step,
        "max_global_steps": response.max_step,
    }
