"""What a turn costs the worker, compared with a hint level: processor time, without a model.

Real are the rollout loop, the tokenizer, the verifier and the packing for the queue; the server's
responses come from memory, and nothing is sent.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import json
import time
from array import array
from collections.abc import Mapping, Sequence
from statistics import median
from types import SimpleNamespace
from typing import Any

import transfer_queue as tq
from omegaconf import DictConfig
from transfer_queue.utils.serial_utils import encode
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig

from recipe import REPOSITORY
from recipe.hint.adapter import store
from recipe.hint.adapter.engine_builder import EngineBuilder
from recipe.hint.adapter.hint_sources import guarded_source
from recipe.hint.methods import BASELINE, METHODS, RELEASED
from recipe.hint.methods.sage import Sage
from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import build_method, read_texts, settings_of
from recipe.hint.turns import Decision, Round, Row, Train, places
from recipe.problems.schema import Problem, problem_from_row
from recipe.study.bench.settings import TurnCostSettings

FIRST_LEVEL, ALL_LEVELS = (f"{RELEASED[0]}, {what}" for what in ("first level", "all levels"))
_POOL, _PROBLEM_CHARS = 64, 200


class SageOnEveryRow(Sage):
    """SAGE on the rows of every level up to ``last_level``; no response is right."""

    last_level: int

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Escalate as SAGE does, then train on all that was sampled."""
        decision = super().react(problem, state, rounds)
        if rounds[-1].level < self.last_level and not isinstance(decision, Train):
            return decision
        rows = [Row(place, 0.0) for index in range(len(rounds)) for place in places(rounds, index)]
        return Train(tuple(rows))


class _Server:
    """In place of a vLLM replica: pieces of this documentation, each with a wrong answer."""

    def __init__(self, tokenizer: Any, tokens: int, hint_tokens: int) -> None:
        def encoded(text: str) -> list[int]:
            return tokenizer.encode(text, add_special_tokens=False)

        ids = encoded(documentation()[: 8 * _POOL * tokens])
        ends = [encoded(f" \\boxed{{{number}}}") for number in range(_POOL)]
        starts = range(0, len(ids) - tokens, tokens)
        self._pool = [
            (array("q", ids[start : start + tokens]), array("q", end))
            for start, end in zip(starts, ends, strict=False)
        ]
        # In equal parts; 32 tokens for what is around them.
        text = tokenizer.decode(ids[: min(tokens, hint_tokens) - 32])
        cuts = [text[len(text) * level // 3 : len(text) * (level + 1) // 3] for level in range(3)]
        hints = {f"level_{level}": cut for level, cut in enumerate(cuts, 1)}
        self._hints = array("q", encoded(f"```json\n{json.dumps(hints)}\n```"))
        self._writes_hints, self._tokens = hint_tokens > 0, tokens
        self.rewind()
        self.generate_group = SimpleNamespace(remote=self._group)
        self.generate_groups = SimpleNamespace(remote=self._groups)

    def rewind(self) -> None:
        """Begin with the first response again."""
        self._next = itertools.cycle(self._pool)

    def _response(self, num_tokens: int) -> array[int]:
        ids, end = next(self._next)
        return ids[: num_tokens - len(end)] + end

    async def _group(self, *asked: Any) -> Any:
        [group] = await self._groups([asked])
        return group

    async def _groups(self, asked: Sequence[tuple[Any, ...]], *_: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [self._sampled(fields) for _, fields, *_ in asked]

    def _sampled(self, fields: dict[str, Any]) -> dict[str, Any]:
        is_hint = self._writes_hints and fields["n"] == 1
        longest = min(fields["max_tokens"], self._tokens)
        found = [self._hints if is_hint else self._response(longest) for _ in range(fields["n"])]
        return {
            "token_ids": found,
            "log_probs": [array("d", [-0.5]) * len(each) for each in found],
            "finish": ["stop"] * len(found),
            "global_steps": 0,
        }

    async def _acquire_server(self, request_id: str, **_: Any) -> tuple[str, Any]:
        return "memory", self

    def _release_server(self, *_: Any, **__: Any) -> None:
        """Have nothing to do."""


class _Arm:
    """One method on a worker's real parts."""

    def __init__(self, config: DictConfig, model: Any, name: str, tokens: int) -> None:
        config.trainer.method = name if name in METHODS else RELEASED[0]
        settings = settings_of(config)
        texts, method = read_texts(settings), build_method(config.trainer, settings)
        if name in (FIRST_LEVEL, ALL_LEVELS):
            method = SageOnEveryRow(max_level=method.max_level, settings=method.settings)
            method.last_level = 1 if name == FIRST_LEVEL else method.max_level
        hint_tokens = settings.max_tokens if method.uses_hints else 0
        self._server = _Server(model.tokenizer, tokens, hint_tokens)
        worker = SimpleNamespace(
            config=config,
            llm_client=self._server,
            tokenizer=model.tokenizer,
            model_config=model,
            hf_model_type=model.hf_config.model_type,
        )
        engines = EngineBuilder(worker, settings)
        self._grader: Any = engines.grader
        source = guarded_source(
            settings, texts, method, grader=engines.grader, tokenizer=model.tokenizer
        )
        engine = engines.build(config.actor_rollout_ref.rollout, settings)
        self._parts = RolloutParts(method, source, engine, settings, texts)
        self.num_rounds = 0

    async def run_pass(self, count: int) -> None:
        """Roll out ``count`` prompts at once and pack their rows."""
        self._server.rewind()
        publisher = store.Publisher()
        await asyncio.gather(*(self._run(publisher, number) for number in range(count)))

    async def _run(self, publisher: store.Publisher, number: int) -> None:
        row = problem_row(number)
        problem = problem_from_row(row)
        state = ProblemState(step=10**6)  # after every first stage
        outcome = await PromptRollout(problem, state, self._parts).run(row["uid"], 10**6)
        self.num_rounds = len(outcome.record.rounds)
        await publisher.publish(outcome, row, "train")

    def close(self) -> None:
        """End the verifier's processes."""
        self._grader.close()


def measure(config: DictConfig, settings: TurnCostSettings) -> list[str]:
    """Return a table: each method's milliseconds per prompt, and its turns in hint levels."""
    _give_room(config, settings.tokens)
    model: Any = omega_conf_to_dataclass(config.actor_rollout_ref.model, HFModelConfig)
    several = [name for name, cls in METHODS.items() if cls.is_multi_turn]
    names = [BASELINE, FIRST_LEVEL, ALL_LEVELS, *several]
    queue: Any = tq
    queue.async_kv_batch_put = _packed
    arms = {name: _Arm(config, model, name, settings.tokens) for name in names}

    async def found() -> list[dict[str, float]]:
        for arm in arms.values():
            await arm.run_pass(settings.prompts)
        gc.freeze()  # as in the worker
        return [
            {name: await _milliseconds(arms[name], settings.prompts) for name in names[::direction]}
            for _, direction in zip(range(settings.repetitions), itertools.cycle((1, -1)))
        ]

    found_ms = asyncio.run(found())
    for arm in arms.values():
        arm.close()
    return lines_of(found_ms, {name: arm.num_rounds for name, arm in arms.items()})


def _give_room(config: DictConfig, tokens: int) -> None:
    """Set lengths that the third turn of any method fits into; ask no second judge."""
    config.hint.samples.second_judge_share = 0.0
    config.actor_rollout_ref.rollout.update(
        n=8, prompt_length=4 * tokens + 4096, response_length=tokens, max_model_len=32768
    )


async def _milliseconds(arm: _Arm, count: int) -> float:
    """Return the processor time of one prompt, a mean over ``count`` that run at once."""
    start = time.process_time()
    await arm.run_pass(count)
    return 1000 * (time.process_time() - start) / count


async def _packed(keys: Any, partition_id: str, tags: Any, fields: Any = None) -> None:
    """Pack a write for the queue and send it nowhere."""
    encode({"keys": keys, "tags": tags, "fields": dict(fields or {})})


def lines_of(found_ms: Sequence[Mapping[str, float]], num_rounds: Mapping[str, int]) -> list[str]:
    """Return the table of milliseconds by repetition and method, as medians.

    The unit is a hint level: the first, for which the hints of all are written, or the mean of all.
    """

    def beyond(row: Mapping[str, float], name: str) -> float:
        return (row[name] - row[BASELINE]) / (num_rounds[name] - 1)

    lines = ["method | rounds | ms a prompt | a round, in first levels | in mean levels"]
    for name, rounds in num_rounds.items():
        line = f"{name} | {rounds} | {median(row[name] for row in found_ms):.2f}"
        if rounds > 1:
            for unit in (FIRST_LEVEL, ALL_LEVELS):
                shares = (beyond(row, name) / beyond(row, unit) for row in found_ms)
                line += f" | {median(shares):.2f}"
        lines.append(line)
    return lines


@functools.cache
def documentation() -> str:
    """Return the text that responses are pieces of, without names of special tokens."""
    texts = (path.read_text("utf-8") for path in sorted(REPOSITORY.glob("docs/*.md")))
    return "\n\n".join(texts).replace("<|", "<")


def problem_row(number: int) -> dict[str, Any]:
    """Return a row as a worker receives it; no response has its answer."""
    start = _PROBLEM_CHARS * number
    text = documentation()[start : start + _PROBLEM_CHARS]
    return {
        "uid": f"uid-{number}",
        "global_steps": 10**6,
        "raw_prompt": [
            {"role": "system", "content": ANSWER_SYSTEM_PROMPT},
            {"role": "user", "content": text},
        ],
        "problem": text,
        "solution": "Look at the last two digits.",
        "data_source": "memory",
        "reward_model": {"style": "rule", "ground_truth": f"{70000 + number}"},
        "extra_info": {"index": f"memory/{number}"},
    }
