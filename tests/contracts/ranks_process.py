"""ArCHer's critic on two processes: whose weights answer; prints what they gave.

Run by test_critic.py, with VERL_PLATFORM=cpu and `fsdp` or `fsdp2` as its argument; it starts the
second process itself. FSDP2 keeps what it has gathered here (`reshard_after_forward=false`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import critic_process
import torch
from critic_process import build, transition
from torch.distributed.fsdp import FullyShardedDataParallel
from verl.utils import tensordict_utils as tu
from verl.utils.net_utils import get_free_port

from recipe.hint.adapter.archer import filled
from recipe.hint.adapter.critic import UtteranceCriticWorker

ROWS = [transition([5, 6, 7], [12, 13], 0.0), transition([5, 6, 7, 12], [20], 1.0)]


def settings():
    critic = with_fsdp2()
    for each in (critic, critic.engine):
        object.__setattr__(each, "strategy", sys.argv[1])
    object.__setattr__(critic.engine, "reshard_after_forward", sys.argv[1] == "fsdp")
    return critic


def init(self, *args, **kwargs):
    # It takes a GPU; here every process loads and draws the same weights.
    plain_init(self, *args, **kwargs | {"sync_module_states": False})


with_fsdp2, critic_process.settings = critic_process.settings, settings
plain_init, FullyShardedDataParallel.__init__ = FullyShardedDataParallel.__init__, init


def asked(ask):
    rows = filled(ROWS, 2)
    tu.assign_non_tensor(rows, temperature=1.0, compute_loss=False)
    return ask(rows)["utterance"].to_padded_tensor(0.0)


def answers():
    worker = build(UtteranceCriticWorker)
    online = asked(worker.infer_batch)
    with torch.no_grad():
        # FSDP1's root: embedding, last norm and head, here with 0 in each place.
        for each in worker._target[:1] if sys.argv[1] == "fsdp" else worker._target:
            each.zero_()
    slow, again = asked(worker.infer_target), asked(worker.infer_batch)
    return {"online": online.tolist(), "slow": slow.tolist(), "again": again.tolist()}


if __name__ == "__main__":
    strategy, rank, port, *_ = [*sys.argv[1:], "0", str(get_free_port("127.0.0.1")[0])]
    os.environ.update(RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    command = [sys.executable, __file__, strategy, "1", port]
    other = subprocess.Popen(command, stdout=subprocess.DEVNULL) if rank == "0" else None
    found = answers()
    torch.distributed.barrier()
    if other:
        assert other.wait(60) == 0
        sys.stdout.write("\n" + json.dumps(found))
