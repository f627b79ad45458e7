"""The control plane under load: all of a run but the model, with simulated engine and update.

Real are the driver's step, the agent-loop workers, the verifier, TransferQueue and Ray. A server
answers with responses of a given length, and a trainer rank writes log-probabilities of zero.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import time
from array import array
from types import SimpleNamespace
from typing import Any

import psutil
import ray
import torch
import transfer_queue as tq
from omegaconf import DictConfig
from tensordict import TensorDict
from transfer_queue.utils.zmq_utils import ZMQMessage, frame_nbytes
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.router import GlobalRequestLoadBalancer

from recipe.hint.adapter.trainer import HintMixin
from recipe.hint.adapter.worker import HintManager, HintWorker
from recipe.hint.methods import get_method
from recipe.run.errors import ConfigError
from recipe.study.bench.control_settings import ROWS_FILE, ControlSettings
from recipe.study.bench.parts import PARTS, timed

_BEAT_S = 0.002
_HINTS = json.dumps({f"level_{level}": "take the last digits" for level in (1, 2, 3)})

# -- the simulated engine and update ---------------------------------------------------------------


class SimulatedServer:
    """In place of a vLLM replica: groups of ``tokens`` tokens that end with a boxed digit."""

    def __init__(self, config: DictConfig) -> None:
        settings = ControlSettings(**config.control)
        self._tokens, self._token_s = settings.tokens, settings.token_ms / 1000
        model: Any = omega_conf_to_dataclass(config.actor_rollout_ref.model, HFModelConfig)
        encode = functools.partial(model.tokenizer.encode, add_special_tokens=False)
        filler = encode("Begin with the result of all lines. ")
        self._filler = filler * (self._tokens // len(filler) + 1)
        self._ends = [encode(f"\\boxed{{{digit}}}") for digit in range(4)]
        self._hints = encode(f"```json\n{_HINTS}\n```")
        self._writes_hints = get_method(config.trainer.method).uses_hints

    async def generate_group(
        self, prompt_ids: list[int], sampling: dict[str, Any], request_id: str, limit_s: float
    ) -> dict[str, Any]:
        """Answer like the project's rollout server; a hint writer's request gets hints."""
        rng = random.Random(sampling["seed"])
        if sampling["n"] == 1 and self._writes_hints:
            token_ids = [list(self._hints)]
        else:
            ends = [rng.choice(self._ends) for _ in range(sampling["n"])]
            token_ids = [self._filler[: self._tokens - len(end)] + end for end in ends]
        await asyncio.sleep(self._token_s * len(token_ids[0]) * rng.uniform(0.5, 1.5))
        return {
            "token_ids": [array("q", each) for each in token_ids],
            "log_probs": [array("d", [-0.5]) * len(each) for each in token_ids],
            "finish": ["stop"] * len(token_ids),
            "global_steps": 0,
            "cached_tokens": 0,
            "prompt_log_probs": [],
        }

    async def generate_groups(
        self, asked: list[tuple[list[int], dict[str, Any], str]], limit_s: float
    ) -> list[dict[str, Any]]:
        """Answer several requests at once."""
        return await asyncio.gather(*(self.generate_group(*each, limit_s) for each in asked))


class SimulatedRank:
    """In place of a trainer rank: writes log-probabilities, reads what an update reads."""

    def __init__(self) -> None:
        tq.init()

    def compute_log_prob(self, batch: Any) -> Any:
        """Write zeros, as nested as the engine's."""
        zeros = [torch.zeros(tag["seq_len"]) for tag in batch.tags]
        nested = torch.nested.as_nested_tensor(zeros, layout=torch.jagged)
        names = ["log_probs", "entropy"] if batch.extra_info["calculate_entropy"] else ["log_probs"]
        fields = TensorDict(dict.fromkeys(names, nested), batch_size=len(batch))
        return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)

    def update_actor(self, batch: Any) -> None:
        """Read the columns of an update."""
        fields = ["input_ids", "position_ids", "loss_mask", "old_log_probs", "advantages"]
        tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)


class _Group:
    """The worker group of one simulated rank."""

    workers = ()  # it has no process of verl's

    def __init__(self) -> None:
        self._dispatch_info = {"actor": [0]}
        rank: Any = ray.remote(SimulatedRank)
        self._rank = rank.remote()

    def compute_log_prob(self, batch: Any) -> Any:
        with PARTS.part("simulated log-probs"):
            return ray.get(self._rank.compute_log_prob.remote(batch))

    compute_ref_log_prob = compute_log_prob

    def update_actor(self, batch: Any) -> dict[str, Any]:
        with PARTS.part("simulated update"):
            ray.get(self._rank.update_actor.remote(batch))
        return {"metrics": {"mfu": 0.0, "grad_norm": 0.0}}


class _NoCheckpoints:
    def update_weights(self, global_steps: int) -> None:
        """Have nothing to do, as for sleeping replicas."""

    def sleep_replicas(self) -> None:
        """Have nothing to do."""


# -- the worker ------------------------------------------------------------------------------------


class Traffic:
    """Counts the bytes of this process's messages to and from the queue."""

    def __init__(self) -> None:
        self.num_bytes = 0
        message: Any = ZMQMessage
        serialize, deserialize = message.serialize, message.deserialize

        def count(frames: list[Any]) -> list[Any]:
            self.num_bytes += sum(frame_nbytes(frame) or 0 for frame in frames)
            return frames

        message.serialize = lambda self: count(serialize(self))
        message.deserialize = classmethod(lambda cls, frames: deserialize(count(frames)))


class ControlWorker(HintWorker):
    """The project's worker with a heart-beat: how long its event loop is held up.

    The parents are named where ``super()`` would stand: Ray ships this class by value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        HintWorker.__init__(self, *args, **kwargs)
        self._traffic = Traffic()
        self._beat: asyncio.Task[None] | None = None
        self._stall_s = self._stall_cpu_s = self._end_time = 0.0

    async def generate_sequences(self, batch: Any) -> None:
        """Do as the parent does, watched."""
        self._beat = self._beat or asyncio.create_task(self._watch())
        await HintWorker.generate_sequences(self, batch)

    async def _run_prompt(self, *args: Any, **kwargs: Any) -> None:
        await HintWorker._run_prompt(self, *args, **kwargs)
        self._end_time = time.time()

    async def _watch(self) -> None:
        while True:
            before, cpu_before = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_BEAT_S)
            late_s = time.perf_counter() - before - _BEAT_S
            self._stall_s = max(self._stall_s, late_s)
            self._stall_cpu_s = max(self._stall_cpu_s, time.thread_time() - cpu_before)

    async def take_counts(self) -> dict[str, float]:
        """Return this step's longest stall and end, and totals so far."""
        counts = {
            "stall_s": self._stall_s,
            "stall_cpu_s": self._stall_cpu_s,
            "end_time": self._end_time,
            "cpu_s": time.process_time(),
            "bytes": self._traffic.num_bytes,
        }
        self._stall_s = self._stall_cpu_s = 0.0
        return counts


class ControlManager(HintManager):
    """The project's manager, with :class:`ControlWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ControlWorker)


# -- the driver ------------------------------------------------------------------------------------

_VERLS = ("_fetch_one_gen_batch", "_submit_batch_to_rollout", "_balance_batch", "_compute_metrics")
_VERLS += ("_compute_old_log_prob", "_compute_ref_log_prob", "_compute_advantage", "_update_actor")
_OURS = ("_fetch_one_gen_batch", "_records_of", "_compute_advantage", "_step_once", "step")


class _Simulated(PPOTrainerSync):
    """verl's trainer with nothing behind it that needs a model."""

    def _setup(self) -> None:
        if self.use_critic:
            raise ConfigError(
                f"no critic is simulated, and trainer.method={self.config.trainer.method} trains "
                "one here; take a baseline or a method without"
            )
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        simulated: Any = self  # verl's types are those of the real parts
        simulated.checkpoint_manager, simulated.actor_rollout_wg = _NoCheckpoints(), _Group()
        simulated.ref_in_actor, simulated.ref_policy_wg = False, simulated.actor_rollout_wg
        simulated.teacher_model_manager = simulated.distillation_config = None
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        self.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 1)
        self._load_checkpoint()

    def get_llm_client(self) -> LLMServerClient:
        server = ray.remote(SimulatedServer).remote(self.config)
        balancer = ray.remote(GlobalRequestLoadBalancer).remote({"simulated": server})
        return LLMServerClient(self.config, balancer)


@timed("verl", *_VERLS)
class _Verls(_Simulated): ...


class _Ours(HintMixin, _Verls): ...


@timed("ours", *_OURS)
class ControlTrainer(_Ours):
    """The project's trainer, its parts timed."""

    def __init__(self, config: DictConfig) -> None:
        super().__init__(config)
        self._traffic = Traffic()
        self._totals: dict[str, float] = {}
        self._began = time.perf_counter()
        sample = self.replay_buffer.sample

        def timed_sample(*args: Any, **kwargs: Any) -> Any:
            with PARTS.part("waiting for rollouts"):
                batch = sample(*args, **kwargs)
            self._sampled_time = time.time()
            return batch

        self.replay_buffer.sample = timed_sample

    def fit(self, agent_loop_manager: Any) -> None:
        """Train, and remember the workers whose counts each step reads."""
        self._workers = agent_loop_manager.agent_loop_workers
        super().fit(agent_loop_manager)

    def on_step_begin(self) -> None:
        """Begin the step's clock."""
        PARTS.take()
        self._began = time.perf_counter()
        super().on_step_begin()

    @property
    def logger(self) -> Any:
        """The reporter, timed."""
        return self._reporter and SimpleNamespace(log=self._log, finish=self._reporter.finish)

    @logger.setter
    def logger(self, tracking: Any) -> None:
        HintMixin.logger.__set__(self, tracking)

    def _log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        assert self._reporter is not None
        with PARTS.part("ours reporter"):
            self._reporter.log(data, step)
        seconds = PARTS.take()
        counts = ray.get([each.take_counts.remote() for each in self._workers])
        totals = {
            "worker_cpu_s": sum(each["cpu_s"] for each in counts),
            "driver_cpu_s": time.process_time(),
            "worker_bytes": sum(each["bytes"] for each in counts),
            "driver_bytes": self._traffic.num_bytes,
        }
        waited_s = seconds.pop("waiting for rollouts")
        after_s = self._sampled_time - max(each["end_time"] for each in counts)
        row = {
            "prompts": self.config.data.train_batch_size,
            "step": step,
            "step_s": time.perf_counter() - self._began,
            "rollout_s": waited_s - after_s,
            "parts": {"ours sample after the last group": after_s} | seconds,
            **{name: value - self._totals.get(name, 0.0) for name, value in totals.items()},
            "stall_s": max(each["stall_s"] for each in counts),
            "stall_cpu_s": max(each["stall_cpu_s"] for each in counts),
            "peak_mib": peaks_of(self.config.control.launcher),
        }
        self._totals = totals
        with open(self.folder.root / ROWS_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def peaks_of(launcher: int) -> dict[str, float]:
    """Return the peak resident memory of a command's processes by what they are, in MiB."""
    peaks: dict[str, float] = {}
    for process in psutil.Process(launcher).children(recursive=True):
        try:
            name = (process.cmdline() or [process.name()])[0]
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                status = dict(line.split(":", 1) for line in file)
        except (psutil.Error, OSError):
            continue
        if name.startswith("ray::") and "VmHWM" in status:
            name = name.removeprefix("ray::").split(".")[0]
            peak = int(status["VmHWM"].split()[0]) / 1024
            peaks[name] = max(peaks.get(name, 0.0), round(peak, 1))
    return peaks
