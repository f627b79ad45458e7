"""A fault for a run, loaded into its processes by its environment."""

import os
import time

from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer


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


match os.environ.get("HINT_TEST_FAULT"):
    case "receiver":
        _raise_at_the_second_sync()
    case "clock-forward":
        _jump(86400.0)
    case "clock-back":
        _jump(-86400.0)
