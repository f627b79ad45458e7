"""Checks of a run's phases, and of what it begins from."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.folder import resumed_step
from recipe.hint.adapter.preflight.settings import reference_and_critic, setting
from recipe.hint.methods import Method, MultiTurn, OwnCredit
from recipe.run.checkpoints import is_within
from recipe.run.errors import ConfigError

_PATH, _WARMUP = "trainer.resume_from_path", "trainer.critic_warmup"
_ADAPTER = "actor_rollout_ref.model.lora_adapter_path"


def check_phases(config: DictConfig, method: Method, num_steps: int) -> None:
    """Refuse phases that do not fit the run's steps, its mode, or where it begins.

    Raises:
        ConfigError: Naming the setting.
    """
    method.check_steps(num_steps)
    check_stages(config, method, num_steps)
    check_warmup(config, method, num_steps)
    check_phases_ahead(config, method)


def check_stages(config: DictConfig, method: Method, num_steps: int) -> None:
    """Refuse phases that asynchronous modes would mix, and a first phase that fills the run there.

    In these modes a prompt is sent ``num_warmup_batches`` steps before it trains, and keeps the
    phase of the step that sent it.

    Raises:
        ConfigError: Naming the setting.
    """
    if (mode := setting(config, "trainer.v1.trainer_mode")) == "sync":
        return
    node = method.settings_node
    if low := _steps_of_first_role(method):
        raise ConfigError(
            f"{node}.t_low={low} needs trainer.v1.trainer_mode=sync: in {mode} a step trains on "
            f"prompts of several earlier ones, so that phases mix"
        )
    name, first = method.first_phase
    ahead = f"trainer.v1.{mode}.num_warmup_batches"
    lag = int(setting(config, ahead) or 0)  # of a fraction, the last step has prompts of its own
    if first and num_steps - lag <= first < num_steps:
        raise ConfigError(
            f"{node}.{name}={first} leaves no step of {num_steps} to what follows: in {mode} a "
            f"step trains on prompts of {ahead}={lag} steps before; give at most "
            f"{max(num_steps - lag - 1, 0)}"
            f"{f', or {num_steps} for stage I alone' if method.is_multi_turn else ''}"
        )


def check_warmup(config: DictConfig, method: Method, num_steps: int) -> None:
    """Refuse steps of the critic alone if there is no critic, or if they fill a phase or the run.

    The policy changes from step ``trainer.critic_warmup`` on, whether there is a critic or not.

    Raises:
        ConfigError: Naming the setting.
    """
    name, warmup = "trainer.critic_warmup", setting(config, "trainer.critic_warmup")
    if not warmup:
        return
    _, has_critic = reference_and_critic(config)
    needs_critic = isinstance(method, OwnCredit) and method.needs_critic
    if not (needs_critic or has_critic):
        raise ConfigError(
            f"{name}={warmup} keeps the policy as it is for {warmup - 1} steps, and "
            f"trainer.method={config.trainer.method} has no critic that would learn meanwhile; "
            f"drop it"
        )
    phase, first = method.first_phase
    node, low = method.settings_node, _steps_of_first_role(method)
    ends = {"the run": num_steps, f"{node}.{phase}": first, f"{node}.t_low": low}
    for limit, steps in ends.items():
        if 0 < steps < warmup:
            raise ConfigError(
                f"{name}={warmup} is above the {steps} steps of {limit}, in which the policy would "
                f"not change once; give at most {steps}"
            )


def _steps_of_first_role(method: Method) -> int:
    """Return how many steps train one role alone before the other; 0: roles do not alternate."""
    return method.role_steps[0] if isinstance(method, MultiTurn) else 0


def check_phases_ahead(config: DictConfig, method: Method) -> None:
    """Refuse a first phase that is over where the run begins, at a step of another run.

    verl counts on from the step of the checkpoint.

    Raises:
        ConfigError: Naming the setting of its length.
    """
    if not _begins_at_another_run(config):
        return
    done, (phase, first) = resumed_step(config), method.first_phase
    lengths = {f"{method.settings_node}.{phase}": first, _WARMUP: setting(config, _WARMUP)}
    for name, steps in lengths.items():
        # The policy changes from step critic_warmup on.
        if 0 < steps <= done + (name == _WARMUP):
            raise ConfigError(
                f"{name}={steps} would be over at once: {_PATH}={setting(config, _PATH)} is step "
                f"{done} of another run, and steps count on from there; give {done + steps} for as "
                f"many steps of it as at the beginning of a run, or 0 for none"
            )


def reference_warnings(config: DictConfig) -> list[str]:
    """Return a warning where the KL holds the policy to other weights than it begins with."""
    uses_reference, _ = reference_and_critic(config)
    if not uses_reference:
        return []
    names = [_PATH] if _begins_at_another_run(config) else []
    names += [_ADAPTER] if setting(config, _ADAPTER) else []
    return [
        f"warning: {name}={setting(config, name)} is not in the reference policy: the KL is to "
        f"actor_rollout_ref.model.path, not to the weights that the run begins with"
        for name in names
    ]


def warmup_warnings(config: DictConfig, method: Method) -> list[str]:
    """Return a warning where a critic of utterances advises the policy before it has learnt."""
    has_learner = isinstance(method, OwnCredit) and method.utterance_critic is not None
    warmup = setting(config, _WARMUP)
    if not has_learner or warmup > 1 or resumed_step(config):
        return []
    return [
        f"warning: {_WARMUP}={warmup} lets the policy ascend the noise of new critic heads; "
        f"ArCHer trains the critic alone at first: give N+1 for N such steps"
    ]


def _begins_at_another_run(config: DictConfig) -> bool:
    if setting(config, "trainer.resume_mode") != "resume_path":
        return False
    root = setting(config, "trainer.default_local_dir")
    return not is_within(root, Path(str(setting(config, _PATH))))
