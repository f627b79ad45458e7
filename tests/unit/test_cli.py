"""The command line before Hydra."""

import pytest

from recipe.hint.command.compose import choose_hardware, given_settings, nearest, resolve_aliases
from recipe.hint.errors import ConfigError


def test_the_last_value_of_a_setting_wins():
    assert given_settings(["a.b=1", "+c=x=y", "a.b=2", "--help"]) == {"a.b": "2", "c": "x=y"}


def test_second_names_become_verls_names():
    argv = [
        "actor_rollout_ref.model.pretrained_model_name_or_path=/m",
        "actor_rollout_ref.rollout.num_generations_per_prompt=4",
    ]
    assert resolve_aliases(argv) == [
        "actor_rollout_ref.model.path=/m",
        "actor_rollout_ref.rollout.n=4",
    ]


def test_response_length_sets_both_of_verls_lengths():
    argv = resolve_aliases(["actor_rollout_ref.rollout.response_length=99"])
    assert argv == [
        "actor_rollout_ref.rollout.response_length=99",
        "data.max_response_length=99",
    ]


@pytest.mark.parametrize(
    "pair",
    [
        ("actor_rollout_ref.rollout.num_generations_per_prompt", "actor_rollout_ref.rollout.n"),
        ("actor_rollout_ref.rollout.response_length", "data.max_response_length"),
    ],
)
def test_two_names_with_two_values_are_refused(pair):
    with pytest.raises(ConfigError, match="are two names of one setting"):
        resolve_aliases([f"{pair[0]}=4", f"{pair[1]}=8"])


def test_two_names_with_one_value_are_taken():
    resolve_aliases(["data.max_response_length=5", "actor_rollout_ref.rollout.response_length=5"])


def test_without_a_gpu_the_laptop_preset_is_chosen_and_said():
    argv, notice = choose_hardware(["trainer.method=sage"], has_gpu=False)
    assert argv == ["hardware=laptop", "trainer.method=sage"]
    assert "no GPU found" in notice


@pytest.mark.parametrize(("given", "has_gpu"), [(["hardware=gpu1"], False), ([], True)])
def test_a_chosen_preset_or_a_gpu_leaves_the_command_alone(given, has_gpu):
    assert choose_hardware(given, has_gpu) == (given, "")


def test_the_nearest_name_is_found_by_its_path_or_by_its_last_part():
    names = ["trainer.method", "trainer.test_freq", "actor_rollout_ref.actor.optim.lr"]
    assert nearest("trainer.mehtodd", names) == "trainer.method"
    assert nearest("optim.lr", names) == "actor_rollout_ref.actor.optim.lr"
    assert nearest("qqqqqqqq", names) is None
