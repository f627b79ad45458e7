"""Two policies as one run: one role trains while its partner is served frozen, in turns.

What is done is read from the folder, never remembered: after any interruption, run the same command
again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig

from recipe.run.checkpoints import resume_step, step_folder
from recipe.run.children import (
    GRACE_S,
    deferred_signals,
    end_children,
    pause,
    raise_deferred,
    start_child,
)
from recipe.run.errors import ConfigError, HintError, StallError
from recipe.run.rows import read_rows
from recipe.run.run_folder import RunFolder
from recipe.run.whole_file import claimed, write_whole
from recipe.study.alternation import (
    ROLES,
    Evaluate,
    Export,
    Facts,
    Phase,
    Role,
    TrainPhase,
    Weights,
    next_action,
    phase_facts,
)
from recipe.study.multirun import quoted
from recipe.study.partner import Server, ServerOptions, serving

SUMMARY = "phases.json"
_EXPORT = re.compile(r"(solver|guide)-(\d+)")
_POLL_S = 0.2


@dataclass
class Alternation:
    """A run of two policies in one folder.

    Attributes:
        config: The command's settings, composed.
        settings: The same as overrides of ``main_hint.py``.
        node: Settings node of the method.
        phases: All of the run.
        server_options: Where the partner is served, and how.
        programs: Folder of ``main_hint.py`` and ``main_export.py``.
        say: Takes a line for the person at the console.
    """

    config: DictConfig
    settings: Sequence[str]
    node: str
    phases: Sequence[Phase]
    server_options: ServerOptions
    programs: Path
    say: Callable[[str], None]
    _lock: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        # The programs may run in other folders than this one.
        self.root = Path(self.config.hint.run_dir).absolute()
        self.exports = self.root / "exports"

    def run(self) -> None:
        """Do what is left.

        Raises:
            HintError: If a part failed or did not answer.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with claimed(self.root / ".lock"), deferred_signals():
            # The processes of a killed command hold it until they have ended.
            with claimed(self.root / ".children.lock", wait_s=GRACE_S) as self._lock:
                self._check_summary()
                self._drop_stale()
                evaluates = bool(self.config.trainer.eval_only)
                done = None
                while action := next_action(self.phases, self.facts(), evaluates=evaluates):
                    if action == done:
                        raise HintError(
                            f"{described(action)}: exited with code 0 but did not reach its last "
                            f"step"
                        )
                    self._do(action)
                    if isinstance(action, Evaluate):
                        return
                    done = action
                self._keep_summary()

    def facts(self) -> Facts:
        """Return what the folder holds."""
        steps: dict[Role, int] = {
            role: resume_step(self.root / role / "checkpoints") or 0 for role in ROLES
        }
        return Facts(steps, frozenset(self._exported()))

    def _exported(self) -> dict[Weights, Path]:
        found = {path: _EXPORT.fullmatch(path.name) for path in self.exports.glob("*")}
        return {Weights(cast(Role, m[1]), int(m[2])): path for path, m in found.items() if m}

    def _do(self, action: Export | TrainPhase | Evaluate) -> None:
        self.say(described(action))
        if isinstance(action, Export):
            self._export(action.weights)
            return
        if isinstance(action, TrainPhase):
            self._keep_summary(action)
        for path in (self.root / "answers").glob("*"):
            if path.name != action.served.name:
                shutil.rmtree(path)
        with serving(
            self.server_options,
            self.config,
            model=self._model(action.served),
            names=(action.served.role, action.served.name),
            folder=self.root,
            lock=self._lock,
        ) as server:
            self._run("main_hint.py", self._job(action, server), check=server.check)

    def _export(self, weights: Weights) -> None:
        checkpoint = step_folder(self.root / weights.role / "checkpoints", weights.step)
        RunFolder(self.root / weights.role).restore_metrics(weights.step, checkpoint)
        self.exports.mkdir(exist_ok=True)
        dtype = "fp32" if self.config.actor_rollout_ref.rollout.dtype == "float32" else "bf16"
        arguments = [str(checkpoint), str(self.exports / weights.name), "--dtype", dtype]
        self._run("main_export.py", arguments, limit_s=self.config.hint.watchdog.save_s)
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Remove exports that no role uses any more, and unfinished ones that a kill left."""
        stale = self.facts().stale()
        for weights, path in self._exported().items():
            if weights in stale:
                # Rename it first: half a folder must not look like a whole one.
                path.rename(path.with_name(f".{path.name}.stale"))
        for path in self.exports.glob(".*"):
            shutil.rmtree(path)

    def _model(self, weights: Weights) -> str:
        base = str(self.config.actor_rollout_ref.model.path)
        return str(self.exports / weights.name) if weights.step else base

    def _job(self, action: TrainPhase | Evaluate, server: Server) -> list[str]:
        """Return signs of life and arguments of a training or evaluation against a server."""
        served, own = action.served, self.config.trainer.experiment_name
        teacher: dict[str, Any] = {
            f"{self.node}.t_low": 0,
            f"{self.node}.t_high": 0,
            f"{self.node}.{served.role}": "teacher",
            f"{self.node}.train_{served.role}": False,
            "hint.teacher.base_url": server.url,
            "hint.teacher.model": served.role,
            # The same limit as for the policy's own replica.
            "hint.teacher.timeout_s": self.config.hint.watchdog.rollout_s,
            # A separate folder: otherwise the next weights would be answered from this cache.
            "hint.teacher.cache_dir": self.root / "answers" / served.name,
        }
        if isinstance(action, Evaluate):
            pair = f"{action.model.name}-{served.name}"
            model = self._model(action.model)
            more = {"hint.run_dir": self.root / pair, "actor_rollout_ref.model.path": model}
        else:
            role, last = action.phase.role, action.phase.last
            more = {"hint.run_dir": self.root / role, "trainer.total_training_steps": last}
            pair = role
            if role == "guide":  # stage I, and what only it reads, is the solver's
                more |= {f"{self.node}.{name}": 0 for name in ("stage1_steps", "beta2")}
                more[f"{self.node}.adaptive_beta2"] = False
        given = teacher | more | {"trainer.experiment_name": f"{own}-{pair}"}
        return [*self.settings, *(f"{name}={_value(each)}" for name, each in given.items())]

    def _run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        check: Callable[[], object] | None = None,
        limit_s: float = math.inf,
    ) -> None:
        """Run a program to its end; ``check`` raises if something that it needs is gone."""
        command = [sys.executable, str(self.programs / program), *arguments]
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process, began_s = start_child(command, env=env, pass_fds=(self._lock,)), time.monotonic()
        try:
            while (code := process.poll()) is None:
                if check is not None:
                    check()
                if time.monotonic() - began_s > limit_s:
                    raise StallError(
                        f"{program} did not end within hint.watchdog.save_s={limit_s:g} s"
                    )
                pause(_POLL_S)
        finally:
            if process.poll() is None:
                end_children([process])
        if code:
            if check is not None:
                check()  # what it needed may have ended first
            raise HintError(f"{program} ended with exit code {code}; it has said why")

    # -- phases.json: what was served in each phase, and the phase's result ----------------------

    def _check_summary(self) -> None:
        before = self._read_summary().get("schedule", self._schedule())
        if before != self._schedule():
            raise ConfigError(
                f"{self.root} holds a run with {before}, now {self._schedule()}: give the old "
                f"values to continue it, or another hint.run_dir"
            )

    def _schedule(self) -> dict[str, int]:
        node = self.config
        for part in self.node.split("."):
            node = node[part]
        return {name: int(node[name]) for name in ("t_low", "t_high")}

    def _read_summary(self) -> dict[str, Any]:
        path = self.root / SUMMARY
        if not path.exists():
            return {}
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read ({error}); take it away") from error

    def _keep_summary(self, action: TrainPhase | None = None) -> None:
        """Write the summary, with the phase that begins or continues."""
        served = {
            (row["role"], row["first"]): {name: row[name] for name in ("served", "sha256")}
            for row in self._read_summary().get("phases", [])
        }
        if action:
            sha256 = weights_sha256(Path(self._model(action.served)))
            facts = {"served": action.served.name, "sha256": sha256}
            role, first, last = action.phase
            before = served.get((role, first), facts)["served"]
            if before != action.served.name:
                self.say(
                    f"warning: {before} answered before in the {role}'s steps {first} to {last}, "
                    f"and is gone: checkpoints of the {role} were taken away since"
                )
            served[role, first] = facts
        rows = {role: list(read_rows(self.root / role / "metrics.jsonl")) for role in ROLES}
        begun = [
            phase_facts(phase, rows[phase.role]) | served[phase.role, phase.first]
            for phase in self.phases
            if (phase.role, phase.first) in served
        ]
        summary = {"schedule": self._schedule(), "phases": begun}
        write_whole(self.root / SUMMARY, json.dumps(summary, indent=1) + "\n")


def weights_sha256(model: Path) -> str | None:
    """Return the digest of a model folder's weights; ``None`` if it is not such a folder."""
    files = sorted(model.glob("*.safetensors"))
    digest = hashlib.sha256()
    for path in files:
        raise_deferred()
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest() if files else None


def _value(given: object) -> str:
    return str(given).lower() if isinstance(given, int | float) else quoted(str(given))


def described(action: Export | TrainPhase | Evaluate) -> str:
    """Return a line that names the action."""
    if isinstance(action, Export):
        return f"export {action.weights.name}"
    who = f"{action.served.name} answers"
    if isinstance(action, Evaluate):
        return f"evaluate {action.model.name}: {who}"
    role, first, last = action.phase
    return f"train the {role}, steps {first} to {last}: {who}"
