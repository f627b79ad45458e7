"""A method's own credit in verl's step: verl's real methods, the queue's rows, no process."""

import asyncio
import math
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
from recipe.hint.methods.luffy import Luffy
from recipe.hint.methods.rl_zvp import RlZvp
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.methods.sft import Sft
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
                "rollout": {"n": 2, "temperature": 1.0, "calculate_log_probs": True},
                "actor": {
                    "ppo_mini_batch_size": mini,
                    "ppo_epochs": 1,
                    "shuffle": False,
                    "data_loader_seed": 1,
                    "use_kl_loss": False,
                    "calculate_entropy": False,
                    "entropy_coeff": 0.0,
                    "loss_agg_mode": "token-mean",
                    "loss_scale_factor": None,
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
        tags = tags or (self.tags if len(self.tags) == len(keys) else [{} for _ in keys])
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=tags)


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

    def given(self, text):
        return Response([*range(1, len(text)), 1], [], text, False, is_given=True)

    async def grade(self, problem, responses):
        scores = [float(each.token_ids_T[-1]) for each in responses]
        return [Verdict(score, "correct" if score else "wrong") for score in scores]


def filled(monkeypatch, method, rights, *, k1=0.0):
    """The queue after the rollouts and both log-probability passes, and its batch."""
    queue = Queue(monkeypatch)
    keys, tags = [], []
    for number, right in enumerate(rights):
        uid = f"uid{number}"
        item = Problem(f"p{number}", MESSAGES, "2+2", "four" + "!" * number, "4")
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


class LogProbs:
    """The workers: every token of row i has the log-probability -0.1 (i + 1) and the entropy 0.5.

    A sequence's numbers begin with those of its prompt, as the worker gives them.
    """

    def __init__(self, queue):
        self.queue = queue

    def compute_log_prob(self, batch):
        for number, key in enumerate(batch.keys):
            row = self.queue.rows[key]
            length = len(row["input_ids"])
            row["log_probs"] = torch.full((length,), -0.1 * (number + 1))
            row["entropy"] = torch.full((length,), 0.5)
        return batch


def after_log_probs(monkeypatch, method, *rights):
    queue, batch = filled(monkeypatch, method, [{0: right} for right in rights])
    # What the asynchronous modes have counted before.
    metrics = {"training/rollout_failure/evicted_samples": 2}
    trainer = Trainer(method, prompts=1, mini=1)
    trainer.actor_rollout_wg = LogProbs(queue)
    batch.extra_info = {}
    trainer._compute_old_log_prob(batch, metrics)
    return trainer, queue, batch, metrics


def test_what_was_not_sampled_has_no_part_in_the_comparison_with_vllm(monkeypatch):
    _, queue, batch, metrics = after_log_probs(monkeypatch, Luffy(), [0, 0])
    assert [tag.get("is_given", False) for tag in batch.tags] == [False, False, True]
    # Two rows of 2 and 3 tokens, sampled with exp(-1): mean of |exp(-0.1) - exp(-1)| and
    # |exp(-0.2) - exp(-1)|. The third, exp(-0.3) for itself, is not among them.
    gaps = [*[math.exp(-0.1)] * 2, *[math.exp(-0.2)] * 3]
    mean = sum(each - math.exp(-1) for each in gaps) / 5
    assert metrics["training/rollout_probs_diff_mean"] == pytest.approx(mean)
    last = queue.rows[batch.keys[2]]
    assert last["rollout_log_probs"].tolist() == last["old_log_probs"].tolist()
    assert queue.rows[batch.keys[0]]["rollout_log_probs"].tolist() == [-1.0, -1.0]


def test_rollout_correction_leaves_what_was_not_sampled_as_it_is(monkeypatch):
    trainer, queue, batch, _ = after_log_probs(monkeypatch, Luffy(), [0, 0])
    trainer.config.algorithm.rollout_correction = {"rollout_is": "token"}
    trainer._compute_advantage(batch, {})
    weights = [queue.rows[key]["rollout_is_weights"].tolist() for key in batch.keys]
    assert weights[2] == [1.0] * 4
    # exp(-0.1 + 1) = 2.46 is cut at 2.
    assert weights[0] == [2.0, 2.0]


def test_where_nothing_was_sampled_there_is_nothing_to_compare(monkeypatch):
    _, queue, batch, metrics = after_log_probs(monkeypatch, Sft(), [0, 0], [0, 0])
    assert len(batch.keys) == 2
    assert [name for name in metrics if name.startswith("training/")] == [
        "training/rollout_failure/evicted_samples"
    ]
    assert metrics["actor/entropy"] == pytest.approx(0.5)


def test_a_given_row_is_as_new_as_the_weights_that_it_trains(monkeypatch):
    queue, batch = filled(monkeypatch, Luffy(), [{0: [0, 0]}])
    # Prompts sent at step 1: the weights of step 0.
    assert (batch.tags[2]["min_global_steps"], batch.tags[2]["max_global_steps"]) == (0, 0)


def test_each_token_of_a_solution_has_its_shaped_advantage(monkeypatch):
    trainer, queue, batch, _ = after_log_probs(monkeypatch, Luffy(), [0, 0])
    metrics = {}
    trainer._compute_advantage(batch, metrics)
    # Rewards 0, 0, 1: mean 1/3, deviation 1/sqrt(3). p = exp(-0.3), gamma p / (p + gamma)^2.
    p = math.exp(-0.3)
    weight = 0.1 * p / (p + 0.1) ** 2
    assert advantages(queue, batch.keys)[2] == pytest.approx([2 / 3**0.5 * weight] * 4, abs=1e-5)
    assert advantages(queue, batch.keys)[0] == pytest.approx([-(3**-0.5)] * 2, abs=1e-5)
    assert metrics["credit/reference_t1/rows"] == 1


def test_the_entropies_reach_a_method_that_reads_them(monkeypatch):
    trainer, queue, batch, _ = after_log_probs(monkeypatch, RlZvp(), [1, 1])
    trainer._compute_advantage(batch, {})
    # All right: 0.1 x 0.5 for each token.
    assert advantages(queue, batch.keys)[0] == pytest.approx([0.05, 0.05])


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
    overridden = ("_balance_batch", "_get_required_batch_multiple")
    for name in (*overridden, "_compute_old_log_prob", "_compute_advantage"):
        assert hasattr(PPOTrainer, name)
