"""verl's agent-loop worker, its manager and the client of the rollout servers."""

import asyncio
import inspect
from types import SimpleNamespace

import pytest
import ray
import transfer_queue as tq
from fakes import OneByOne
from omegaconf import OmegaConf
from verl.experimental.agent_loop import AgentLoopWorker
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

from recipe.hint.adapter.group_client import GroupClient, Sampling
from recipe.hint.adapter.worker import HintManager, HintWorker
from recipe.hint.methods.base import Method
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import Response
from recipe.hint.settings import HintSettings
from recipe.problems.schema import problem_from_row
from recipe.verify.schema import Verdict

PLAIN = AgentLoopWorkerTQ.__ray_actor_class__


def parameters(function) -> list[tuple]:
    """Names, kinds and defaults, without the one that Ray adds to an actor's methods."""
    return [
        (each.name, each.kind, each.default)
        for each in inspect.signature(function).parameters.values()
        if not each.name.startswith("_ray_")
    ]


class Remote:
    """Stands for a method of a Ray actor."""

    def __init__(self, function):
        self._function = function

    def remote(self, *args, **kwargs):
        async def call():
            return self._function(*args, **kwargs)

        return asyncio.get_running_loop().create_task(call())


# -- the worker -----------------------------------------------------------------------------------


def test_our_prompt_coroutine_takes_what_verls_takes():
    assert inspect.iscoroutinefunction(PLAIN._run_prompt)
    assert parameters(HintWorker._run_prompt) == parameters(PLAIN._run_prompt)


def rolling_worker(monkeypatch, roll_out):
    """A worker with ``roll_out`` in place of the rollout, and the marks it sets."""
    marks = []

    async def put(keys, partition_id, tags):
        marks.append((keys, tags))

    monkeypatch.setattr(tq, "async_kv_batch_put", put)
    monkeypatch.setattr(HintWorker, "roll_out", roll_out)
    worker = object.__new__(HintWorker)
    worker._training = worker._validation = None
    worker._solution_key = ""

    async def publish(outcome, prompt, partition):
        pass

    worker._publisher = SimpleNamespace(publish=publish)
    return worker, marks


def prompt_of(name):
    question = [{"role": "user", "content": "?"}]
    ids = {"uid": f"uid of {name}", "extra_info": {"index": name}}
    return {"raw_prompt": question, "answer": "1"} | ids


@pytest.mark.parametrize(
    "error", [RuntimeError("?"), asyncio.CancelledError(), ExceptionGroup("?", [OSError("?")])]
)
def test_whatever_ends_a_prompt_becomes_its_status(monkeypatch, error):
    """A prompt that nobody marks would keep its step waiting until ``progress_s``."""

    async def roll_out(self, parts, problem, prompt, step):
        raise error

    worker, marks = rolling_worker(monkeypatch, roll_out)
    asyncio.run(worker._run_prompt(prompt_of("p7"), {}, {"validate": False, "step": 3}))
    [(uids, [tag])] = marks
    assert (uids, tag["status"], tag["is_fatal"]) == (["uid of p7"], "failure", False)
    assert tag["error"].startswith(f"problem p7: {type(error).__name__}: ")


class SlowEngine(OneByOne):
    """Answers a group after some turns of the event loop, and counts those it has at once."""

    group_size = 2

    def __init__(self):
        self.now = self.most = 0

    def render(self, messages, **_):
        return [1]

    async def sample(self, prompt_ids, seed, rows, sampling):
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        return [Response([5], [-1.0], "", is_truncated=False) for _ in rows]

    async def grade(self, problem, responses):
        return [Verdict(0.0, "wrong") for _ in responses]


def test_a_whole_validation_set_enters_the_engine_a_part_at_a_time():
    engine = SlowEngine()
    settings = HintSettings(samples=NO_SAMPLES)
    parts = RolloutParts(Method(), None, engine, settings, Texts())
    worker = object.__new__(HintWorker)
    worker._slots, worker._validation = asyncio.Semaphore(3), None
    prompts = [prompt_of(f"p{number}") for number in range(50)]

    async def validate():
        calls = (worker.roll_out(parts, problem_from_row(prompt), prompt, 1) for prompt in prompts)
        return await asyncio.gather(*calls)

    outcomes = asyncio.run(validate())
    assert engine.most == 3
    assert [outcome.record.uid for outcome in outcomes] == [prompt["uid"] for prompt in prompts]


def test_the_constructor_we_repeat_has_not_grown():
    # HintWorker.__init__ repeats it: zero-argument super() of a class shipped by value fails.
    names = set(PLAIN.__init__.__code__.co_names)
    assert names == {"super", "__init__", "tq", "init", "set", "background_tasks"}


def test_the_base_worker_keeps_what_our_constructor_reads():
    names = AgentLoopWorker.__init__.__code__.co_names
    assert {"config", "llm_client", "tokenizer", "model_config", "hf_model_type"} <= set(names)


# -- the manager ----------------------------------------------------------------------------------

NODES = {"rollout": {}, "model": {}}
MINIMAL = OmegaConf.create({"actor_rollout_ref": NODES})


def test_our_manager_starts_our_worker():
    chosen = HintManager(MINIMAL, None).agent_loop_workers_class
    assert isinstance(chosen, ray.actor.ActorClass)
    assert issubclass(chosen.__ray_actor_class__, HintWorker)


# -- the client -----------------------------------------------------------------------------------


class Balancer:
    """The five calls of verl's load balancer, and who holds a server."""

    def __init__(self, server):
        self.held = []
        self.require_acquire_fields = Remote(lambda: [])
        self.require_release_fields = Remote(lambda: [])
        self.acquire_server = Remote(lambda request_id: self._take(request_id, server))
        self.release_server = Remote(lambda server_id: self.held.append(-1))

    def _take(self, request_id, server):
        self.held.append(1)
        return "server-0", server


def answer(*finishes, step):
    """One token for each response."""
    count = len(finishes)
    tokens, log_probs = [[5]] * count, [[-1.0]] * count
    columns = {"token_ids": tokens, "log_probs": log_probs, "finish": list(finishes)}
    return columns | {"global_steps": step}


@pytest.mark.parametrize("client_class", [LLMServerClient, FullyAsyncLLMServerClient])
def test_a_group_is_sampled_through_verls_own_client(client_class):
    # A weight sync stops the second response: what is left of it is sent under another id.
    replies = [answer("stop", "abort", step=1), answer("length", step=2)]
    asked = []

    def generate_groups(requests, limit_s):
        [(prompt_ids, fields, request_id)] = requests
        asked.append((request_id, prompt_ids, fields["n"]))
        return [replies.pop(0)]

    async def sample():
        balancer = Balancer(SimpleNamespace(generate_groups=Remote(generate_groups)))
        client = GroupClient(
            client_class(MINIMAL, load_balancer_handle=balancer), max_model_len=16, timeout_s=10
        )
        sampling = Sampling(n=2, max_tokens=4, temperature=1.0)
        [group] = await client.sample_each([[1, 2]], sampling, [3])
        await asyncio.sleep(0)  # the release is sent without waiting for it
        return group, balancer.held

    group, held = asyncio.run(sample())
    assert [each.finish for each in group] == ["stop", "length"]
    assert [request[1:] for request in asked] == [([1, 2], 2), ([1, 2, 5], 1)]
    assert len({request_id for request_id, *_ in asked}) == 2
    assert held == [1, -1, 1, -1]
