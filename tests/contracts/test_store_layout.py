"""The rows that adapter/store.py puts are those that verl's own agent loop puts for one answer.

Both really run: verl's worker with its single-turn loop on one side, ``publish`` on the other;
the rollout server and the reward worker are fakes that give the same three answers to both.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
import transfer_queue as tq
from tensordict import NonTensorData
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.utils import tensordict_utils as tu
from verl.workers.rollout.replica import TokenOutput

from recipe.hint.adapter import store
from recipe.hint.adapter.store import CREDIT_FIELD, RECORD_FIELD, SAMPLE_FIELD
from recipe.hint.credit.base import CreditRow
from recipe.hint.record import Outcome, PromptRecord, PublishedRow, RoundRecord
from recipe.hint.schema import Response
from recipe.hint.turns import Place, Turn
from recipe.verify.schema import Verdict

UID, STEP, VERSION = "6f1c-uid", 3, 2
# Three answers (tokens, log-probs, score) of different lengths; 2 is the end token.
ANSWERS = [
    ([40, 41, 42, 2], [-0.1, -0.2, -0.3, -0.4], 1.0),
    ([50, 2], [-1.5, -0.5], 0.0),
    ([60, 61, 2], [-0.7, -0.6, -0.9], 1.0),
]
MESSAGES = [{"role": "user", "content": "2+3=?"}]

# What verl's row has and ours has not ...
NOT_OURS = {
    "session_id",  # the key says it
    "mm_processor_kwargs",  # of images and videos, read by no consumer of a row
    "mm_processor_output",
    "problem",  # only the visit needs these; each row would carry them again
    "solution",
    "answer",
    "hint_state_of_problem",
}
# ... and keys of extra_fields: verl's server adds its own, ours carries the record.
NOT_OURS_EXTRA = {"global_steps", "num_cached_tokens"}
OURS_EXTRA = {CREDIT_FIELD, RECORD_FIELD, SAMPLE_FIELD}


def prompt_row() -> dict:
    """One prompt as verl's worker hands it to ``_run_prompt``."""
    return {
        "raw_prompt": MESSAGES,
        "data_source": "tiny",
        "reward_model": {"ground_truth": "5", "style": "rule"},
        "extra_info": {"index": 9},
        "index": 9,
        "uid": UID,
        "global_steps": STEP,
        "agent_name": "single_turn_agent",
        "problem": "2+3=?",
        "solution": "5",
        "answer": "5",
        "hint_state_of_problem": {"visits": 0, "level": 0, "accuracy": -1.0},
    }


class Puts:
    """Collects what is put into TransferQueue, one (key, field, tag) per row."""

    def __init__(self, monkeypatch):
        self.rows = {}
        self.calls = []
        self.fields = []
        self.statuses = []
        monkeypatch.setattr(tq, "init", lambda *args: None)
        monkeypatch.setattr(tq, "async_kv_put", self._put)
        monkeypatch.setattr(tq, "async_kv_batch_put", self._batch_put)

    async def _put(self, key, partition_id, fields=None, tag=None):
        self.statuses.append((key, partition_id, tag["status"]))

    async def _batch_put(self, keys, partition_id, tags, fields=None):
        if fields is None:
            self.statuses += [
                (key, partition_id, tag["status"]) for key, tag in zip(keys, tags, strict=True)
            ]
            return
        self.fields.append(fields)
        self.calls.append((partition_id, len(keys)))
        for row, key in enumerate(keys):
            values = {name: plain(fields[name][row]) for name in fields.keys()}
            self.rows[key] = (values, tags[row])


def plain(value):
    value = tu.unwrap_non_tensor_data(value) if isinstance(value, NonTensorData) else value
    return value


class VerlsClient:
    """The rollout server client that verl's loop calls; one answer after the other."""

    def __init__(self):
        self._answers = iter(ANSWERS)

    async def generate(self, **_request):
        token_ids, log_probs, _ = next(self._answers)
        versions = {"min_global_steps": VERSION, "max_global_steps": VERSION}
        return TokenOutput(
            token_ids=token_ids,
            log_probs=log_probs,
            stop_reason="completed",
            extra_fields={"global_steps": VERSION, "num_cached_tokens": 0, **versions},
        )


class RewardWorker:
    """verl's reward worker: looks at the tokens, as a rule would."""

    def __init__(self):
        self.compute_score = SimpleNamespace(remote=self._score)

    async def _score(self, data):
        first = int(data.batch["responses"][0, 0])
        score = next(score for token_ids, _, score in ANSWERS if token_ids[0] == first)
        return {"reward_score": score, "reward_extra_info": {"acc": score}}


@pytest.fixture(scope="module")
def config(composed):
    config = composed("hardware=laptop")
    config.actor_rollout_ref.rollout.n = len(ANSWERS)
    return config


@pytest.fixture
def verls(config, monkeypatch):
    puts = Puts(monkeypatch)

    async def run():
        # One thread: verl's sessions then ask for their answers in the order of their numbers.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        worker = AgentLoopWorkerTQ.__ray_actor_class__(
            config, VerlsClient(), None, [RewardWorker()]
        )
        trajectory = {"step": STEP, "sample_index": 9, "rollout_n": 0, "validate": False}
        await worker._run_prompt(prompt_row(), {"temperature": 1.0}, trajectory)

    asyncio.run(run())
    assert puts.statuses[-1] == (UID, "train", "finished")
    return puts


def credit(reward: float) -> CreditRow:
    return CreditRow("p9", UID, "", "solver", turn=0, session=0, reward=reward)


def record() -> PromptRecord:
    return PromptRecord(
        problem_id="p9",
        uid=UID,
        step=STEP,
        rounds=(
            RoundRecord("bare", 0, "none", (0.0, 0.0, 0.0), 1, 12),
            RoundRecord("hinted", 1, "cut", (1.0, 0.0, 1.0), 0, 9),
        ),
        rows=(Place(1, 0), Place(1, 1), Place(1, 2)),
        rewards=(1.0, 0.0, 1.0),
        accuracies=(1.0, 0.0, 1.0),
        trained_tokens=9,
        hint_calls=2,
        hint_tokens=80,
        reasons={"correct": 2, "wrong": 1},
    )


@pytest.fixture
def ours(verls, monkeypatch):
    # The same prompt tokens: rendering is the engine's, not the store's.
    prompt_ids = verls.rows[f"{UID}_0_0"][0]["prompts"].tolist()
    puts = Puts(monkeypatch)
    responses = [
        Response(token_ids, log_probs, "text", False, VERSION, VERSION)
        for token_ids, log_probs, _ in ANSWERS
    ]
    verdicts = [Verdict(score, "correct" if score else "wrong", "5") for _, _, score in ANSWERS]
    rows = tuple(
        PublishedRow(prompt_ids, Turn((), prompt_ids, response, verdict), credit(verdict.score))
        for response, verdict in zip(responses, verdicts, strict=True)
    )
    outcome = Outcome(rows, record())
    asyncio.run(store.Publisher().publish(outcome, prompt_row(), "train"))
    return puts


def test_the_keys_are_verls(verls, ours):
    assert list(ours.rows) == sorted(verls.rows) == [f"{UID}_{session}_0" for session in range(3)]


def test_the_tags_are_verls(verls, ours):
    for key, (_, tag) in verls.rows.items():
        assert ours.rows[key][1] == tag
    assert ours.rows[f"{UID}_1_0"][1]["response_len"] == 2
    assert ours.rows[f"{UID}_1_0"][1]["global_steps"] == STEP


def test_the_fields_are_verls_but_for_the_named_ones(verls, ours):
    for key, (fields, _) in verls.rows.items():
        assert set(fields) - set(ours.rows[key][0]) == NOT_OURS
        assert set(ours.rows[key][0]) - set(fields) == set()


def test_every_field_has_verls_value(verls, ours):
    compared = 0
    for key, (fields, _) in verls.rows.items():
        mine = ours.rows[key][0]
        for name in set(fields) - NOT_OURS - {"extra_fields", "metrics"}:
            if isinstance(fields[name], torch.Tensor):
                assert mine[name].dtype == fields[name].dtype, name
                assert torch.equal(mine[name], fields[name]), name
            else:
                assert mine[name] == fields[name], name
            compared += 1
    assert compared == 3 * 17


def test_the_extra_fields_are_verls_but_for_the_named_ones(verls, ours):
    for key, (fields, _) in verls.rows.items():
        theirs, mine = fields["extra_fields"], ours.rows[key][0]["extra_fields"]
        assert set(theirs) - set(mine) == NOT_OURS_EXTRA
        assert set(mine) - set(theirs) == OURS_EXTRA
        for name in ("turn_scores", "tool_rewards", "min_global_steps", "max_global_steps"):
            assert mine[name] == theirs[name]
        # verl's validation averages every number it finds here.
        assert mine["reward_extra_info"]["acc"] == theirs["reward_extra_info"]["acc"]
        assert set(mine["reward_extra_info"]) == {"acc", "reason", "extracted"}


def test_the_record_travels_on_the_first_row_and_comes_back_whole(ours):
    carried = [fields["extra_fields"][RECORD_FIELD] for fields, _ in ours.rows.values()]
    assert carried[1:] == [None, None]
    assert PromptRecord.from_json(json.loads(json.dumps(carried[0]))) == record()
