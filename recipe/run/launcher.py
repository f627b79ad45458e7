"""Start Ray and the run, show its progress, and report a failure in one sentence."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import ray
from omegaconf import DictConfig, OmegaConf
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from recipe.run.checkpoints import point_at
from recipe.run.children import deferred_signals, raise_deferred, raise_on_sigterm
from recipe.run.environment import PYTHON_OF_RUN, environment_of
from recipe.run.errors import HintError, StallError, Terminated, one_line
from recipe.run.paths import evaluation_folder, make_absolute
from recipe.run.reporter import Console
from recipe.run.run_folder import RunFolder, keep_config
from recipe.run.watchdog import NO_ANSWER, Watchdog, read_fatal, sentence_of
from recipe.run.whole_file import claimed

_POLL_S = 0.2
_SHUTDOWN_S, _ENDED_S = 30.0, 10.0  # for Ray's own end, then for that of what it started
_STOPPED_S = 30.0  # Ray gives up by itself after a minute
_LOOK_EVERY_S = 5.0  # for new processes: a look reads all of the machine's
_GONE = (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE)


def run_to_its_end(config: DictConfig, runner_class: type) -> RunFolder:
    """Start Ray, call the runner's method ``run(config)`` inside it, and end Ray again.

    The paths in ``config`` become absolute.
    """
    # Here: the actors do not know Hydra's resolvers, such as the time in the run's name.
    OmegaConf.resolve(config)
    make_absolute(config)
    folder = RunFolder(config.hint.run_dir)
    folder.create()
    with claimed(folder.root / ".lock"):
        (folder.logs / "fatal.json").unlink(missing_ok=True)
        leave_former_run(config)
        # An evaluation in a run's folder leaves what that run was made with as it is.
        place = evaluation_folder(config) if config.trainer.eval_only else folder.root
        keep_config(place / "config.yaml", OmegaConf.to_yaml(config))
        with _started_ray(config, folder) as services:
            try:
                _run(config, folder, services, runner_class)
            except (RayError, HintError) as error:
                # What a process of the run wrote comes first; a full disk shows in Ray's error.
                told = sentence_of(error, folder.root)
                if isinstance(error, HintError) and not isinstance(error, RayTaskError):
                    told = str(error)
                elif isinstance(error, RayActorError):
                    told = f"the driver died: {one_line(error, 1000)}"
                told = read_fatal(folder.logs) or told
                raise HintError(f"{told} (logs: {folder.logs})") from error
    return folder


def leave_former_run(config: DictConfig) -> None:
    """Point at no checkpoint where a run starts over, before its settings replace the former ones.

    Also if this start fails, the next one must not take up the former run with them.
    """
    trainer, root = config.trainer, Path(config.trainer.default_local_dir)
    evaluates = trainer.get("eval_only") or trainer.get("val_only")
    if not evaluates and trainer.resume_mode == "disable" and root.is_dir():
        point_at(root, 0)


@contextlib.contextmanager
def _started_ray(config: DictConfig, folder: RunFolder) -> Iterator[RayServices]:
    """Run Ray during the block, and keep the output of its processes."""
    arguments, watchdog = ray_arguments(config), Watchdog(folder.logs, config.hint.watchdog)
    with watchdog.phase("Ray", "queue_s", fault=NO_ANSWER):
        try:
            context = cast(Any, ray.init(**arguments))
        except SystemExit:  # of Ray's own handler of SIGTERM
            raise Terminated from None
        except Exception as error:  # noqa: BLE001 - Ray raises bare ones
            raise StallError(f"Ray did not start: {one_line(error)}") from error
    watchdog.stop()
    raise_on_sigterm()  # Ray has set a handler that ends the process silently
    services = RayServices()
    with deferred_signals():
        try:
            yield services
        finally:
            if services.are_ours:  # a cluster's folder has the output of other jobs too
                with contextlib.suppress(Exception):  # the run's own error must not be replaced
                    time.sleep(0.3)
                    session = Path(context.address_info["session_dir"]) / "logs"
                    shutil.copytree(session, folder.logs / "ray", dirs_exist_ok=True)
            services.shut_down()


class RayServices:
    """Ray's two services on this node, and everything that they started.

    If one of them is gone, Ray ends this process after a minute, without an error of ours; one that
    is stopped keeps Ray's own shutdown waiting forever. A cluster that was joined has none here.
    """

    def __init__(self) -> None:
        children = psutil.Process().children(recursive=True)
        named = {_asked(each, "name"): each for each in children}
        self._services = {name: named[name] for name in ("gcs_server", "raylet") if name in named}
        self.are_ours = bool(self._services)
        self._started: set[psutil.Process] = set()
        self._ran_at = dict.fromkeys(self._services, time.monotonic())
        self._looked_at = 0.0

    def check(self) -> None:
        """Look at each; ``StallError`` if one died, or has been stopped for half a minute."""
        now = time.monotonic()
        for name, service in self._services.items():
            status = _asked(service, "status")
            if status in _GONE:
                raise StallError(f"Ray's process {name} died; check dmesg for the OOM killer")
            if status != psutil.STATUS_STOPPED:
                self._ran_at[name] = now
            elif now - self._ran_at[name] > _STOPPED_S:
                raise StallError(f"Ray's process {name} was stopped (SIGSTOP) and did not go on")
        if now - self._looked_at > _LOOK_EVERY_S:
            self._look()

    def shut_down(self) -> None:
        """End Ray; what does not end by itself is killed."""
        impatience = threading.Timer(_SHUTDOWN_S, self._kill)
        impatience.daemon = True
        impatience.start()
        try:
            self._look()
            for service in self._services.values():
                if _asked(service, "status") == psutil.STATUS_STOPPED:
                    service.kill()
            ray.shutdown()
            # A stopped process does not notice that Ray has ended.
            deadline = time.monotonic() + _ENDED_S
            while time.monotonic() < deadline and not all(
                _asked(each, "status") in _GONE for each in self._started
            ):
                time.sleep(0.05)
        finally:  # even if a second signal ended the wait
            impatience.cancel()
            self._kill()

    def _kill(self) -> None:
        for each in (*self._services.values(), *self._started):
            _asked(each, "kill")

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for service in self._services.values():
            with contextlib.suppress(psutil.Error):
                self._started |= {*service.children(recursive=True)}


def _asked(process: psutil.Process, method: str) -> Any:
    """Call a method of a process; of one that is gone, its status."""
    try:
        return getattr(process, method)()
    except psutil.NoSuchProcess:
        return psutil.STATUS_DEAD


def _run(config: DictConfig, folder: RunFolder, services: RayServices, runner_class: type) -> None:
    limits, console = config.hint.watchdog, Console(folder)
    # On this machine, where the launcher reads the run's files.
    node = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    remote = cast(Any, ray.remote(runner_class))
    runner = remote.options(num_cpus=1, scheduling_strategy=node).remote()
    ready, deadline = runner.__ray_ready__.remote(), time.monotonic() + limits.queue_s
    while not ray.wait([ready], timeout=_POLL_S)[0]:
        raise_deferred()
        if time.monotonic() > deadline:
            raise StallError(
                f"Ray did not start the task runner within hint.watchdog.queue_s="
                f"{limits.queue_s:g} s; it has {ray.available_resources().get('CPU', 0):g} free "
                f"CPUs (ray_kwargs.ray_init.num_cpus)"
            )
    ray.get(ready)
    heartbeat, job = folder.logs / "heartbeat", runner.run.remote(config)
    heartbeat.touch()
    # By the clock of this process: a laptop may sleep, and a disk may have a clock of its own.
    last, changed_at = 0, time.monotonic()
    try:
        while not ray.wait([job], timeout=_POLL_S)[0]:
            raise_deferred()
            console.show()
            if (beat := heartbeat.stat().st_mtime_ns) != last:
                last, changed_at = beat, time.monotonic()
            elif time.monotonic() - changed_at > limits.answer_s:
                raise StallError(
                    f"the driver did not answer within hint.watchdog.answer_s="
                    f"{limits.answer_s:g} s; see logs/ray for where it hung, or raise the limit"
                )
            services.check()
        raise_deferred()
        ray.get(job)
    finally:
        console.close()


def ray_arguments(config: DictConfig) -> dict[str, Any]:
    """Return the arguments with which Ray starts or joins a cluster in the run's environment."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    default_env = get_ppo_ray_runtime_env(config)
    own_env = {name: os.environ[name] for name in environment_of(config)}
    default_env["env_vars"] = {**default_env.get("env_vars", {}), **own_env}
    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
    given: Any = OmegaConf.to_container(config.ray_kwargs.get("ray_init", {}), resolve=True)
    # Without verl's own py_executable=null; an environment of the user's has a Python of its own.
    own = {name: each for name, each in (given.pop("runtime_env", None) or {}).items() if each}
    if not own.keys() & {"pip", "uv", "conda", "container", "image_uri"}:
        client = os.environ.get(PYTHON_OF_RUN)
        default_env["py_executable"] = client and shlex.quote(client)  # Ray gives it to a shell
    runtime_env = OmegaConf.merge(default_env, own)
    if config.trainer.nnodes == 1 and not (given.get("address") or os.environ.get("RAY_ADDRESS")):
        given["address"] = "local"  # else Ray joins what was started last on this machine
    return quiet | given | {"runtime_env": OmegaConf.to_container(runtime_env)}
