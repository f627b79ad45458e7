"""The faults of the campaign: what is done to whom, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# How each kind of process names itself to the system; the command is the process that was started.
PROCESSES = {
    "command": "",
    "driver": "ray::HintTaskRunner",
    "trainer": "ray::WorkerDict",
    "server": "ray::GroupHttpServer",
    "engine": "EngineCore",
    "agent": "ray::HintWorker",
    "verifier": "recipe.verify.pool",
    "controller": "ray::TransferQueueController",
    "storage": "ray::SimpleStorageUnit",
    "balancer": "ray::GlobalRequestLoadBalancer",
    "raylet": "raylet/raylet",
    "gcs": "gcs_server",
}
PHASES = ("start", "validation", "rollout", "log-probs", "update", "sync", "save")
# `pause` is a stop that is taken back: the run must go on as if nothing had been.
SIGNALS = ("kill", "stop", "term", "pause")
MODES: dict[str, tuple[str, ...]] = {
    "sync": (),
    "unforked": (),  # sync, with every process started by itself, as on a GPU
    "colocate_async": ("trainer.v1.trainer_mode=colocate_async",),
    "separate_async": (
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.parameter_sync_step=1",
        "actor_rollout_ref.rollout.nnodes=1",
        "actor_rollout_ref.rollout.n_gpus_per_node=1",
        "actor_rollout_ref.rollout.checkpoint_engine.backend=gloo",
        "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module=recipe.laptop.transfer",
        "ray_kwargs.ray_init.num_gpus=2",
    ),
}


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        act: What is done: a signal of ``SIGNALS``, ``interrupt``, ``fill`` (the disk), ``second``
            (a run in the same folder), ``damage`` (of a checkpoint), ``teacher`` or ``clock``.
        target: To whom: a key of ``PROCESSES``, a file, or what the teacher does.
        phase: When; of ``PHASES``. Damage is done between two runs, and has none.
    """

    act: str
    target: str
    phase: str = ""
    mode: str = "sync"

    @property
    def is_sync(self) -> bool:
        return self.mode in ("sync", "unforked")

    @property
    def target_kind(self) -> str:
        """The kind of process that must be there."""
        return self.target if self.target in PROCESSES else ""

    @property
    def preparation(self) -> str:
        """What has to be there before the run; faults with the same one can share a run."""
        if self.act in ("fill", "damage", "teacher", "clock"):
            return self.name
        return "slow grading" if self.target == "verifier" else ""

    @property
    def is_compared(self) -> bool:
        """Whether the training must be the one that nothing happened to, bit by bit."""
        return self.is_sync and self.act != "teacher" and self.target != "verifier"

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.mode, self.act, self.target, self.phase) if part)


def faults() -> Iterator[Fault]:
    """Yield all faults; each signal to each kind of process before the same in another phase."""
    first, *others = [[Fault(*each) for each in signals(number)] for number in range(len(PHASES))]
    yield from first
    yield from (Fault(*each) for each in _OTHERS)
    for mode in MODES:
        each = {"sync": (), "unforked": _UNFORKED}.get(mode, _ASYNC)
        yield from (Fault(act, target, phase, mode) for act, target, phase in each)
    for more in others:
        yield from more


def signals(number: int) -> Iterator[tuple[str, str, str]]:
    """Yield each signal to each kind of process, in a phase that changes with all three."""
    for row, act in enumerate(SIGNALS[:3]):
        for column, target in enumerate(PROCESSES):
            phase = PHASES[(column + 2 * row + 3 * number) % len(PHASES)]
            if phase != "start" or target not in ("verifier", "agent"):
                yield act, target, phase


DAMAGES = (
    "model-cut",  # the file of the weights ends early
    "model-missing",
    "optimizer-cut",
    "data-cut",
    "data-missing",
    "state-cut",
    "state-missing",
    "mark-alone",  # COMPLETE in a folder that holds nothing else
    "foreign-folder",  # a checkpoint of another program beside ours
    "foreign-file",
    "pointer-cut",
    "records-cut",  # the last line of records.jsonl ends early
    "records-missing",
)
_OTHERS = (
    *(("interrupt", "command", phase) for phase in PHASES),
    *(("pause", target, "rollout") for target in ("command", "driver", "agent", "engine")),
    ("second", "run", "rollout"),
    *(("fill", "disk", phase) for phase in ("rollout", "save", "validation")),
    *(("damage", name, "") for name in DAMAGES),
    *(("teacher", name, "") for name in ("hangs", "lies", "dies")),
    *(("clock", name, "") for name in ("forward", "back")),
)
_UNFORKED = (
    *(("stop", target, "rollout") for target in PROCESSES),
    *(("kill", target, "rollout") for target in ("command", "driver", "raylet", "gcs")),
)
_ASYNC = (
    *(("kill", name, "rollout") for name in ("command", "driver", "engine", "agent", "controller")),
    *(("stop", name, "rollout") for name in ("driver", "server", "engine", "agent", "controller")),
    *(("kill", name, "save") for name in ("command", "trainer", "storage")),
    *(("stop", name, "sync") for name in ("trainer", "server", "engine")),
    *(("kill", name, "update") for name in ("engine", "agent")),
    ("interrupt", "command", "rollout"),
    ("fill", "disk", "save"),
)
