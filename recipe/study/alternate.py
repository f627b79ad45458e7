"""Train two policies, a solver and a guide, in turns: main_alternate.py [NAME=VALUE ...].

The settings are main_hint.py's. The solver trains for hint.mlmt.t_low steps, then the guide for
hint.mlmt.t_high, and so on; trainer.total_training_steps counts both. While one role trains, a
server on this machine plays the other role with its latest weights. Both are kept in hint.run_dir;
after an interruption, run the same command again. With trainer.eval_only=true the current pair is
evaluated.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from recipe import PROGRAMS
from recipe.hint.main_hint import run_command
from recipe.hint.methods import METHODS, Method
from recipe.hint.settings import build_method, settings_of
from recipe.run.arguments import Parser
from recipe.run.checkpoints import resume_step, step_folder
from recipe.run.children import GRACE_S, deferred_signals, end_children, pause, start_child
from recipe.run.errors import ConfigError, HintError, StallError
from recipe.run.rows import read_rows
from recipe.run.run_folder import RunFolder
from recipe.run.whole_file import claimed, file_sha256, write_whole

ROLES = ("solver", "guide")
SUMMARY, LOG = "phases.json", "server.log"
# Not the program `vllm`: that of the CPU build does not find its own metadata.
SERVE = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
# Settings of `actor_rollout_ref.rollout` that the policy's own replica is started with too.
_AS_THE_POLICY = (
    *("dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("enforce_eager", "enable_chunked_prefill"),
)
_ROLLOUT = "actor_rollout_ref.rollout"
_TURNS = {"turns/acc_t1", "turns/acc_t2", "turns/delta"}
_POLL_S, _ASK_EVERY_S = 0.2, 10.0


class Phase(NamedTuple):
    """Steps in which one role trains, counted in that role's own steps."""

    role: str
    first: int
    last: int


def phases(t_low: int, t_high: int, num_steps: int) -> list[Phase]:
    """Return the phases of a run of ``num_steps`` steps of both roles together.

    The solver begins; the last phase ends with the run.

    Raises:
        ConfigError: If one of the roles would never train.
    """
    if min(t_low, t_high) < 1 or num_steps <= t_low:
        raise ConfigError(
            f"t_low={t_low} and t_high={t_high} must be at least 1, and trainer."
            f"total_training_steps={num_steps}, the steps of both roles together, above t_low"
        )
    found, done, lengths = [], dict.fromkeys(ROLES, 0), {"solver": t_low, "guide": t_high}
    while (left := num_steps - sum(done.values())) > 0:
        role = ROLES[len(found) % 2]
        first, done[role] = done[role] + 1, done[role] + min(lengths[role], left)
        found.append(Phase(role, first, done[role]))
    return found


@dataclass(frozen=True)
class ServerOptions:
    """Where the server runs, and how; the command's own options.

    Attributes:
        host: Address of this machine that every machine of the training reaches.
        port: 0: a free one.
        devices: GPUs that serve, as ``CUDA_VISIBLE_DEVICES`` names them; empty on a CPU.
        serve_args: Further arguments of ``vllm serve``, as one writes them in a shell.
    """

    host: str = "127.0.0.1"
    port: int = 0
    devices: str = ""
    serve_args: str = ""

    def free_port(self) -> int:
        """Return the port to serve at.

        Raises:
            ConfigError: If the address is not this machine's, or the port is taken.
        """
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise ConfigError(
                    f"--host {self.host} --port {self.port} cannot be served at: {error.strerror}"
                ) from error
            return probe.getsockname()[1]


@dataclass
class Alternation:
    """A run of two policies in one folder; what is done is read from it, never remembered.

    Attributes:
        config: The command's settings, composed.
        settings: The same as overrides of ``main_hint.py``.
        node: Settings node of the method.
        phases: All of the run.
        server: Where the partner is served, and how.
        programs: Folder of ``main_hint.py`` and ``main_export.py``.
    """

    config: DictConfig
    settings: Sequence[str]
    node: str
    phases: Sequence[Phase]
    server: ServerOptions
    programs: Path = PROGRAMS

    def __post_init__(self) -> None:
        # The programs may run in other folders than this one.
        self.root = Path(self.config.hint.run_dir).absolute()
        self.exports = self.root / "exports"
        self._lock = -1

    def run(self) -> None:
        """Do what is left, or evaluate the pair as it stands.

        Raises:
            HintError: If a part failed or did not answer.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with claimed(self.root / ".lock"), deferred_signals():
            # The processes of a killed command hold it until they have ended.
            with claimed(self.root / ".children.lock", wait_s=GRACE_S) as self._lock:
                self._check_schedule()
                if self.config.trainer.eval_only:
                    self._evaluate()
                    return
                for phase in self.phases:
                    if self._step(phase.role) < phase.last:
                        self._train(phase)
                for role in ROLES:
                    self._export(role)

    def _step(self, role: str) -> int:
        return resume_step(self.root / role / "checkpoints") or 0

    def _export(self, role: str) -> str:
        """Write a role's newest weights as a model folder where they are not there yet.

        Returns:
            What it serves: the folder, or the base model.
        """
        step = self._step(role)
        if not step:
            return str(self.config.actor_rollout_ref.model.path)
        target = self.exports / f"{role}-{step}"
        for path in self.exports.glob("*"):  # a role's older weights, and drafts of a kill
            if path != target and re.fullmatch(rf"\.?{role}-\d+.*", path.name):
                shutil.rmtree(path)
        if not target.exists():
            _say(f"export {target.name}")
            checkpoint = step_folder(self.root / role / "checkpoints", step)
            RunFolder(self.root / role).restore_metrics(step, checkpoint)
            self.exports.mkdir(exist_ok=True)
            dtype = "fp32" if self.config.actor_rollout_ref.rollout.dtype == "float32" else "bf16"
            limit_s = self.config.hint.watchdog.save_s
            arguments = [str(checkpoint), str(target), "--dtype", dtype]
            self._run("main_export.py", arguments, limit_s=limit_s)
        return str(target)

    def _train(self, phase: Phase) -> None:
        partner = ROLES[1 - ROLES.index(phase.role)]
        model, served = self._export(partner), f"{partner}-{self._step(partner)}"
        _say(f"train the {phase.role}, steps {phase.first} to {phase.last}: {served} answers")
        self._keep_summary(phase, served, model)
        more: dict[str, Any] = {
            "hint.run_dir": self.root / phase.role,
            "trainer.total_training_steps": phase.last,
            "trainer.experiment_name": f"{self.config.trainer.experiment_name}-{phase.role}",
        }
        if phase.role == "guide":  # stage I, and what only it reads, is the solver's
            more |= {f"{self.node}.{name}": 0 for name in ("stage1_steps", "beta2")}
            more[f"{self.node}.adaptive_beta2"] = False
        self._hint(partner, served, model, more)
        if self._step(phase.role) < phase.last:
            raise HintError(f"the {phase.role} has no checkpoint of step {phase.last}")
        self._keep_summary(phase, served, model)

    def _evaluate(self) -> None:
        solver, model = self._export("solver"), self._export("guide")
        served = f"guide-{self._step('guide')}"
        pair = f"solver-{self._step('solver')}-{served}"
        _say(f"evaluate {pair}")
        more = {
            "hint.run_dir": self.root / pair,
            "actor_rollout_ref.model.path": solver,
            "trainer.experiment_name": f"{self.config.trainer.experiment_name}-{pair}",
        }
        self._hint("guide", served, model, more)

    def _hint(self, partner: str, served: str, model: str, more: Mapping[str, Any]) -> None:
        """Run ``main_hint.py`` against a server of the partner."""
        answers = self.root / "answers" / served
        for path in answers.parent.glob("*"):  # other weights must not answer from this cache
            if path != answers:
                shutil.rmtree(path)
        port = self.server.free_port()
        given: dict[str, Any] = {
            f"{self.node}.t_low": 0,
            f"{self.node}.t_high": 0,
            f"{self.node}.{partner}": "teacher",
            f"{self.node}.train_{partner}": False,
            "hint.teacher.base_url": f"http://{self.server.host}:{port}/v1",
            "hint.teacher.model": partner,
            # The same limit as for the policy's own replica.
            "hint.teacher.timeout_s": self.config.hint.watchdog.rollout_s,
            "hint.teacher.cache_dir": answers,
            **more,
        }
        arguments = [f"{name}={_value(value)}" for name, value in given.items()]
        command = [
            *(*SERVE, "--model", model, "--served-model-name", partner, served),
            *("--host", self.server.host, "--port", str(port)),
            *server_arguments(self.config, self.server),
        ]
        with self._serving(command, served, port) as server:
            self._run("main_hint.py", [*self.settings, *arguments], server=server)

    @contextlib.contextmanager
    def _serving(self, command: list[str], served: str, port: int) -> Iterator[Server]:
        devices = {"CUDA_VISIBLE_DEVICES": self.server.devices} if self.server.devices else {}
        with open(self.root / LOG, "a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(command)}\n")
            log.flush()
            env = {**os.environ, **devices}
            process = start_child(command, env=env, log=log, pass_fds=(self._lock,))
        url = f"http://{self.server.host}:{port}/health"
        server = Server(process, served, url, self.config.hint.watchdog)
        try:
            while not server.check():
                pause(_POLL_S)
            yield server
        finally:
            end_children([process])

    def _run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        server: Server | None = None,
        limit_s: float = float("inf"),
    ) -> None:
        """Run a program to its end, as long as its server is there."""
        command = [sys.executable, str(self.programs / program), *arguments]
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process, began_s = start_child(command, env=env, pass_fds=(self._lock,)), time.monotonic()
        try:
            while (code := process.poll()) is None:
                if server:
                    server.check()
                if time.monotonic() - began_s > limit_s:
                    raise StallError(
                        f"{program} did not end within {limit_s:g} s (watchdog.save_s)"
                    )
                pause(_POLL_S)
        finally:
            if process.poll() is None:
                end_children([process])
        if code:
            raise HintError(f"{program} ended with exit code {code}; it has said why")

    def _check_schedule(self) -> None:
        before = self._read_summary().get("schedule", self._schedule())
        if before != self._schedule():
            raise ConfigError(
                f"{self.root} holds a run with {before}, now {self._schedule()}: give the old "
                f"values to continue it, or another hint.run_dir"
            )

    def _schedule(self) -> dict[str, int]:
        node = OmegaConf.select(self.config, self.node)
        return {name: int(node[name]) for name in ("t_low", "t_high")}

    def _read_summary(self) -> dict[str, Any]:
        path = self.root / SUMMARY
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def _keep_summary(self, phase: Phase, served: str, model: str) -> None:
        """Write what is served in each phase, and the phase's progress and result.

        The role's next phase validates before its first step, against another partner: that line
        is of this phase's last step, and of no training.
        """
        rows = read_rows(self.root / phase.role / "metrics.jsonl")
        own = [row for row in rows if phase.first <= row["step"] <= phase.last]
        steps = [row for row in own if any(name.startswith("hint/") for name in row)]
        last = steps[-1] if steps else {}
        summary = self._read_summary()
        others = [
            each
            for each in summary.get("phases", [])
            if (each["role"], each["first"]) != (phase.role, phase.first)
        ]
        facts = {
            **phase._asdict(),
            "step": last.get("step", phase.first - 1),
            "seconds": round(sum(row.get("timing_s/step", 0.0) for row in steps), 1),
            "metrics": {
                name: value
                for name, value in last.items()
                if name.startswith("val-core/") or name in _TURNS
            },
            "served": served,
            "sha256": weights_sha256(Path(model)),
        }
        summary = {"schedule": self._schedule(), "phases": [*others, facts]}
        write_whole(self.root / SUMMARY, json.dumps(summary, indent=1) + "\n")


@dataclass
class Server:
    """A running server; :meth:`check` says whether it is healthy."""

    process: subprocess.Popen
    name: str
    url: str
    limits: Any

    def __post_init__(self) -> None:
        self._answered_s, self._asked_s, self._is_up = time.monotonic(), float("-inf"), False

    def check(self) -> bool:
        """Return whether it has answered yet.

        Raises:
            HintError: If it has ended.
            StallError: If it does not answer in time.
        """
        if (code := self.process.poll()) is not None:
            raise HintError(f"the server of {self.name} ended with exit code {code}: see {LOG}")
        now = time.monotonic()
        if now - self._asked_s > (_ASK_EVERY_S if self._is_up else 1.0):
            self._asked_s = now
            direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with contextlib.suppress(OSError), direct.open(self.url, timeout=2.0):
                self._is_up, self._answered_s = True, time.monotonic()
        limit = "answer_s" if self._is_up else "start_s"
        limit_s = getattr(self.limits, limit)
        if now - self._answered_s > limit_s:
            raise StallError(
                f"the server of {self.name} did not answer within hint.watchdog.{limit}="
                f"{limit_s:g} s; raise it, or look at {LOG}"
            )
        return self._is_up


def server_arguments(config: Any, server: ServerOptions) -> list[str]:
    """Return the engine's arguments: those of the policy's own replica, then those given."""
    rollout, model = config.actor_rollout_ref.rollout, config.actor_rollout_ref.model
    given: dict[str, Any] = {name: rollout.get(name) for name in _AS_THE_POLICY}
    given["trust_remote_code"] = model.get("trust_remote_code")
    given["chat_template"] = model.get("custom_chat_template")
    options = dict(config.data.get("apply_chat_template_kwargs") or {})
    given["default_chat_template_kwargs"] = options or None
    # Not the model's defaults, such as a top_k: what a request does not set is set here.
    given["generation_config"] = "vllm"
    if (top_k := rollout.get("top_k") or -1) > 0:
        given["override_generation_config"] = {"top_k": top_k}
    given["uvicorn_log_level"] = "warning"
    if server.devices:
        given["tensor_parallel_size"] = len(server.devices.split(","))
    given |= rollout.engine_kwargs.get("vllm") or {}
    return [*_arguments(given), *shlex.split(server.serve_args)]


def _arguments(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            if value or name == "enable_chunked_prefill":  # on by default
                yield f"--{option}" if value else f"--no-{option}"
        elif value is not None:
            yield f"--{option}"
            yield value if isinstance(value, str) else json.dumps(value)


def weights_sha256(model: Path) -> str | None:
    """Return the digest of a model folder's weights; ``None`` if it is not such a folder."""
    files = sorted(model.glob("*.safetensors"))
    digests = "".join(file_sha256(path) for path in files)
    return hashlib.sha256(digests.encode()).hexdigest() if files else None


def _value(given: object) -> str:
    text = str(given)
    return text.lower() if isinstance(given, int | float) else f"'{text}'"


def _say(line: str) -> None:
    print(line, flush=True)


def check_settings(config: DictConfig, server: ServerOptions) -> Method:
    """Refuse what has no two roles or no export, and what the command gives to each phase itself.

    Returns:
        The method, whose roles alternate.

    Raises:
        ConfigError: Naming the setting.
    """
    name = str(config.trainer.method)
    alternating = [
        name for name, each in METHODS.items() if getattr(each, "roles_alternate", False)
    ]
    if name not in alternating:
        raise ConfigError(
            f"trainer.method={name} has no solver and guide that take turns; give "
            f"{' or '.join(alternating)}"
        )
    node = METHODS[name].settings_node
    every = config.trainer.save_freq
    needed = {
        **{f"{node}.{role}": "policy" for role in ROLES},
        **{f"{node}.train_{role}": True for role in ROLES},
        "trainer.default_local_dir": f"{config.hint.run_dir}/checkpoints",
        "trainer.resume_mode": "auto",
        "actor_rollout_ref.model.lora_rank": 0,  # an export writes whole weights
        # A schedule follows the number of steps, which grows with every phase.
        "actor_rollout_ref.actor.optim.lr_scheduler_type": "constant",
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": 0.0,
        "trainer.save_freq": max(every, 1),
    }
    for key, value in needed.items():
        if (given := OmegaConf.select(config, key)) != value:
            raise ConfigError(f"{key}={given} does not work with two policies; give {value}")
    if (config.trainer.device == "cpu") == bool(server.devices):
        raise ConfigError(
            f"--devices '{server.devices}' with trainer.device={config.trainer.device}: name the "
            f"GPUs that serve the frozen role, none on a CPU; those that train are "
            f"CUDA_VISIBLE_DEVICES"
        )
    server.free_port()
    return build_method(config.trainer, settings_of(config))


def check_and_alternate(server: ServerOptions, config: DictConfig) -> None:
    """Check everything, then train both roles, or evaluate the pair."""
    from recipe.hint.adapter.preflight.run import preflight

    settings = [str(each) for each in HydraConfig.get().overrides.task]
    method = check_settings(config, server)
    planned: list[Phase] = []
    if not config.trainer.eval_only:
        # As one policy in both roles; the server's settings are checked with each phase.
        own = [each for each in settings if not each.startswith("hint.teacher.")]
        preflight(config, own, num_policies=2)
        planned = phases(*method.role_steps, config.trainer.total_training_steps or 0)
        _say(f"phases    {len(planned)}: " + ", ".join(f"{r} {a}-{b}" for r, a, b in planned))
    if config.preflight_only:
        return
    Alternation(config, settings, method.settings_node, planned, server).run()
    _say(f"done: {config.hint.run_dir}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; the exit code is 0 only when it has done all it was asked for."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address of this machine")
    parser.add_argument("--port", type=int, default=0, help="of the server; 0: a free one")
    parser.add_argument("--devices", default="", help="GPUs that serve")
    parser.add_argument("--serve-args", default="", help="further arguments of vllm serve")
    given, settings = parser.parse_known_args(argv)
    own = [arg for arg in argv if arg not in settings]
    start = functools.partial(check_and_alternate, ServerOptions(**vars(given)))
    program = str(PROGRAMS / "main_alternate.py")
    run_command(program, settings, start, own, runs_here=False)
