"""What methods of several turns refuse of verl's settings and of the data, by name."""

import pytest
from omegaconf import OmegaConf

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.runtime.preflight.data import DataFile
from recipe.hint.runtime.preflight.model import Model
from recipe.hint.runtime.preflight.turns import (
    check_attempts,
    check_critic,
    check_stages,
    check_turns,
)
from recipe.hint.schema import Problem
from recipe.hint.settings import build_method, read_settings

STEPS = 10
PHASES = "trainer.method=mlmt hint.mlmt.t_low=2 hint.mlmt.t_high=1"
STAGES = "trainer.method=score hint.score.stage1_steps"
VALUES = "trainer.method=mlmt hint.mlmt.baseline=value"
ASYNC = "trainer.v1.trainer_mode=colocate_async"
GOOD = [
    *(f"trainer.method={name}" for name in ("score", "score-guided", "mlmt", "archer", "luffy")),
    "experiment=score_math trainer.method=mlmt",
    "trainer.method=archer critic.optim.lr=1e-4 critic.optim.lr_warmup_steps=0",
    f"{VALUES} critic.optim.lr_scheduler_type=cosine critic.ppo_epochs=2",
    "trainer.method=score critic.cliprange_value=0.1",
    PHASES,
    f"{PHASES} actor_rollout_ref.actor.entropy_coeff=0.01",  # without a critic no row goes along
    f"{VALUES} actor_rollout_ref.actor.entropy_coeff=0.01",
    # Step t trains on prompts of step t - 1: stage I ends with step 8 + 1, and II has step 10.
    f"{STAGES}=8 {ASYNC}",
    f"{STAGES}=9",
    f"{STAGES}=10 {ASYNC}",
    f"trainer.method=sft hint.sft.steps=8 {ASYNC}",
    "trainer.method=score actor_rollout_ref.actor.policy_loss.loss_mode=gspo",  # a weight a turn
    "trainer.method=ghpo algorithm.adv_estimator=rloo",
    "trainer.method=sage algorithm.adv_estimator=gae",  # it drops no group
]
WRONG = {
    "trainer.method=score algorithm.filter_groups.enable=true": (
        "filter_groups.enable=true does not work with trainer.method=score: .* one group"
    ),
    f"{PHASES} {ASYNC}": "t_low=2 needs trainer.v1.trainer_mode=sync: in colocate_async",
    f"{STAGES}=9 {ASYNC}": "stage1_steps=9 leaves no step of 10 .* at most 8, or 10 for stage I",
    f"trainer.method=sft hint.sft.steps=9 {ASYNC}": r"sft.steps=9 leaves no step .* at most 8$",
    f"trainer.method=scaf hint.scaf.warmup_steps=9 {ASYNC}": "warmup_steps=9 leaves no step of 10",
    f"trainer.method=ghpo hint.ghpo.cold_start_steps=9 {ASYNC}": "cold_start_steps=9 leaves no",
    **{
        f"trainer.method={name} actor_rollout_ref.actor.policy_loss.loss_mode=geo_mean": (
            f"loss_mode=geo_mean does not work with trainer.method={name}: it weighs each token"
        )
        for name in ("luffy", "rl-zvp")
    },
    **{
        f"trainer.method=ghpo algorithm.adv_estimator={name}": f"adv_estimator={name} does not work"
        for name in ("gae", "reinforce_plus_plus", "remax")
    },
    "trainer.method=archer critic.optim.lr_scheduler_type=cosine": (
        "lr_scheduler_type=cosine does not work with trainer.method=archer: .* give .*=constant"
    ),
    "trainer.method=archer critic.optim.lr_warmup_steps=5": "lr_warmup_steps=5 does not work",
    "trainer.method=archer critic.optim.lr_warmup_steps_ratio=0.1": "ratio=0.1 does not work",
    f"{VALUES} hint.mlmt.train_solver=false actor_rollout_ref.actor.entropy_coeff=0.01": (
        "entropy_coeff=0.01 would train the role that does not train.* give .*entropy_coeff=0"
    ),
    f"{VALUES} hint.mlmt.t_low=1 hint.mlmt.t_high=1 actor_rollout_ref.actor.entropy_coeff=0.01": (
        "entropy_coeff=0.01 would train the role"
    ),
    "trainer.method=archer critic.ppo_epochs=2": "critic.ppo_epochs=2 would not be read by",
    "trainer.method=archer critic.shuffle=true": "critic.shuffle=true would not be read by",
    f"{VALUES} critic.ppo_mini_batch_size=4": "critic.ppo_mini_batch_size=4 would not be read",
    f"{VALUES} critic.cliprange_value=0.2": "critic.cliprange_value=0.2 would not be read by",
    f"{VALUES} critic.loss_agg_mode=seq-mean-token-sum": "critic.loss_agg_mode=.*would not be read",
}


@pytest.fixture(scope="module")
def presets(composed):
    """The laptop's settings, and those of an experiment with a loss of its own, by name."""
    names = ("hardware=laptop", "experiment=score_math")
    return {name: composed(name, "hint.run_dir=x") for name in names}


def check(presets, given):
    first, *rest = given.split()
    name = first if first in presets else "hardware=laptop"
    config = OmegaConf.merge(
        presets[name], OmegaConf.from_dotlist(rest if first in presets else [first, *rest])
    )
    node = OmegaConf.to_container(config.hint, resolve=True)
    method = build_method(config.trainer, read_settings(node))
    check_turns(config, method)
    check_critic(config, method)
    check_stages(config, method, STEPS)


@pytest.mark.parametrize("given", GOOD)
def test_settings_that_are_read_pass(presets, given):
    check(presets, given)


@pytest.mark.parametrize("given", WRONG)
def test_what_would_do_nothing_or_harm_is_refused_by_name(presets, given):
    with pytest.raises(ConfigError, match=WRONG[given]):
        check(presets, given)


class Letters:
    """A tokenizer: a token is a letter."""

    eos_token_id = 0

    def __call__(self, text, **_):
        return {"input_ids": [ord(each) for each in text]}

    def apply_chat_template(self, messages, **_):
        return "".join(f"<{each['role']}>{each['content']}" for each in messages)


@pytest.mark.parametrize(
    ("attempts", "message"),
    [
        (("four", "five"), None),
        (("four", "five", "far too long"), None),  # the first two are gone on from
        (("four",), "row 1 of data.train_files has 1 texts .*offline_attempts=2 goes on from"),
        ((), "row 1 of data.train_files has 0 texts"),
        # Five letters and the end of the turn.
        (("four", "sixth"), "row 1 .* a text of 6 tokens .*max_response_length=5: no response"),
    ],
)
def test_every_row_has_as_many_whole_first_attempts_as_are_gone_on_from(attempts, message):
    config = OmegaConf.create({"data": {"max_response_length": 5}})
    method = Score(settings=ScoreSettings(offline_attempts=2))
    model = Model("m", Letters(), None, 100, {}, ())
    rows = [("a", "b"), attempts]
    problems = [Problem(f"p{n}", (), "x", "y", "1", attempts=each) for n, each in enumerate(rows)]
    files = [DataFile("f.parquet", problems)]
    if message is None:
        return check_attempts(config, method, model, files)
    with pytest.raises(DataError, match=message):
        check_attempts(config, method, model, files)
