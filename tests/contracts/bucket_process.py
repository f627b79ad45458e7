"""verl's sender and receiver of weights with a bucket of 1 MB of shared memory.

In a process of its own: shared memory leaves another one behind that counts it.
"""

import asyncio
import json
import sys
import threading
from uuid import uuid4

import torch
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import (
    BucketedWeightReceiver,
    BucketedWeightSender,
)


def sent(number: int) -> dict:
    """What arrives of a weight of ``number`` numbers of 4 bytes, or what the sender says."""
    handle = f"ipc:///tmp/bucket-{uuid4().hex}.sock"
    weight, got = torch.arange(number, dtype=torch.float32), {}

    def take(weights, is_last):
        got.update((name, each.clone()) for name, each in weights)

    receiver = BucketedWeightReceiver(handle, torch.device("cpu"), use_shm=True)
    # A daemon: where the sender stops, it waits for ever.
    thread = threading.Thread(target=receiver.receive_weights, args=(take,), daemon=True)
    thread.start()
    sender = BucketedWeightSender(handle, bucket_size_mb=1, use_shm=True)
    try:
        asyncio.run(sender.async_send_weights(iter([("w", weight)])))
    except AssertionError as error:
        return {"error": str(error), "waits": thread.is_alive(), "got": sorted(got)}
    thread.join(timeout=60)
    return {"equal": torch.equal(got["w"], weight)}


sys.stdout.write(json.dumps([sent(2**18), sent(2**18 + 1)]) + "\n")
