"""Settings of verl's that methods with credit of their own do not read: refused by name."""

import os

import pytest
from hydra import compose, initialize_config_dir

from recipe.hint.command.compose import CONFIG_DIR, set_config_paths
from recipe.hint.errors import ConfigError
from recipe.hint.runtime.preflight.turns import check_turns
from recipe.hint.settings import build_method, read_settings

WRONG = {
    "trainer.method=score algorithm.filter_groups.enable=true": (
        "filter_groups.enable=true does not work with trainer.method=score: .* one group"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def paths():
    before = dict(os.environ)
    set_config_paths()
    with initialize_config_dir(config_dir=str(CONFIG_DIR), version_base=None):
        yield
    os.environ.clear()
    os.environ.update(before)


def check(given):
    overrides = ["hardware=laptop", "hint.run_dir=x", *given.split()]
    config = compose("hint_trainer", overrides)
    from omegaconf import OmegaConf

    node = OmegaConf.to_container(config.hint, resolve=True)
    check_turns(config, build_method(config.trainer, read_settings(node)))


@pytest.mark.parametrize("method", ["score", "score-guided", "mlmt", "archer"])
def test_the_settings_of_a_method_as_they_are_pass(method):
    check(f"trainer.method={method}")


@pytest.mark.parametrize("given", WRONG)
def test_what_own_credit_does_not_read_is_refused_by_name(given):
    with pytest.raises(ConfigError, match=WRONG[given]):
        check(given)
