"""Start Ray and the run, show its progress, and report a failure in one sentence."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import ray
from omegaconf import DictConfig, OmegaConf
from ray.exceptions import RayActorError, RayError, RayTaskError
from tqdm import tqdm

from recipe.laptop.fork_client_process import EXECUTABLE
from recipe.run.checkpoints import point_at
from recipe.run.children import deferred_signals, raise_deferred, raise_on_sigterm
from recipe.run.environment import environment_of
from recipe.run.errors import HintError, StallError
from recipe.run.folder_lock import claimed
from recipe.run.paths import evaluation_folder, make_absolute
from recipe.run.ray_logs import engine_error, keep_logs
from recipe.run.ray_services import RayServices, starting
from recipe.run.reporter import closing_lines, stopped_line
from recipe.run.run_folder import RunFolder, keep_config
from recipe.run.task_runner import HintTaskRunner, is_training, remote_runner, run_folders
from recipe.run.watchdog import read_fatal, sentence_of, silence_of, text_of
from recipe.study.evaluation_run import EvaluationRunner

_STEP = re.compile(r"^(step|samples) (\d+)/(\d+)")
_POLL_S = 0.2
_PRINT_EVERY_S = 10.0
_ELSEWHERE = "root cause"  # vLLM's errors name no reason; they point at the output of its engine
_NO_ERROR = (
    "It wrote no error on this machine: it was killed (check dmesg for the OOM killer), or ran on "
    "another machine"
)


class _StartedRay(NamedTuple):
    """Ray as it runs for one run.

    Attributes:
        folder: The run's.
        session: Ray's folder of logs.
        services: Ray's own processes.
    """

    folder: RunFolder
    session: Path
    services: RayServices


def launch(config: DictConfig) -> list[str]:
    """Run to the end.

    Returns:
        The result, in lines for the console.

    Raises:
        HintError: If the run failed; the message is the first reason any of its processes left.
    """
    if config.trainer.eval_only:
        run_to_its_end(config, EvaluationRunner)
        folder = evaluation_folder(config)
        table = (folder / "table.md").read_text(encoding="utf-8").splitlines()
        return ["done", *table, f"  in {folder}"]
    try:
        return ["done", *closing_lines(run_to_its_end(config, HintTaskRunner))]
    except KeyboardInterrupt:
        if config.trainer.resume_mode == "auto":
            folder = RunFolder(config.hint.run_dir)
            tqdm.write(stopped_line(folder, config.trainer.default_local_dir))
        raise


def run_to_its_end(config: DictConfig, runner_class: type) -> RunFolder:
    """Start Ray and a runner, show its progress, and end Ray again.

    Args:
        config: The run's; its paths become absolute.
        runner_class: Its method ``run(config)`` runs inside Ray.

    Raises:
        HintError: If the run failed; the message is the first reason any of its processes left.
    """
    with _started_ray(config) as started:
        folder = started.folder
        console = _Console(folder.console)
        runner = remote_runner(runner_class)
        _wait_until_scheduled(runner, config.hint.watchdog.queue_s)
        limit_s = config.hint.watchdog.answer_s
        silence = silence_of(folder.logs)
        job = runner.run.remote(config)
        try:
            while not ray.wait([job], timeout=_POLL_S)[0]:
                raise_deferred()
                console.show()
                if silence.length_s() > limit_s:
                    raise StallError(
                        f"the driver did not answer within hint.watchdog.answer_s={limit_s:g} s; "
                        f"see logs/ray for where it hung, or raise the limit"
                    )
                started.services.check()
            raise_deferred()
            ray.get(job)
            return folder
        except (RayError, HintError) as error:
            reason = _reason(error, folder)
            if _ELSEWHERE in reason:
                own = engine_error(started.session, ray.get_runtime_context().get_job_id())
                reason = own or f"{reason} {_NO_ERROR}"
            raise HintError(f"{reason} (logs: {folder.logs})") from error
        finally:
            console.show()
            console.close()


def _reason(error: Exception, folder: RunFolder) -> str:
    """Return the reason that a process of the run wrote, or Ray's error if the disk was full."""
    left = read_fatal(folder.logs)
    if left or (isinstance(error, HintError) and not isinstance(error, RayTaskError)):
        return left or str(error)
    if isinstance(error, RayActorError):
        return f"the driver died: {text_of(error)}"
    return sentence_of(error, folder.root)


def _wait_until_scheduled(runner: Any, limit_s: float) -> None:
    """Wait for a Ray actor's process.

    Raises:
        HintError: If Ray has no free CPU slot for it within ``limit_s``, or it dies at once.
    """
    ready, deadline = runner.__ray_ready__.remote(), time.monotonic() + limit_s
    while not ray.wait([ready], timeout=_POLL_S)[0]:
        raise_deferred()
        if time.monotonic() > deadline:
            raise StallError(
                f"Ray did not start the task runner within hint.watchdog.queue_s={limit_s:g} s; it "
                f"has {ray.available_resources().get('CPU', 0):g} free CPUs "
                f"(ray_kwargs.ray_init.num_cpus)"
            )
    try:
        ray.get(ready)
    except RayError as error:
        raise HintError(f"Ray could not start the task runner: {text_of(error)}") from error


@contextlib.contextmanager
def _started_ray(config: DictConfig) -> Iterator[_StartedRay]:
    """Run Ray for the time of one run, and keep the output of its processes with the run."""
    # Here: the actors do not know Hydra's resolvers, such as the time in the run's name.
    OmegaConf.resolve(config)
    make_absolute(config)
    folder = RunFolder(config.hint.run_dir)
    folder.create()
    with claimed_places(config):
        (folder.logs / "fatal.json").unlink(missing_ok=True)
        folder.begin_console()
        leave_former_run(config)
        # An evaluation in a run's folder leaves what that run was made with as it is.
        place = evaluation_folder(config) if config.trainer.eval_only else folder.root
        keep_config(place / "config.yaml", OmegaConf.to_yaml(config))
        arguments = _ray_arguments(config)
        with starting(config.hint.watchdog.queue_s):
            context = cast(Any, ray.init(**arguments))
        raise_on_sigterm()  # Ray has set a handler that ends the process silently
        session = Path(context.address_info["session_dir"]) / "logs"
        services = RayServices()
        with deferred_signals():
            try:
                yield _StartedRay(folder, session, services)
            finally:
                _end_ray(services, session, folder.logs / "ray")


def leave_former_run(config: DictConfig) -> None:
    """Point at no checkpoint where a run starts over, before its settings replace the former ones.

    Also if this start fails, the next one must not take up the former run with them.
    """
    root = Path(config.trainer.default_local_dir)
    if is_training(config) and config.trainer.resume_mode == "disable" and root.is_dir():
        point_at(root, 0)


@contextlib.contextmanager
def claimed_places(config: DictConfig) -> Iterator[None]:
    """Hold the folders of the run, which the command of another one may not use."""
    with contextlib.ExitStack() as claims:
        for each in run_folders(config):
            each.mkdir(parents=True, exist_ok=True)
            claims.enter_context(claimed(each / ".lock"))
        yield


def _end_ray(services: RayServices, session: Path, logs: Path) -> None:
    try:
        with contextlib.suppress(Exception):  # the run's own error must not be replaced
            time.sleep(0.3)
            keep_logs(session, logs, ray.get_runtime_context().get_job_id())
        services.shut_down()
    finally:  # even if a second signal ended the wait
        services.kill_all()


def _ray_arguments(config: DictConfig) -> dict[str, Any]:
    """Return the arguments with which Ray starts or joins a cluster in the run's environment."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    default_env = get_ppo_ray_runtime_env(config)
    own_env = {name: os.environ[name] for name in environment_of(config)}
    default_env["env_vars"] = {
        **default_env.get("env_vars", {}),
        **own_env,
        "TRANSFER_QUEUE_ENABLE": "1",
    }
    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
    given: Any = OmegaConf.to_container(config.ray_kwargs.get("ray_init", {}), resolve=True)
    # Without verl's own py_executable=null; an environment of the user's has a Python of its own.
    own = {name: each for name, each in (given.pop("runtime_env", None) or {}).items() if each}
    if not own.keys() & {"pip", "uv", "conda", "container", "image_uri"}:
        client = os.environ.get(EXECUTABLE)
        default_env["py_executable"] = client and shlex.quote(client)  # Ray gives it to a shell
    runtime_env = OmegaConf.merge(default_env, own)
    if config.trainer.nnodes == 1 and not (given.get("address") or os.environ.get("RAY_ADDRESS")):
        given["address"] = "local"  # else Ray joins what was started last on this machine
    return quiet | given | {"runtime_env": OmegaConf.to_container(runtime_env)}


class _Console:
    """Shows the run's console file as it grows, above a progress bar."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self._bar: tqdm | None = None
        self._printed_at = time.monotonic()

    def show(self) -> None:
        """Show what was written since the last call."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            file.seek(self._seen)
            whole, end, _ = file.read().rpartition(b"\n")
        if not end:
            return
        self._seen += len(whole) + 1
        for line in whole.decode(errors="replace").split("\n"):
            match = _STEP.match(line)
            if match:
                self._advance(match[1], int(match[2]), int(match[3]))
            if not match or match[1] == "step" or self._is_due(match[2] == match[3]):
                tqdm.write(line)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _advance(self, unit: str, done: int, total: int) -> None:
        if self._bar is None:
            first = done - 1 if unit == "step" else done
            # disable=None: no bar where the console is a file.
            self._bar = tqdm(
                total=total, initial=first, unit=unit.removesuffix("s"), leave=False, disable=None
            )
        self._bar.update(done - self._bar.n)

    def _is_due(self, is_last: bool) -> bool:
        """Return whether to print a number of samples, where no bar shows it."""
        if not self._bar or not self._bar.disable:
            return False
        if not is_last and time.monotonic() - self._printed_at < _PRINT_EVERY_S:
            return False
        self._printed_at = time.monotonic()
        return True
