"""A method's own credit in verl's step: verl's real methods, the queue's rows, no process."""

import asyncio
from types import SimpleNamespace

import pytest
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.utils import need_reference_policy
from verl.trainer.ppo.v1 import PPOTrainer, PPOTrainerSync
from verl.utils import tensordict_utils as tu

from recipe.hint.engine import BareEngine
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.prompt import Texts
from recipe.hint.rollout import Parts, PromptRollout
from recipe.hint.runtime import store
from recipe.hint.runtime.credit import CreditMixin
from recipe.hint.runtime.models import ask_for_models
from recipe.hint.schema import Problem, ProblemState, Response, Verdict
from recipe.hint.settings import HintSettings

MESSAGES = ({"role": "user", "content": "2+2"},)


class Trainer(CreditMixin, PPOTrainerSync):
    """The trainer without its start."""

    def __init__(self, method, *, prompts=2, mini=2, correction=None):
        self.config = config(prompts, mini, correction)
        ask_for_models(self.config, method)
        self._method = method
        self.parameter_sync_step = 1
        self.use_critic = False
        self.global_steps = 1
        self.kl_ctrl_in_reward = core_algos.get_kl_controller(self.config.algorithm.kl_ctrl)
        self.distillation_config = None
        self.tokenizer = SimpleNamespace(eos_token_id=0)


def config(prompts, mini, correction):
    return OmegaConf.create(
        {
            "data": {"train_batch_size": prompts},
            "trainer": {"critic_warmup": 0},
            "critic": {"ppo_mini_batch_size": mini},
            "algorithm": {
                "adv_estimator": "grpo",
                "gamma": 1.0,
                "lam": 1.0,
                "use_kl_in_reward": False,
                "kl_penalty": "kl",
                "kl_ctrl": {"type": "fixed", "kl_coef": 0.5, "horizon": 1, "target_kl": 0.1},
                "rollout_correction": correction,
            },
            "actor_rollout_ref": {
                "rollout": {"n": 2, "temperature": 1.0},
                "actor": {
                    "ppo_mini_batch_size": mini,
                    "ppo_epochs": 1,
                    "shuffle": False,
                    "data_loader_seed": 1,
                    "use_kl_loss": False,
                    "calculate_entropy": False,
                    "entropy_coeff": 0.0,
                },
            },
        }
    )


class Queue:
    """Rows by key."""

    def __init__(self, monkeypatch):
        self.rows = {}
        monkeypatch.setattr(tq, "kv_batch_get", self.get)
        monkeypatch.setattr(tq, "kv_batch_put", self.put)

    def get(self, keys, partition_id, select_fields=None):
        names = select_fields or list(self.rows[keys[0]])
        rows = [{n: self.rows[k][n] for n in names if n in self.rows[k]} for k in keys]
        return tu.list_of_dict_to_tensordict(rows)

    def put(self, keys, partition_id, fields, tags=None):
        for place, key in enumerate(keys):
            row = {name: fields[name][place] for name in fields.keys()}
            self.rows.setdefault(key, {}).update(row)
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=tags or self.tags)


class Engine(BareEngine):
    """Two conversations: lengths by turn and row, right or wrong by the last token."""

    group_size = 2

    def __init__(self, right):
        self.right = {turn: list(each) for turn, each in right.items()}

    def render(self, messages):
        return [len(messages)] * 3

    async def sample(self, prompt_ids, seed, rows=None, sampling=None):
        turn = prompt_ids[0] // 2
        made = [[*range(1, 2 + turn + row), self.right[turn].pop(0)] for row in rows]
        return [Response(ids, [-1.0] * len(ids), "text", False, 1, 1) for ids in made]

    async def grade(self, problem, responses):
        scores = [float(each.token_ids_T[-1]) for each in responses]
        return [Verdict(score, "correct" if score else "wrong") for score in scores]


def filled(monkeypatch, method, rights, *, k1=0.0):
    """The queue after the rollouts and both log-probability passes, and its batch."""
    queue = Queue(monkeypatch)
    keys, tags = [], []
    for number, right in enumerate(rights):
        uid = f"uid{number}"
        item = Problem(f"p{number}", MESSAGES, "2+2", "", "4")
        parts = Parts(method, None, Engine(right), HintSettings(), Texts())
        outcome = asyncio.run(PromptRollout(item, ProblemState(step=9), parts).run(uid, 9))
        for key, fields, tag in store.rows_of(outcome, {"uid": uid, "global_steps": 1}):
            keys.append(key)
            tags.append(tag)
            length = len(fields["responses"])
            more = {"old_log_probs": torch.full((length,), -1.0)}
            more["ref_log_prob"] = more["old_log_probs"] - k1
            queue.rows[key] = {**fields, "uid": tu.unwrap_non_tensor_data(fields["uid"]), **more}
    queue.tags = tags
    return queue, KVBatchMeta(partition_id="train", keys=keys, tags=tags)


def score(**settings):
    return Score(settings=ScoreSettings(stage1_steps=0, **settings))


def advantages(queue, keys):
    return [queue.rows[key]["advantages"].tolist() for key in keys]


def test_each_token_gets_its_turns_advantage_and_the_kl_that_is_still_to_come(monkeypatch):
    method = score(alpha=1.0, beta1=0.5)
    queue, batch = filled(monkeypatch, method, [{0: [0, 1], 1: [1, 1]}], k1=0.2)
    metrics = {}
    Trainer(method, prompts=1, mini=1)._compute_advantage(batch, metrics)
    # Turn 1: rewards 0, 1, so -1 and 1. Turn 2: 1 + (1 - 0) = 2 and 1, so 1 and -1. A token loses
    # 0.5 x 0.2 for itself and for each one after it; the rows have 2, 3, 3 and 3 tokens.
    assert advantages(queue, batch.keys) == [
        pytest.approx([-1.2, -1.1]),
        pytest.approx([0.7, 0.8, 0.9]),
        pytest.approx([0.7, 0.8, 0.9]),
        pytest.approx([-1.3, -1.2, -1.1]),
    ]
    assert metrics["credit/solver_t1/kl"] == pytest.approx((0.4 + 0.6) / 2)
    assert metrics["credit/solver_t2/reward"] == 1.5


def test_reward_zero_and_a_kl_coefficient_leave_an_advantage_on_every_token(monkeypatch):
    method = score(beta1=0.5)
    queue, batch = filled(monkeypatch, method, [{0: [0, 0], 1: [0, 0]}], k1=0.2)
    Trainer(method, prompts=1, mini=1)._compute_advantage(batch, {})
    assert advantages(queue, batch.keys)[0] == pytest.approx([-0.2, -0.1])


def test_without_a_kl_every_token_has_the_advantage_of_its_row(monkeypatch):
    method = score(alpha=0.0, beta1=0.0, beta2=0.0)
    queue, batch = filled(monkeypatch, method, [{0: [1, 0], 1: [1, 0]}], k1=0.2)
    trainer = Trainer(method, prompts=1, mini=1)
    assert not trainer.config.algorithm.use_kl_in_reward
    trainer._compute_advantage(batch, {})
    assert advantages(queue, batch.keys) == [[1, 1], [-1, -1, -1], [1, 1, 1], [-1, -1, -1]]


def test_padding_rows_have_no_advantage_and_no_part_in_a_baseline(monkeypatch):
    method = score(alpha=0.0, beta1=0.5)
    rights = [{0: [1, 0], 1: [1, 0]}]
    queue, batch = filled(monkeypatch, method, rights, k1=0.2)
    trainer = Trainer(method, prompts=1, mini=1)
    alone, before = advantages_of(trainer, queue, batch), dict(queue.rows)
    pad = {
        **before[batch.keys[0]],
        "uid": "pad",
        "response_mask": torch.zeros(1, dtype=torch.int64),
    }
    for name in ("responses", "old_log_probs", "ref_log_prob", "rm_scores", "rollout_log_probs"):
        pad[name] = torch.zeros(1, dtype=pad[name].dtype)
    queue.rows["padx_0_0"] = pad
    queue.tags = [*batch.tags, {**batch.tags[0], "is_padding": True}]
    padded = KVBatchMeta(partition_id="train", keys=[*batch.keys, "padx_0_0"], tags=queue.tags)
    assert advantages_of(trainer, queue, padded) == [*alone, [0.0]]


def advantages_of(trainer, queue, batch):
    trainer._compute_advantage(batch, {})
    return advantages(queue, batch.keys)


def test_rejected_tokens_leave_the_loss_and_their_kl_stays(monkeypatch):
    method = score(beta1=0.5)
    queue, batch = filled(monkeypatch, method, [{0: [0, 0], 1: [0, 0]}], k1=0.2)
    # A token is twice as likely under the trainer as under vLLM.
    for key in batch.keys:
        first = queue.rows[key]["rollout_log_probs"].clone()
        first[0] = -1.0 - 0.6931
        queue.rows[key]["rollout_log_probs"] = first
    correction = {"rollout_rs": "token_k1", "rollout_rs_threshold": "0.6_1.5"}
    metrics = {}
    trainer = Trainer(method, prompts=1, mini=1, correction=correction)
    trainer._compute_advantage(batch, metrics)
    assert queue.rows[batch.keys[0]]["response_mask"].tolist() == [0, 1]
    assert any(name.startswith("rollout_corr/") for name in metrics)
    assert advantages(queue, batch.keys)[0] == pytest.approx([-0.2, -0.1])


def test_other_methods_keep_verls_advantages(monkeypatch):
    queue, batch = filled(monkeypatch, Grpo(), [{0: [1, 0]}])
    Trainer(Grpo(), prompts=1, mini=1)._compute_advantage(batch, {})
    # Mean 1/2, deviation 1/sqrt(2).
    found = advantages(queue, batch.keys)
    assert [row[0] for row in found] == pytest.approx([0.7071, -0.7071], abs=1e-4)


class Recorder:
    """The workers: what an update is called with."""

    def update_actor(self, batch):
        self.sizes = batch.extra_info["mini_batch_size"], batch.extra_info["global_batch_size"]
        metrics = TensorDict({}, batch_size=[])
        return {"metrics": {"mfu": 0.0, "loss": [1.0]}} if metrics is not None else None


@pytest.mark.parametrize(
    ("rows", "prompts", "mini", "dp", "size", "padded"),
    [
        (32, 8, 8, 1, 32, 32),  # 2G rows a prompt, one update: all rows
        (32, 8, 4, 1, 16, 32),  # two updates
        (31, 8, 4, 1, 16, 32),  # a follow-up without room: one row of padding
        (30, 8, 8, 4, 32, 32),  # four processes
        (96, 8, 2, 1, 24, 96),  # a tree, four updates
    ],
)
def test_an_update_takes_the_rows_of_as_many_prompts_as_a_mini_batch_has(
    rows, prompts, mini, dp, size, padded
):
    trainer = Trainer(score(), prompts=prompts, mini=mini)
    trainer._num_rows = rows
    multiple = trainer._get_required_batch_multiple(dp)
    assert multiple == size
    assert -(-rows // multiple) * multiple == padded
    trainer.actor_rollout_wg = Recorder()
    trainer._update_actor(KVBatchMeta(partition_id="train", keys=[], tags=[], extra_info={}), {})
    assert trainer.actor_rollout_wg.sizes == (size, size)
    # Nothing of it stays.
    assert trainer.config.actor_rollout_ref.rollout.n == 2
    assert trainer.config.actor_rollout_ref.actor.ppo_mini_batch_size == mini


def test_other_methods_keep_verls_size_of_an_update():
    trainer = Trainer(Grpo(), prompts=8, mini=4)
    assert trainer._get_required_batch_multiple(1) == 4 * 2
    trainer.actor_rollout_wg = Recorder()
    trainer._update_actor(KVBatchMeta(partition_id="train", keys=[], tags=[], extra_info={}), {})
    assert trainer.actor_rollout_wg.sizes == (8, 8)


@pytest.mark.parametrize(
    ("method", "is_there"),
    [(score(), True), (score(beta1=0.0, beta2=0.0), False), (Grpo(), False)],
)
def test_verl_builds_the_reference_policy_where_a_coefficient_is_above_zero(method, is_there):
    settings = config(2, 2, None)
    ask_for_models(settings, method)
    assert need_reference_policy(settings) is is_there


def test_what_the_mixin_overrides_is_verls():
    for name in ("_balance_batch", "_get_required_batch_multiple", "_compute_advantage"):
        assert hasattr(PPOTrainer, name)
