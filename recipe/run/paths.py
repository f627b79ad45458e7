"""The settings that name a file or a folder, and their values as absolute paths."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from recipe.run.config import files_of

CHECKPOINTS = "trainer.default_local_dir"
# Folders that a run makes.
FOLDERS = (
    *("hint.run_dir", CHECKPOINTS, "hint.teacher.cache_dir"),
    *("trainer.rollout_data_dir", "trainer.validation_data_dir"),
)
# Files or folders that are here, or else a name on the hub, a module (pkg://) or an address.
SOURCES = (
    *(
        f"{section}.{name}"
        for section in ("actor_rollout_ref.model", "critic.model")
        for name in ("path", "hf_config_path", "tokenizer_path", "lora_adapter_path")
    ),
    *("hint.prompts", "reward.custom_reward_function.path", "data.custom_cls.path"),
    "trainer.v1.sampler.custom_sampler.path",
)
# Each holds one name, or a list.
TRAIN, VAL = DATA_FILES = ("data.train_files", "data.val_files")


def local_path(path: str) -> str:
    """Return a path that is here as an absolute one; any other name may be one on the hub."""
    local = Path(path).expanduser()
    return str(local.absolute()) if local.exists() else path


def make_absolute(config: DictConfig) -> None:
    """Make paths independent of the working directory: Ray's workers may have another one."""
    # verl reads the step at the end of the last: no slash may follow.
    for name in (*FOLDERS, "trainer.resume_from_path"):
        if path := OmegaConf.select(config, name):
            OmegaConf.update(config, name, str(Path(path).absolute()))
    for name in SOURCES:
        if path := OmegaConf.select(config, name):
            OmegaConf.update(config, name, local_path(path))
    for name in DATA_FILES:
        OmegaConf.update(config, name, [local_path(path) for path in files_of(config, name)])


def evaluation_folder(config: DictConfig) -> Path:
    return Path(config.hint.run_dir) / "evaluation"
