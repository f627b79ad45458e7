"""Mode separate_async on the CPU: the transfer of weights, and the places of verl around it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
import ray
import torch
from omegaconf import OmegaConf
from torch.distributed.tensor import DeviceMesh, distribute_tensor
from verl.checkpoint_engine import CheckpointEngine
from verl.checkpoint_engine.base import CheckpointEngineRegistry
from verl.trainer.ppo.v1 import PPOTrainer
from verl.utils import fsdp_utils

from recipe.hint.hint_trainer import TRAINERS
from recipe.hint.samples import NO_SAMPLES
from recipe.laptop import transfer as cpu_transfer
from recipe.laptop.transfer import BACKEND, GlooCheckpointEngine

SEPARATE = TRAINERS["separate_async"]
WEIGHTS = {
    "matrix": torch.arange(12, dtype=torch.float32).reshape(4, 3),
    "half": torch.arange(5, dtype=torch.bfloat16),
    "count": torch.tensor([7]),
    "scale": torch.tensor(0.5),
}


@pytest.fixture
def on_this_machine(monkeypatch):
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")


async def received(engine):  # a member is a thread here, in a run a process
    return [(name, weight.clone()) async for name, weight in engine.receive_weights()]


def transfer(engines, *, num_trainers, weights=WEIGHTS):
    """What verl's manager does: prepare, topology, join, send and receive, leave."""
    metadata = [engine.prepare() for engine in engines]
    sides = GlooCheckpointEngine.build_topology(num_trainers, len(engines) - num_trainers, metadata)
    arguments = [
        {name: values[member] for name, values in side.items()}
        for side in sides
        for member in range(len(side["rank"]))
    ]

    def take_part(engine, given, *, is_trainer):
        engine.init_process_group(**given)
        work = engine.send_weights(iter(weights.items())) if is_trainer else received(engine)
        return asyncio.run(work)

    with ThreadPoolExecutor(len(engines)) as pool:
        jobs = [
            pool.submit(take_part, engine, given, is_trainer=number < num_trainers)
            for number, (engine, given) in enumerate(zip(engines, arguments, strict=True))
        ]
        results = [job.result(timeout=300) for job in jobs]
    for engine in engines:
        engine.finalize()
    return results[:num_trainers], results[num_trainers:]


def make(count):
    return [GlooCheckpointEngine(1 << 20, is_master=number == 0) for number in range(count)]


def assert_same(weights, expected=WEIGHTS):
    assert [name for name, _ in weights] == list(expected)
    for name, weight in weights:
        assert weight.dtype == expected[name].dtype
        assert weight.shape == expected[name].shape
        assert torch.equal(weight, expected[name])


# -- the transfer ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_this_machine")
def test_other_trainer_ranks_take_every_step_and_send_nothing():
    # Each step of the iteration gathers one weight from all ranks of FSDP.
    steps = []

    class Watched(dict):
        def items(self):
            for name, weight in super().items():
                steps.append(name)
                yield name, weight

    sent, got = transfer(make(3), num_trainers=2, weights=Watched(WEIGHTS))
    assert sent[1] == {}
    assert sorted(steps) == sorted([*WEIGHTS, *WEIGHTS])  # two ranks, each all four
    assert_same(got[0])


@pytest.mark.usefixtures("on_this_machine")
def test_a_member_that_does_not_come_ends_the_wait_of_the_others(monkeypatch):
    monkeypatch.setattr(cpu_transfer, "_LIMIT", timedelta(seconds=0.5))
    [sender] = make(1)
    meeting = sender.prepare()
    with pytest.raises((RuntimeError, torch.distributed.DistStoreError), match=r"(?i)time|wait"):
        sender.init_process_group(0, 2, meeting)


# -- verl around it -------------------------------------------------------------------------------


def test_verl_finds_the_transfer_under_its_name():
    assert CheckpointEngineRegistry.get(BACKEND) is GlooCheckpointEngine
    assert set(CheckpointEngine.__abstractmethods__) <= set(vars(GlooCheckpointEngine))


def test_weights_that_verl_saves_are_not_the_live_ones(tmp_path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = torch.nn.Linear(2, 1, bias=False)
        mesh = DeviceMesh("cpu", [0])
        model.weight = torch.nn.Parameter(distribute_tensor(torch.ones(1, 2), mesh))
        bare, _ = fsdp_utils.fsdp2_sharded_save_to_cpu.__wrapped__(model)
        kept, spec = fsdp_utils.fsdp2_sharded_save_to_cpu(model)
        with torch.no_grad():
            model.weight.to_local().fill_(3.0)  # the update
        assert bare["weight"][0].tolist() == [[3.0, 3.0]]  # verl's own copy moved along
        assert kept["weight"][0].tolist() == [[1.0, 1.0]]
        fsdp_utils.fsdp2_sharded_load_from_cpu(model, kept, spec)
        assert model.weight.to_local().tolist() == [[1.0, 1.0]]
    finally:
        torch.distributed.destroy_process_group()


def test_the_metrics_of_a_step_count_the_records_of_all_its_updates(monkeypatch):
    a, b, c = (SimpleNamespace(uid=uid, conversations=(), rounds=()) for uid in "abc")

    def two_updates(self, metrics, timing_raw):
        self._records_of_step.extend([a, b])
        self._records_of_step.extend([c])
        metrics["training/rollout_failure/evicted_samples"] = 2.0
        metrics["training/off_policy/evicted_samples"] = 3.0
        return "batch"

    monkeypatch.setattr(PPOTrainer, "step", two_updates)
    monkeypatch.setattr(
        "recipe.hint.hint_trainer.hint_metrics.step_metrics",
        lambda records, max_level: {"prompts": float(len(records))},
    )
    trainer = SEPARATE.__new__(SEPARATE)
    trainer.config = OmegaConf.create({"data": {"train_batch_size": 3}})
    trainer._method = SimpleNamespace(max_level=3)
    trainer.tracker = SimpleNamespace(metrics=lambda: {"seen": 5.0})
    trainer.global_steps = 7
    sampled = []
    trainer.hint = SimpleNamespace(samples=NO_SAMPLES, seed=1)
    monkeypatch.setattr(
        "recipe.hint.hint_trainer.choose_samples",
        lambda *given, **_: sampled.append(given) or ["row"],
    )
    written = []
    trainer.folder = SimpleNamespace(samples="samples.jsonl")
    monkeypatch.setattr(
        "recipe.hint.hint_trainer.append_rows", lambda path, rows: written.extend(rows)
    )
    monkeypatch.setattr(
        "recipe.hint.hint_trainer.hint_metrics.verify_metrics",
        lambda records: {"ungraded": float(len(records))},
    )
    metrics = {}
    assert trainer.step(metrics, {}) == "batch"
    assert metrics["hint/prompts"] == 3.0
    assert metrics["hint/failed_prompts"] == 2.0  # none is missing, two were replaced
    assert metrics["hint/stale_prompts"] == 3.0
    assert metrics["reward_tracking/seen"] == 5.0
    assert metrics["verify/ungraded"] == 3.0
    assert sampled == [([a, b, c], {})] and written == ["row"]
