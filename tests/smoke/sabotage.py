"""Faults and odd prompts, loaded into the processes of one run by its environment."""

import os
import time
from contextvars import ContextVar

from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer

from recipe.hint.adapter import group_client
from recipe.hint.rollout import PromptRollout


def _raise_at_the_second_sync() -> None:
    original = transfer.BucketedWeightReceiver.receive_weights
    seen = []

    def receive(self, on_bucket_received):
        seen.append(1)
        if len(seen) > 1:
            raise RuntimeError("injected: the receiver cannot load the weights")
        return original(self, on_bucket_received)

    transfer.BucketedWeightReceiver.receive_weights = receive


def _jump(by_s: float, after_s: float = 15.0) -> None:
    """Set the clock, as Python sees it, after some time of this process."""
    original, began = time.time, time.monotonic()
    time.time = lambda: original() + (by_s if time.monotonic() - began > after_s else 0.0)


def _fail_prompts(numbers: set[int] | None) -> None:
    """Raise in the rollouts with these numbers, in the order of their start; None: in all."""
    original = PromptRollout.run
    started = []

    async def run(self, uid, step):
        started.append(uid)
        if numbers is None or len(started) in numbers:
            raise RuntimeError("injected: this prompt cannot be sampled")
        return await original(self, uid, step)

    PromptRollout.run = run


def _make_one_group_long(number: int, others: int) -> None:
    """Let one rollout's responses run to their limit; those of others end after fewer tokens."""
    original_run, original_fields = PromptRollout.run, group_client.fields_of
    is_long: ContextVar[bool] = ContextVar("is_long", default=False)
    started = []

    async def run(self, uid, step):
        started.append(uid)
        is_long.set(len(started) == number)
        return await original_run(self, uid, step)

    def fields(sampling):
        found = original_fields(sampling)
        if is_long.get():
            return found | {"ignore_eos": True}
        return found | {"max_tokens": min(found["max_tokens"], others)}

    PromptRollout.run, group_client.fields_of = run, fields


match os.environ.get("HINT_TEST_FAULT", "").split(":"):
    case ["receiver"]:
        _raise_at_the_second_sync()
    case ["every prompt"]:
        _fail_prompts(None)
    case ["some prompts", numbers]:
        _fail_prompts(set(map(int, numbers.split(","))))
        _make_one_group_long(20, others=48)  # after the first steps, which are slow
    case ["clock-forward"]:
        _jump(86400.0)
    case ["clock-back"]:
        _jump(-86400.0)
