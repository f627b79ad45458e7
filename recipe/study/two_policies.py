"""What two policies cannot be trained with, found before anything starts."""

from __future__ import annotations

from dataclasses import asdict

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import ACTOR, ROLLOUT, setting
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.methods import METHODS, MultiTurn
from recipe.hint.settings import build_method, settings_of
from recipe.run.errors import ConfigError
from recipe.study.alternation import phases
from recipe.study.partner import ServerOptions

_OWN_OF_TEACHER = ("base_url", "model", "api_key_env", "timeout_s", "cache_dir")


def check_roles(config: DictConfig) -> MultiTurn:
    """Refuse what has no two roles or no export, and what the command gives to each phase itself.

    Returns:
        The method, whose roles alternate.

    Raises:
        ConfigError: Naming the setting.
    """
    name = str(setting(config, "trainer.method"))
    those = [
        name
        for name, each in METHODS.items()
        if issubclass(each, MultiTurn) and each.roles_alternate
    ]
    if name not in those:
        raise ConfigError(
            f"trainer.method={name} has no solver and guide that take turns; give "
            f"{' or '.join(those)}"
        )
    node, teacher = METHODS[name].settings_node, asdict(TeacherSettings())
    own = {
        **{f"{node}.{role}": "policy" for role in ("guide", "solver")},
        **{f"{node}.train_{role}": True for role in ("guide", "solver")},
        **{f"hint.teacher.{key}": teacher[key] for key in _OWN_OF_TEACHER},
        "trainer.default_local_dir": f"{config.hint.run_dir}/checkpoints",
        "trainer.resume_mode": "auto",
    }
    for key, value in own.items():
        if setting(config, key) != value:
            raise ConfigError(
                f"{key}={setting(config, key)}: this command sets it in each phase, for both roles "
                f"train in turns, each in a folder of its own; drop it"
            )
    top_k, val_top_k = (
        setting(config, f"{ROLLOUT}.{key}") for key in ("top_k", "val_kwargs.top_k")
    )
    if top_k != val_top_k:
        raise ConfigError(
            f"{ROLLOUT}.val_kwargs.top_k={val_top_k} and {ROLLOUT}.top_k={top_k}: the server of "
            f"the other role has one for training and validation; give both the same"
        )
    if rank := setting(config, "actor_rollout_ref.model.lora_rank"):
        raise ConfigError(
            f"actor_rollout_ref.model.lora_rank={rank}: main_export.py writes whole weights, and a "
            f"checkpoint of adapters has none; give 0"
        )
    method = build_method(config.trainer, settings_of(config))
    assert isinstance(method, MultiTurn)
    return method


def check_phases(config: DictConfig, method: MultiTurn) -> None:
    """Refuse what cannot go on from one phase to the next.

    Raises:
        ConfigError: Naming the setting.
    """
    num_steps = setting(config, "trainer.total_training_steps")
    every = setting(config, "trainer.save_freq")
    if num_steps is None or every < 1:
        raise ConfigError(
            f"trainer.total_training_steps={num_steps}, trainer.save_freq={every}: give the steps "
            f"of both roles together, and the steps between checkpoints, which the next phase "
            f"begins at, such as {method.settings_node}.t_low's"
        )
    warmup = setting(config, "trainer.critic_warmup")
    shortest = min(each.last for each in phases(*method.role_steps, num_steps)[:2])
    if warmup > shortest:
        raise ConfigError(
            f"trainer.critic_warmup={warmup} outlasts a role's first phase (steps 1-{shortest}), "
            f"in which it would not change once; give at most {shortest}"
        )
    for optim in (f"{ACTOR}.optim", "critic.optim"):
        for key, value in {"lr_scheduler_type": "constant", "lr_warmup_steps_ratio": 0.0}.items():
            if setting(config, f"{optim}.{key}") != value:
                raise ConfigError(
                    f"{optim}.{key}={setting(config, f'{optim}.{key}')} follows the number of "
                    f"steps, which grows with every phase; give {value} (lr_warmup_steps=N warms "
                    f"up over N steps)"
                )


def check_server_options(config: DictConfig, server_options: ServerOptions) -> None:
    """Refuse a server that could not run, or not be reached.

    Raises:
        ConfigError: Naming the option.
    """
    device, num_nodes = setting(config, "trainer.device"), setting(config, "trainer.nnodes")
    if (device == "cpu") == bool(server_options.devices):
        raise ConfigError(
            f"--devices {server_options.devices}: trainer.device=cpu has none; drop it"
            if server_options.devices
            else "give --devices, the GPUs that serve the frozen role, such as --devices 7, and "
            "those that train as CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6"
        )
    is_spread = isinstance(num_nodes, int) and num_nodes > 1
    if is_spread and server_options.host in ("127.0.0.1", "localhost"):
        raise ConfigError(
            f"--host {server_options.host} cannot be reached from the other of "
            f"trainer.nnodes={num_nodes} machines; give this machine's address in the cluster"
        )
    server_options.free_port()
