"""A prompt may have one response where nothing compares those of a group."""

import pytest
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY

from recipe.hint.adapter.preflight.group import check_group
from recipe.hint.adapter.preflight.run import preflight
from recipe.hint.settings import build_method, settings_of
from recipe.run.errors import ConfigError

SINGLE = "actor_rollout_ref.rollout.n=1"
METHOD, ESTIMATOR = "trainer.method", "algorithm.adv_estimator"
FILTER = "algorithm.filter_groups.enable=true"
ALONE = [
    f"{METHOD}=grpo {ESTIMATOR}=gae",
    f"{METHOD}=sage {ESTIMATOR}=reinforce_plus_plus",
    f"{METHOD}=archer",
    f"{METHOD}=archer hint.archer.variant=lite",
    f"{METHOD}=sft",
    f"{METHOD}=score hint.score.stage1_steps=1 hint.score.baseline=none",
    f"{METHOD}=mlmt hint.mlmt.baseline=value",
    f"{METHOD}=scaf hint.source=self_generated trainer.val_only=true",
]
COMPARED = {
    **{
        f"{METHOD}=grpo {ESTIMATOR}={name}": f"{ESTIMATOR}={name} compares .*; give 2 or more$"
        for name in ADV_ESTIMATOR_REGISTRY
        if name not in ("gae", "reinforce_plus_plus")
    },
    **{
        f"{METHOD}={given}": f"{METHOD}={given.split()[0]} compares .*; give 2 or more$"
        for given in ("sft hint.sft.steps=3", "score", "score-guided", "mlmt", "luffy")
    },
    f"{METHOD}=sage": f"{ESTIMATOR}=grpo compares",
    # verl's filter passes groups of one: it would do nothing.
    f"{METHOD}=grpo {ESTIMATOR}=gae {FILTER}": f"{FILTER} compares",
}


@pytest.mark.parametrize("given", ALONE)
def test_a_run_with_one_response_is_checked_to_the_end(composed, tmp_path, given):
    given = ["hardware=laptop", SINGLE, f"hint.run_dir={tmp_path}/run", *given.split()]
    given += ["actor_rollout_ref.rollout.prompt_length=512"]
    lines = preflight(composed(*given), given)
    assert any("16 prompts x 1 rollouts" in line for line in lines)


@pytest.mark.parametrize("given", COMPARED)
def test_a_group_of_one_is_refused_with_what_compares_it(composed, given):
    config = composed("hardware=laptop", SINGLE, *given.split())
    method = build_method(config.trainer, settings_of(config))
    with pytest.raises(ConfigError, match=f"^{SINGLE} must be at least 2: {COMPARED[given]}"):
        check_group(config, method)
    config.actor_rollout_ref.rollout.n = 2
    check_group(config, method)


def test_an_estimator_of_the_users_own_may_take_one(composed):
    config = composed("hardware=laptop", SINGLE, f"{ESTIMATOR}=mine")
    check_group(config, build_method(config.trainer, settings_of(config)))
