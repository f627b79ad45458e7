"""Train two policies, a solver and a guide, in turns: hint alternate [NAME=VALUE ...].

The settings are hint train's. The solver trains for hint.mlmt.t_low steps, then the guide for
hint.mlmt.t_high, and so on; trainer.total_training_steps counts both. While one role trains, a
server on this machine plays the other with its latest weights. hint.run_dir keeps both; after an
interruption, repeat the command. trainer.eval_only=true evaluates the current pair.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from recipe import PROGRAMS
from recipe.hint.main_hint import run_command
from recipe.hint.methods import get_method
from recipe.hint.settings import build_method, settings_of
from recipe.run.checkpoints import MERGED, resume_step, step_folder
from recipe.run.children import GRACE_S, deferred_signals, end_child, pause, run_child, start_child
from recipe.run.config import check, override
from recipe.run.ending import Parser
from recipe.run.errors import HintError, StallError
from recipe.run.whole_file import claimed

ROLES = ("solver", "guide")
LOG = "server.log"
# Not the program `vllm`: that of the CPU build does not find its own metadata.
SERVE = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
_HOST = "127.0.0.1"
# Settings of `actor_rollout_ref.rollout` that the policy's own replica is started with too.
_AS_THE_POLICY = (
    *("dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("enforce_eager", "enable_chunked_prefill"),
)


class Phase(NamedTuple):
    """Steps in which one role trains, counted in that role's own steps."""

    role: str
    first: int
    last: int


def phases(t_low: int, t_high: int, num_steps: int) -> list[Phase]:
    """Return the phases of a run of ``num_steps`` steps of both roles; the solver begins."""
    check(
        min(t_low, t_high) >= 1 and num_steps > t_low,
        f"t_low={t_low} and t_high={t_high} must be at least 1, and trainer."
        f"total_training_steps={num_steps}, the steps of both roles together, above t_low",
    )
    found, done, lengths = [], dict.fromkeys(ROLES, 0), {"solver": t_low, "guide": t_high}
    while (left := num_steps - sum(done.values())) > 0:
        role = ROLES[len(found) % 2]
        first, done[role] = done[role] + 1, done[role] + min(lengths[role], left)
        found.append(Phase(role, first, done[role]))
    return found


@dataclass
class Alternation:
    """A run of two policies in one folder; what is done is read from it, never remembered.

    ``settings`` are ``config`` as overrides of ``main_hint.py``, which is in ``programs``; ``node``
    holds the method's; ``phases`` are all of the run. The partner is served on ``devices``.
    """

    config: DictConfig
    settings: Sequence[str]
    node: str
    phases: Sequence[Phase]
    devices: str = ""
    programs: Path = PROGRAMS

    def run(self) -> None:
        """Do what is left, or evaluate the pair as it stands."""
        # The programs may run in other folders than this one.
        self.root = Path(self.config.hint.run_dir).absolute()
        self.root.mkdir(parents=True, exist_ok=True)
        # The processes of a killed command hold the lock until they have ended.
        with deferred_signals(), claimed(self.root / ".lock", wait_s=GRACE_S) as self._lock:
            if self.config.trainer.eval_only:
                name = "-".join(f"{role}-{self._step(role)}" for role in ROLES)
                solver = self._weights("solver")
                self._hint("evaluate", name, "guide", {"actor_rollout_ref.model.path": solver})
                return
            for phase in self.phases:
                if self._step(phase.role) < phase.last:
                    self._train(phase)
            for role in ROLES:
                self._weights(role)

    def _step(self, role: str) -> int:
        return resume_step(self.root / role / "checkpoints") or 0

    def _weights(self, role: str) -> str:
        """Return the folder of a role's newest weights, made if it is not there; or the base."""
        if not (step := self._step(role)):
            return str(self.config.actor_rollout_ref.model.path)
        checkpoint = step_folder(self.root / role / "checkpoints", step)
        if not (target := checkpoint / MERGED).exists():
            dtype = "fp32" if self.config.actor_rollout_ref.rollout.dtype == "float32" else "bf16"
            self._run("main_export.py", [str(checkpoint), str(target), "--dtype", dtype])
        return str(target)

    def _train(self, phase: Phase) -> None:
        role, more = phase.role, {"trainer.total_training_steps": phase.last}
        if role == "guide":  # stage I, and what only it reads, is the solver's
            more |= {f"{self.node}.{name}": 0 for name in ("stage1_steps", "beta2")}
        what = f"steps {phase.first} to {phase.last} of"
        self._hint(what, role, ROLES[1 - ROLES.index(role)], more)
        if self._step(role) < phase.last:
            raise HintError(f"the {role} has no checkpoint of step {phase.last}")

    def _hint(self, what: str, name: str, partner: str, more: Mapping[str, Any]) -> None:
        """Run ``main_hint.py`` in the folder ``name`` against a server of the partner."""
        served = f"{partner}-{self._step(partner)}"
        print(f"{what} {name}: {served} answers", flush=True)
        with self._serving(partner, served) as (server, url):
            given = {
                "hint.run_dir": self.root / name,
                "trainer.experiment_name": f"{self.config.trainer.experiment_name}-{name}",
                f"{self.node}.t_low": 0,
                f"{self.node}.t_high": 0,
                f"{self.node}.{partner}": "teacher",
                f"{self.node}.train_{partner}": False,
                "hint.teacher.base_url": f"{url}/v1",
                "hint.teacher.model": partner,
                # The same limit as for the policy's own replica.
                "hint.teacher.timeout_s": self.config.hint.watchdog.rollout_s,
                # Other weights must not answer from this cache.
                "hint.teacher.cache_dir": self.root / "answers" / served,
                **more,
            }
            arguments = [override(key, value) for key, value in given.items()]
            self._run("main_hint.py", [*self.settings, *arguments], server)

    @contextlib.contextmanager
    def _serving(self, role: str, name: str) -> Iterator[tuple[subprocess.Popen, str]]:
        """Serve a role's newest weights in the block; yields the server and its address."""
        model = self._weights(role)
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            port = probe.getsockname()[1]
        command = [*SERVE, "--model", model, "--served-model-name", role, name]
        command += ["--host", _HOST, "--port", str(port)]
        command += server_arguments(self.config, self.devices)
        env = {"CUDA_VISIBLE_DEVICES": self.devices} if self.devices else {}
        with open(self.root / LOG, "a", encoding="utf-8") as log:
            print("$", shlex.join(command), file=log, flush=True)
            server = start_child(command, env=env, log=log, pass_fds=(self._lock,))
        began_s, limit_s = time.monotonic(), self.config.hint.watchdog.start_s
        try:
            while not _answers(f"http://{_HOST}:{port}/health"):
                _check_runs(server)
                if time.monotonic() - began_s > limit_s:
                    raise StallError(
                        f"the server of {name} did not answer within hint.watchdog.start_s="
                        f"{limit_s:g} s; raise it, or look at {LOG}"
                    )
                pause(0.5)
            yield server, f"http://{_HOST}:{port}"
        finally:
            end_child(server)

    def _run(
        self, program: str, arguments: Sequence[str], server: subprocess.Popen | None = None
    ) -> None:
        """Run a program to its end, as long as the server runs."""
        command = [sys.executable, str(self.programs / program), *arguments]
        look = functools.partial(_check_runs, server)
        if code := run_child(command, look, pass_fds=(self._lock,)):
            raise HintError(f"{program} ended with exit code {code}; it has said why")


def _check_runs(server: subprocess.Popen | None) -> None:
    if server and (code := server.poll()) is not None:
        raise HintError(f"the server of the partner ended with exit code {code}: see {LOG}")


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    return False


def server_arguments(config: Any, devices: str) -> list[str]:
    """Return the engine's arguments, those of the policy's own replica."""
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
    if devices:
        given["tensor_parallel_size"] = len(devices.split(","))
    given |= rollout.engine_kwargs.get("vllm") or {}
    arguments = []
    for name, value in given.items():
        option = name.replace("_", "-")
        if value is True:
            arguments.append(f"--{option}")
        elif value is False and name == "enable_chunked_prefill":  # on by default
            arguments.append(f"--no-{option}")
        elif value is not None and value is not False:
            arguments += [f"--{option}", value if isinstance(value, str) else json.dumps(value)]
    return arguments


def check_settings(config: DictConfig, devices: str) -> str:
    """Return the settings node of the method; refuse what has no two roles, or no export."""
    name = str(config.trainer.method)
    method = get_method(name)
    check(method.roles_alternate, f"trainer.method={name} has no solver and guide that take turns")
    node = method.settings_node
    needed = {
        **{f"{node}.{role}": "policy" for role in ROLES},
        **{f"{node}.train_{role}": True for role in ROLES},
        "trainer.default_local_dir": f"{config.hint.run_dir}/checkpoints",
        "trainer.resume_mode": "auto",
        "actor_rollout_ref.model.lora_rank": 0,  # an export writes whole weights
        # A schedule follows the number of steps, which grows with every phase.
        "actor_rollout_ref.actor.optim.lr_scheduler_type": "constant",
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": 0.0,
        "trainer.save_freq": max(config.trainer.save_freq, 1),
    }
    for key, value in needed.items():
        given = OmegaConf.select(config, key)
        check(given == value, f"{key}={given} does not work with two policies; give {value}")
    check(
        (config.trainer.device == "cpu") != bool(devices),
        f"--devices '{devices}' with trainer.device={config.trainer.device}: name the GPUs "
        f"that serve the frozen role, none on a CPU; those that train are CUDA_VISIBLE_DEVICES",
    )
    return node


def check_and_alternate(devices: str, config: DictConfig) -> None:
    from recipe.hint.adapter.preflight.run import preflight

    settings = [str(each) for each in HydraConfig.get().overrides.task]
    node, planned = check_settings(config, devices), []
    if not config.trainer.eval_only:
        # As one policy in both roles; the server's settings are checked with each phase.
        preflight(config, [each for each in settings if not each.startswith("hint.teacher.")])
        method = build_method(config.trainer, settings_of(config))
        planned = phases(*method.role_steps, config.trainer.total_training_steps or 0)
        shown = ", ".join(f"{role} {first}-{last}" for role, first, last in planned)
        print(f"phases    {len(planned)}: {shown}", flush=True)
    if not config.preflight_only:
        Alternation(config, settings, node, planned, devices).run()
        print(f"done: {config.hint.run_dir}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; the exit code is 0 only when it has done all it was asked for."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--devices", default="", help="GPUs that serve")
    given, settings = parser.parse_known_args(argv)
    start = functools.partial(check_and_alternate, given.devices)
    run_command(settings, start, runs_here=False)
