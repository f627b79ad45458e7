"""verl's own reward managers call a function, and punish length, as this package does."""

import asyncio
import json

import pytest
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
from verl.trainer.ppo.reward import get_custom_reward_fn

from recipe.hint.adapter.rewards import grade_options, overlong_of
from recipe.hint.settings import VerifySettings
from recipe.problems.schema import problem_from_row
from recipe.verify.functions import function_verdict
from recipe.verify.schema import Item

LENGTH = 12
ROW = {
    "prompt": [{"role": "user", "content": "1+1?"}],
    "data_source": "some/set",
    "reward_model": {"style": "rule", "ground_truth": "2"},
    "extra_info": {"index": "a", "nested": {"list": [1, 2]}},
}
FUNCTION = """
import json

def compute_score(data_source, solution_str, ground_truth, extra_info, scale=1.0):
    extra = {k: v for k, v in extra_info.items() if k not in ("num_turns", "rollout_reward_scores")}
    seen = json.dumps([data_source, solution_str, ground_truth, extra])
    return {"score": scale * len(solution_str), "acc": True, "pred": seen}

async def awaited(**call):
    return compute_score(**call)
"""


class Tokenizer:
    def decode(self, ids, skip_special_tokens):
        return "x" * len(ids)


def config_of(path, name="compute_score", buffer=None, manager="dapo"):
    return OmegaConf.create(
        {
            "reward": {
                "custom_reward_function": {
                    "path": str(path),
                    "name": name,
                    "reward_kwargs": {"scale": 0.5},
                },
                "reward_manager": {"source": "register", "name": manager},
                "reward_kwargs": {"max_resp_len": LENGTH, "overlong_buffer_cfg": buffer},
            }
        }
    )


def verl_result(config, num_tokens):
    """What verl's manager gives for an answer of so many tokens."""

    async def run():
        manager = get_reward_manager_cls(config.reward.reward_manager.name)(
            config, Tokenizer(), get_custom_reward_fn(config)
        )
        data = DataProto.from_dict(
            tensors={
                "responses": torch.ones(1, LENGTH, dtype=torch.long),
                "attention_mask": (torch.arange(LENGTH) < num_tokens).long()[None],
            },
            non_tensors={
                name: [json.loads(json.dumps(ROW[name]))]
                for name in ("data_source", "reward_model", "extra_info")
            },
        )
        return await manager.run_single(data)

    return asyncio.run(run())


@pytest.fixture
def path(tmp_path):
    (tmp_path / "rewards.py").write_text(FUNCTION)
    return tmp_path / "rewards.py"


@pytest.mark.parametrize("manager", ["naive", "dapo"])
@pytest.mark.parametrize("name", ["compute_score", "awaited"])
def test_a_function_gets_what_verl_gives_it(path, manager, name):
    config = config_of(path, name, manager=manager)
    problem = problem_from_row(ROW)
    item = Item("x" * 5, problem.answer, row=problem.row)
    verdict = function_verdict(item, grade_options(VerifySettings(), config))
    expected = verl_result(config, 5)
    assert verdict.reward == expected["reward_score"] == 2.5  # 0.5 x 5
    assert verdict.extracted == expected["reward_extra_info"]["pred"]
    assert verdict.score == 1.0


@pytest.mark.parametrize(("length", "factor"), [(4, 1.0), (12, 0.5), (1, 2.0)])
def test_the_penalty_of_every_length_is_verls(path, length, factor):
    buffer = {"enable": True, "len": length, "penalty_factor": factor, "log": False}
    config = config_of(path, buffer=buffer)
    overlong = overlong_of(config)
    for num_tokens in range(1, LENGTH + 1):
        expected = float(verl_result(config, num_tokens)["reward_score"]) - 0.5 * num_tokens
        assert overlong(num_tokens) == pytest.approx(expected, abs=1e-6)
    assert overlong(LENGTH) == -factor
