"""What two policies cannot be trained with, found before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.folder import check_disk, check_room
from recipe.hint.adapter.preflight.model import load_model
from recipe.hint.adapter.preflight.settings import ACTOR, ROLLOUT, setting
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.methods import METHODS, Method, MultiTurn
from recipe.hint.settings import build_method, settings_of
from recipe.run.checkpoints import complete_steps, resume_step
from recipe.run.errors import ConfigError
from recipe.study.alternation import ROLES, Phase, phases
from recipe.study.partner import ServerOptions

# Which the command gives to each phase.
_OWN = {
    **dict.fromkeys(("guide", "solver"), "policy"),
    **dict.fromkeys(("train_guide", "train_solver"), True),
}
_TOP_K = ("top_k", "val_kwargs.top_k")
_OWN_OF_TEACHER = ("base_url", "model", "api_key_env", "timeout_s", "cache_dir")


def check_roles(config: DictConfig) -> MultiTurn:
    """Refuse what has no two roles or no export, and what the command gives to each phase itself.

    Returns:
        The method, whose roles alternate.

    Raises:
        ConfigError: Naming the setting.
    """
    name = str(setting(config, "trainer.method"))
    those = {name: each for name, each in METHODS.items() if _alternates(each)}
    if name not in those:
        raise ConfigError(
            f"trainer.method={name} has no solver and guide that take turns; give "
            f"{' or '.join(those)}"
        )
    node = those[name].settings_node
    own = {f"{node}.{key}": value for key, value in _OWN.items()}
    teacher = asdict(TeacherSettings())
    own |= {f"hint.teacher.{key}": teacher[key] for key in _OWN_OF_TEACHER}
    own["trainer.default_local_dir"] = f"{config.hint.run_dir}/checkpoints"
    own["trainer.resume_mode"] = "auto"
    for key, value in own.items():
        if setting(config, key) != value:
            raise ConfigError(
                f"{key}={setting(config, key)}: this command sets it in each phase, for both roles "
                f"train in turns, each in a folder of its own; drop it"
            )
    top_k, val_top_k = (setting(config, f"{ROLLOUT}.{key}") for key in _TOP_K)
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


def _alternates(cls: type[Method]) -> bool:
    return issubclass(cls, MultiTurn) and cls.roles_alternate


def check_phases(config: DictConfig, method: MultiTurn) -> None:
    """Refuse what cannot go on from one phase to the next.

    Raises:
        ConfigError: Naming the setting.
    """
    num_steps = setting(config, "trainer.total_training_steps")
    if num_steps is None:
        raise ConfigError(
            "trainer.total_training_steps=null: the steps of both roles together say how many "
            "phases there are; give a number"
        )
    if (every := setting(config, "trainer.save_freq")) < 1:
        raise ConfigError(
            f"trainer.save_freq={every}: a phase continues from the checkpoint of the one before "
            f"it; give a number of steps, such as {method.settings_node}.t_low's"
        )
    name, warmup = "trainer.critic_warmup", setting(config, "trainer.critic_warmup")
    shortest = min(each.last for each in phases(*method.role_steps, num_steps)[:2])
    if warmup > shortest:
        raise ConfigError(
            f"{name}={warmup} outlasts a role's first phase (steps 1-{shortest}), in which it "
            f"would not change once; give at most {shortest}"
        )
    for optim in (f"{ACTOR}.optim", "critic.optim"):
        for key, value in {"lr_scheduler_type": "constant", "lr_warmup_steps_ratio": 0.0}.items():
            if setting(config, f"{optim}.{key}") != value:
                raise ConfigError(
                    f"{optim}.{key}={setting(config, f'{optim}.{key}')} follows the number of "
                    f"steps, which grows with every phase; give {value} (lr_warmup_steps=N warms "
                    f"up over N steps)"
                )


def check_disk_of_roles(
    method: MultiTurn,
    config: DictConfig,
    checkpoint: int | None,
    num_steps: int,
    *,
    has_critic: bool = False,
) -> str:
    """Make sure that the checkpoints of both roles and their exports fit the disk.

    Args:
        method: The method, whose roles alternate.
        config: The command's settings.
        checkpoint: Size of one in bytes; ``None``: unknown.
        num_steps: Of both roles together.
        has_critic: Whether a critic is trained.

    Returns:
        What is still to be written.

    Raises:
        ConfigError: If that does not fit, or if one checkpoint of a role alone would be kept.
    """
    said = check_disk(config, None, num_steps, has_critic=has_critic)  # how many are kept
    if checkpoint is None or setting(config, "trainer.save_freq") < 1:
        return said
    root = Path(setting(config, "hint.run_dir")).absolute()
    planned = phases(*method.role_steps, num_steps)
    ahead = [each for each in planned if each.last > _trained_steps(root / each.role)]
    num_new = [
        _num_saves(config, root / role, [each for each in ahead if each.role == role])
        for role in ROLES
    ]
    # Each role's newest, and one that is being written; a kill may have left one to be written.
    there = [each for each in root.glob("exports/*") if not each.name.startswith(".")]
    num_exports = max(0, min(len(planned), len(ROLES) + 1) - len(there))
    bytes_per_number = 4 if setting(config, f"{ROLLOUT}.dtype") == "float32" else 2
    export = bytes_per_number * (load_model(config).num_parameters or 0)
    what = (
        f"{sum(num_new)} checkpoints of {checkpoint / 1e9:.3g} GB ({num_new[0]} of the solver, "
        f"{num_new[1]} of the guide) and {num_exports} "
        f"export{'s' * (num_exports != 1)} of {export / 1e9:.3g} GB"
    )
    num_bytes = sum(num_new) * checkpoint + num_exports * export
    return f"{what}: {check_room('hint.run_dir', root, what, num_bytes)}"


def _trained_steps(folder: Path) -> int:
    return resume_step(folder / "checkpoints") or 0


def _num_saves(config: DictConfig, folder: Path, ahead: Sequence[Phase]) -> int:
    """Return how many checkpoints a role will have beside those there: it ends phases with one."""
    done, every = _trained_steps(folder), setting(config, "trainer.save_freq")
    saves = [
        step
        for phase in ahead
        for step in range(max(done + 1, phase.first), phase.last + 1)
        if step % every == 0 or step == phase.last
    ]
    keep = setting(config, "trainer.max_actor_ckpt_to_keep")
    if not keep or not saves:
        return len(saves)
    there = sum(step <= done for step in complete_steps(folder / "checkpoints"))
    # What a phase is resumed from stays beside those that are kept.
    spared = bool(there) or len(ahead) > 1
    return min(len(saves), max(1, keep + spared - there))


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
