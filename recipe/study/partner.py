"""The frozen half of two policies: vLLM's own API server with one role's weights."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shlex
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.hint.hints.teacher import Client, Fault
from recipe.hint.hints.teacher_settings import TeacherSampling, TeacherSettings, make_request
from recipe.run.children import end_children, pause, start_child
from recipe.run.errors import ConfigError, HintError, StallError

LOG = "server.log"
# Not the program `vllm`: that of the CPU build does not find its own metadata.
_SERVE = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
# Settings of `actor_rollout_ref.rollout` that the policy's own replica is started with too.
_AS_THE_POLICY = (
    *("dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("enforce_eager", "enable_chunked_prefill"),
)
_ASK_EVERY_S, _TRY_EVERY_S, _POLL_S = 10.0, 1.0, 0.2
# vLLM's counters at /metrics, which no queue delays.
_TOKENS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
_METRICS_S = 10.0


@dataclass(frozen=True)
class ServerOptions:
    """Where the server runs, and how; the command's own options.

    Attributes:
        host: Address that every machine of the training reaches.
        port: 0: a free one.
        devices: GPUs, as ``CUDA_VISIBLE_DEVICES`` names them; empty on a CPU.
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
                    f"--host {self.host} --port {self.port} cannot be served at "
                    f"({error.strerror}); give another port, or 0 for a free one, and an address "
                    f"of this machine"
                ) from error
            return probe.getsockname()[1]


class Server:
    """A running server; :meth:`check` says whether it answers.

    It is asked for one token from time to time: the process may be there and its engine hang. Where
    many requests wait, ours waits behind them: tokens of any request are a sign of life too.
    """

    def __init__(
        self, command: list[str], *, url: str, name: str, limits: Any, **process: Any
    ) -> None:
        self.url, self.name = url, name
        self._metrics = url.removesuffix("/v1") + "/metrics"
        self._limits = limits
        self._since_s, self._has_answered = time.monotonic(), False
        self._refusal = ""
        self._client = Client(url, key="", timeout_s=limits.answer_s, uses_proxy=False)
        self.process = start_child(command, **process)
        threading.Thread(target=self._keep_asking, daemon=True).start()

    def check(self) -> bool:
        """Return whether it has answered yet.

        Raises:
            HintError: If it has ended, or refuses.
            StallError: If it does not answer in time, nor reads or writes a token.
        """
        who = f"the server of {self.name}"
        if (code := self.process.poll()) is not None:
            raise HintError(f"{who} ended with exit code {code}: {LOG} has the reason")
        if self._refusal:
            raise HintError(f"{who} refuses a chat: {self._refusal}")
        limit = "answer_s" if self._has_answered else "start_s"
        limit_s = getattr(self._limits, limit)
        if time.monotonic() - self._since_s > limit_s:
            raise StallError(
                f"{who} did not answer within hint.watchdog.{limit}={limit_s:g} s; raise it, or "
                f"look at {LOG}"
            )
        return self._has_answered

    def _keep_asking(self) -> None:
        try:
            asyncio.run(self._look())
        except Exception as error:  # noqa: BLE001 - it is not the server that failed
            self._refusal = f"asking it failed with {type(error).__name__}: {error}"

    async def _look(self) -> None:
        await asyncio.gather(self._ask(), self._count())

    async def _count(self) -> None:
        most = 0.0
        while self.process.poll() is None:
            await asyncio.sleep(_ASK_EVERY_S)
            count = await asyncio.to_thread(self._num_tokens)
            if self._has_answered and count > most:
                most, self._since_s = count, time.monotonic()

    def _num_tokens(self) -> float:
        """Return how many tokens it has read and written so far; 0 where it does not say."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(self._metrics, timeout=_METRICS_S) as response:
                lines = response.read().decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith(_TOKENS))
        except (OSError, ValueError, http.client.HTTPException):
            return 0.0

    async def _ask(self) -> None:
        request = make_request(
            TeacherSettings(model=self.name),
            TeacherSampling(max_tokens=1),
            # The form of a guide's request: some templates refuse a system turn.
            messages=[{"role": "system", "content": "1"}, {"role": "user", "content": "1"}],
        )
        while self.process.poll() is None:
            outcome = await self._client.send(request)
            if not isinstance(outcome, Fault):
                self._since_s, self._has_answered = time.monotonic(), True
            elif outcome.kind == "refused":
                self._refusal = outcome.what
            await asyncio.sleep(_ASK_EVERY_S if self._has_answered else _TRY_EVERY_S)


@contextlib.contextmanager
def serving(
    server_options: ServerOptions,
    config: Any,
    *,
    model: str,
    names: tuple[str, str],
    folder: Path,
    lock: int,
) -> Iterator[Server]:
    """Serve a model during the block; the server has ended when the block has.

    Args:
        server_options: Where the server runs, and how.
        config: The command's settings.
        model: Folder or hub name.
        names: What it is served as; the first one is used by the training, the second one tells
            these weights from others.
        folder: Takes what the server prints.
        lock: Open file that the server holds until its end.
    """
    port = server_options.free_port()
    command = [
        *(*_SERVE, "--model", model, "--served-model-name", *names),
        *("--host", server_options.host, "--port", str(port)),
        *server_arguments(config, server_options),
    ]
    devices = {"CUDA_VISIBLE_DEVICES": server_options.devices} if server_options.devices else {}
    with open(folder / LOG, "a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(command)}\n")
        log.flush()
        server = Server(
            command,
            url=f"http://{server_options.host}:{port}/v1",
            name=names[1],
            limits=config.hint.watchdog,
            env={**os.environ, **devices},
            log=log,
            pass_fds=(lock,),
        )
    try:
        while not server.check():
            pause(_POLL_S)
        yield server
    finally:
        end_children([server.process])


def server_arguments(config: Any, server_options: ServerOptions) -> list[str]:
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
    if server_options.devices:
        given["tensor_parallel_size"] = len(server_options.devices.split(","))
    given |= rollout.engine_kwargs.get("vllm") or {}
    return [*_arguments(given), *shlex.split(server_options.serve_args)]


def _arguments(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            if value or name == "enable_chunked_prefill":  # on by default
                yield f"--{option}" if value else f"--no-{option}"
        elif value is not None:
            yield f"--{option}"
            yield value if isinstance(value, str) else json.dumps(value)
