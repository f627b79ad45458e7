"""The trainer without its start, and the rows of two conversations in its queue."""

import asyncio
from types import SimpleNamespace

import torch
import transfer_queue as tq
from fakes import OneByOne
from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import store
from recipe.hint.adapter.credit import CreditMixin
from recipe.hint.adapter.models import ask_for_models
from recipe.hint.methods.dialogue import SolverSettings
from recipe.hint.methods.score import Score
from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict

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
        self.rows, self.tags = {}, []
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


class TwoTalks(OneByOne):
    """Two conversations: lengths by turn and row, right or wrong by the last token; 2: ungraded."""

    group_size = 2

    def __init__(self, right):
        self.right = {turn: list(each) for turn, each in right.items()}

    def render(self, messages, **_):
        return [len(messages)] * 3

    async def sample(self, prompt_ids, seed, rows, sampling):
        turn = prompt_ids[0] // 2
        made = [[*range(1, 2 + turn + row), self.right[turn].pop(0)] for row in rows]
        return [Response(ids, [-1.0] * len(ids), "text", False, 1, 1) for ids in made]

    def given_response(self, text):
        return Response([*range(1, len(text)), 1], [], text, False, is_given=True)

    async def grade(self, problem, responses):
        graded = [Verdict(0.0, "wrong"), Verdict(1.0, "correct"), Verdict(0.0, "timeout")]
        return [graded[each.token_ids_T[-1]] for each in responses]


def filled(monkeypatch, method, rights, *, k1=0.0):
    """The queue after the rollouts and both log-probability passes, and its batch."""
    queue = Queue(monkeypatch)
    keys, tags = [], []
    for number, right in enumerate(rights):
        uid = f"uid{number}"
        item = Problem(f"p{number}", MESSAGES, "2+2", "four" + "!" * number, "4")
        parts = RolloutParts(method, None, TwoTalks(right), HintSettings(), Texts())
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
    return Score(settings=SolverSettings(stage1_steps=0, **settings))


def advantages(queue, keys):
    return [queue.rows[key]["advantages"].tolist() for key in keys]
