"""``trainer.eval_only=true``: the settings of an evaluation, from those of a training run."""

from __future__ import annotations

from omegaconf import DictConfig, OmegaConf, open_dict

from recipe.hint.runtime.merging import checkpoint_of, merged_model


def apply_evaluation_mode(config: DictConfig) -> None:
    """Rewrite the settings that have no meaning without training."""
    rollout = config.actor_rollout_ref.rollout
    # Values that are no numbers are refused afterwards, with the other checks of numbers.
    num_devices = (config.trainer.nnodes or 1) * (config.trainer.n_gpus_per_node or 1)
    with open_dict(config):
        name = OmegaConf.to_container(config.trainer, resolve=False)["experiment_name"]
        if name == "${trainer.method}-${now:%Y%m%d-%H%M%S}":
            config.trainer.experiment_name = "evaluation-${now:%Y%m%d-%H%M%S}"
        config.trainer.method = "grpo"
        config.data.train_files = config.data.val_files
        # No trainer: the replicas have the devices to themselves and read the weights they serve.
        config.trainer.save_freq = config.trainer.test_freq = -1
        config.data.train_batch_size = config.actor_rollout_ref.actor.ppo_mini_batch_size = (
            num_devices
        )
        rollout.nnodes = config.trainer.nnodes
        rollout.n_gpus_per_node = config.trainer.n_gpus_per_node
        rollout.load_format = "auto"


def merge_model(config: DictConfig) -> None:
    """Make the model's folder where ``actor_rollout_ref.model.path`` is a checkpoint.

    Raises:
        ConfigError: If it cannot be merged.
    """
    model = config.actor_rollout_ref.model
    if checkpoint := checkpoint_of(model.path):
        model.path = str(merged_model(checkpoint))
