"""Whether a prompt may have a single response."""

from __future__ import annotations

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import ROLLOUT, setting
from recipe.hint.methods import Method, OwnCredit
from recipe.run.errors import ConfigError

_GROUP, _ESTIMATOR = f"{ROLLOUT}.n", "algorithm.adv_estimator"
_FILTER = "algorithm.filter_groups.enable"
# verl's estimators that compare a response with nothing of its group.
_WITHOUT_GROUP = ("gae", "reinforce_plus_plus")


def check_group(config: DictConfig, method: Method) -> None:
    """Refuse a single response where an advantage compares those of one group.

    Raises:
        ConfigError: Naming what compares them.
    """
    if setting(config, _GROUP) > 1:
        return
    from verl.trainer.ppo.core_algos import AdvantageEstimator

    estimator = setting(config, _ESTIMATOR)
    # One that a library of the user's registers may do without.
    grouping = {each.value for each in AdvantageEstimator}.difference(_WITHOUT_GROUP)
    compares, who = (
        (method.compares_group, f"trainer.method={config.trainer.method}")
        if isinstance(method, OwnCredit)
        else (estimator in grouping, f"{_ESTIMATOR}={estimator}")
    )
    if setting(config, _FILTER):
        compares, who = True, f"{_FILTER}=true"
    if compares:
        raise ConfigError(
            f"{_GROUP}=1 must be at least 2: {who} compares the responses of one group, and a "
            f"single one has nothing to be compared with; give 2 or more"
        )
