"""A queue on a clock of its own, and the guarded buffers that poll it."""

import transfer_queue as tq
from omegaconf import OmegaConf

from recipe.hint.adapter import sampling_guard
from recipe.hint.adapter.sampling_guard import guard

LIMIT_S = 10.0


class Queue:
    """Tags by key in partition ``train``; a poll takes ``poll_s`` on the clock."""

    def __init__(self, monkeypatch, poll_s=4.0):
        self.tags = {}
        self.polls = 0
        self.now = 0.0
        self.on_poll = lambda: None
        self._poll_s = poll_s
        monkeypatch.setattr(tq, "kv_list", self._list)
        monkeypatch.setattr(tq, "kv_clear", self._clear)
        monkeypatch.setattr(tq, "kv_batch_put", self._put)
        monkeypatch.setattr(sampling_guard.time, "monotonic", lambda: self.now)
        monkeypatch.setattr("time.sleep", lambda seconds: None)

    def prompt(self, uid, status, **more):
        self.tags[uid] = {"is_prompt": True, "status": status, "global_steps": 1, **more}

    def _list(self, partition_id=None):
        if partition_id is None:
            self.polls += 1
            assert self.polls < 1000, "the buffer polls without an end"
            self.now += self._poll_s
            self.on_poll()
        return {"train": self.tags}

    def _put(self, keys, partition_id, tags):
        for key, tag in zip(keys, tags, strict=True):
            self.tags[key] |= tag

    def _clear(self, keys, partition_id):
        for key in keys:
            self.tags.pop(key, None)


def made(buffer_class, **more):
    return buffer_class(
        trainer_mode="sync",
        trainer_config=OmegaConf.create({}),
        max_off_policy_threshold=None,
        max_off_policy_strategy="drop",
        sampler_kwargs=OmegaConf.create({}),
        **more,
    )


def guarded(buffer_class, batch_size=8, said=None, **more):
    return watched(made(buffer_class, **more), batch_size=batch_size, said=said)


def watched(buffer, *, batch_size=8, said=None, max_filtered=10**9, on_discard=lambda *_: None):
    say = (lambda line: None) if said is None else said.append
    limits = {"batch_size": batch_size, "max_filtered": max_filtered}
    return guard(buffer, LIMIT_S, **limits, say=say, on_discard=on_discard)


def sample(buffer, count=1):
    return buffer.sample(global_steps=1, partition_id="train", batch_size=count)
