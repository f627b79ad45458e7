"""Check sizes that must agree: batches, rows, tokens, modes and devices; and run verl's checks."""

from __future__ import annotations

import math
import re
import traceback
from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.preflight.settings import (
    ACTOR,
    GROUP,
    MINI,
    MODEL_NODE,
    PROMPT_LENGTH,
    REF,
    ROLLOUT,
    Sizes,
    is_separate,
    is_whole,
    leaves,
    names,
    quiet,
    reference_and_critic,
    setting,
)
from recipe.run.errors import ConfigError, one_line

# In the update, and where log-probabilities are computed: whether rows are packed by tokens, the
# tokens of a micro-batch, and the rows of one.
_UPDATE = "use_dynamic_bsz ppo_max_token_len_per_gpu ppo_micro_batch_size_per_gpu"
_LOG_PROB = (
    "log_prob_use_dynamic_bsz log_prob_max_token_len_per_gpu log_prob_micro_batch_size_per_gpu"
)
_ULYSSES = "ulysses_sequence_parallel_size"


def check_sizes(config: DictConfig, sizes: Sizes) -> None:
    """Check what verl asserts on after the first rollouts, or what would waste all of them.

    Args:
        config: The run's, with the models that its method asks for.
        sizes: Its numbers.

    Raises:
        ConfigError: Naming the settings that do not fit each other.
    """
    if is_separate(config):
        _check_separate(config, sizes)
    _check_oldest(config, sizes)
    _check_batch(config, sizes)
    _check_passes(config, sizes)
    _check_with_verl(config)


def _check_batch(config: DictConfig, sizes: Sizes) -> None:
    """Check the batch in shares, one between two weight syncs, and a share in mini-batches."""
    given = f"data.train_batch_size={sizes.batch}"
    fetched = setting(config, "data.gen_batch_size") or sizes.batch
    if sizes.mode == "sync" and sizes.batch % fetched:  # elsewhere single prompts are fetched
        raise ConfigError(
            f"data.gen_batch_size={fetched} does not divide {given}: a step takes whole fetches; "
            f"drop it, or give a divisor"
        )
    steps = f"trainer.v1.{sizes.mode}.parameter_sync_step={sizes.num_shares}"
    if sizes.batch % sizes.num_shares:
        raise ConfigError(f"{given} is not a multiple of {steps}; change one of them")
    if is_separate(config) and sizes.mini != sizes.share:
        raise ConfigError(
            f"{given} must be {steps} x {MINI}={sizes.mini} in mode separate_async; give "
            f"{MINI}={sizes.share}"
        )
    if sizes.share % sizes.mini:
        cause = "is above" if sizes.mini > sizes.share else "does not divide"
        parts = f" / {steps}" if sizes.num_shares > 1 else ""
        raise ConfigError(
            f"{MINI}={sizes.mini} {cause} {given}{parts} (both count prompts); give a divisor of "
            f"{sizes.share}"
        )


def _check_passes(config: DictConfig, sizes: Sizes) -> None:
    """Check the rows and tokens of each process."""
    uses_reference, uses_critic = reference_and_critic(config)
    passes = [(ACTOR, names(ACTOR, _UPDATE)), (ACTOR, names(ROLLOUT, _LOG_PROB))]
    if uses_reference:
        passes.append((REF, names(REF, _LOG_PROB)))
    rows = sizes.mini * sizes.group
    for engine, (dynamic, tokens, micro) in passes:
        shared = [setting(config, f"{engine}{part}.{_ULYSSES}") for part in ("", ".fsdp_config")]
        parallel = max(each or 1 for each in shared)
        ranks, size = max(1, sizes.num_processes // parallel), setting(config, micro)
        if rows % ranks:
            raise ConfigError(
                f"{MINI} x {GROUP} = {rows} rows cannot be shared out evenly to {ranks} trainer "
                f"processes; give a multiple of {ranks}"
            )
        if setting(config, dynamic):
            _check_row_fits(sizes, tokens, setting(config, tokens), parallel)
        elif not is_whole(size) or (rows // ranks) % size:
            raise ConfigError(
                f"{micro}={size} must divide the {rows // ranks} rows that one process holds of a "
                f"mini-batch ({MINI} x {GROUP} / processes); give a divisor, or {dynamic}=true"
            )
    if uses_critic:
        from verl.workers.config import CriticConfig

        name = "critic.ppo_infer_max_token_len_per_gpu"  # verl packs its updates by it too
        limit = setting(config, name) or CriticConfig.ppo_infer_max_token_len_per_gpu
        _check_row_fits(sizes, name, limit, setting(config, f"critic.fsdp.{_ULYSSES}") or 1)


def _check_row_fits(sizes: Sizes, name: str, limit: Any, parallel: int) -> None:
    row = sizes.prompt + sizes.response
    if not is_whole(limit) or limit * parallel < row:
        shared = f" x {parallel} ({_ULYSSES})" if parallel > 1 else ""
        raise ConfigError(
            f"{name}={limit}{shared} is below {PROMPT_LENGTH}={sizes.prompt} + "
            f"data.max_response_length={sizes.response} = {row} tokens: verl would stop at the "
            f"first row that long; give {-(-row // parallel)} or more"
        )


def _check_oldest(config: DictConfig, sizes: Sizes) -> None:
    """Check that an asynchronous mode does not throw away what it has just sampled."""
    oldest = setting(config, "trainer.v1.sampler.max_off_policy_threshold")
    strategy = setting(config, "trainer.v1.sampler.max_off_policy_strategy")
    if sizes.mode == "sync" or strategy != "drop" or oldest is None:
        return
    ahead = f"trainer.v1.{sizes.mode}.num_warmup_batches"
    chunk = setting(config, "data.gen_batch_size") or sizes.batch  # verl sends whole ones
    num_sent = (setting(config, ahead) or 0) * sizes.batch // chunk
    lag = math.ceil(num_sent * chunk / sizes.batch)
    if oldest <= lag:
        raise ConfigError(
            f"trainer.v1.sampler.max_off_policy_threshold={oldest} would throw away finished "
            f"prompts at every step: with {ahead}={lag} they span {lag + 1} versions of the "
            f"weights; give {lag + 1} or more, or trainer.v1.sampler.max_off_policy_strategy=wait"
        )


def _check_separate(config: DictConfig, sizes: Sizes) -> None:
    """Check mode separate_async: devices for rollouts alone, and a way for the weights."""
    transfer = f"{ROLLOUT}.checkpoint_engine"
    what = f"trainer.v1.trainer_mode=separate_async with trainer.device={sizes.device}"
    for name in names(ROLLOUT, "nnodes n_gpus_per_node"):
        if not is_whole(setting(config, name)):
            raise ConfigError(
                f"{what} needs devices for the rollouts alone, but {name}={setting(config, name)}; "
                f"give a whole number of at least 1"
            )
    backend = setting(config, f"{transfer}.backend")
    module = setting(config, f"{transfer}.custom_backend_module")
    if backend == "naive" or (backend == "gloo" and not module):
        own = f"gloo {transfer}.custom_backend_module=recipe.laptop.transfer"
        raise ConfigError(
            f"{what} sends weights to other devices, which {transfer}.backend={backend} with "
            f"custom_backend_module={module} cannot; give {transfer}.backend="
            f"{own if sizes.device == 'cpu' else 'nccl'}"
        )
    lora = [setting(config, name) for name in names(MODEL_NODE, "lora_rank lora_adapter_path")]
    if any(lora) and not setting(config, f"{MODEL_NODE}.lora.merge"):
        raise ConfigError(
            f"{what} and {MODEL_NODE}.lora_rank={lora[0]} (lora_adapter_path={lora[1]}): verl "
            f"0.9.1 sends the model without its adapter to other devices; set "
            f"{MODEL_NODE}.lora.merge=true"
        )
    if sizes.device == "cuda":
        _check_kept_weights(config, sizes)


def _check_kept_weights(config: DictConfig, sizes: Sizes) -> None:
    """Check that the weights a step began with can be put back for its later updates.

    verl writes them into the shards, where the next pass must see them and nothing else write.
    """
    bypass = "algorithm.rollout_correction.bypass_mode"
    if sizes.num_shares <= 1 or setting(config, bypass):
        return
    fsdp = f"{ACTOR}.fsdp_config"
    faults: dict[str, tuple[Any, Any, str]] = {
        f"{fsdp}.reshard_after_forward": (False, True, "its second update stops"),
        f"{fsdp}.param_offload": (True, False, "updates are lost"),
    }
    if sizes.num_processes > 1:
        faults[f"{ACTOR}.strategy"] = ("fsdp", "fsdp2", "a pass would take older weights")
    steps = "trainer.v1.separate_async.parameter_sync_step"
    for name, (bad, good, effect) in faults.items():
        if (value := setting(config, name)) == bad:
            raise ConfigError(
                f"{name}={str(value).lower()} with {steps}={sizes.num_shares}: verl keeps the "
                f"weights of a step's beginning, and {effect}; give {str(good).lower()}, or "
                f"{steps}=1, or {bypass}=true"
            )


def _check_with_verl(config: DictConfig) -> None:
    """Run verl's own checks, and name the settings that its message mentions."""
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    refusals = AssertionError, NotImplementedError, TypeError, ValueError, InstantiationException
    try:
        with quiet():
            uses_reference, uses_critic = reference_and_critic(config)
            omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
            omega_conf_to_dataclass(config.actor_rollout_ref.actor)
            if uses_critic:
                omega_conf_to_dataclass(config.critic)
            validate_config(config, uses_reference, uses_critic)
    except refusals as error:
        full_key = re.search(r"full_key: (\S+)", str(error))
        section = full_key[1] if full_key else ""
        # An assertion may have no message; then show its line.
        message = one_line(error.__cause__ or error) or _line_of(error)
        words = set(re.findall(r"[a-z]+_\w+", message.replace("real_", "")))
        mentioned = [
            f"{name}={value}"
            for name, value in leaves(OmegaConf.to_container(config))
            if name.startswith(section) and name.rpartition(".")[2] in words
        ]
        raise ConfigError(
            f"{', '.join(mentioned[:3]) or section or 'a setting'}: verl refuses it: {message}"
        ) from error


def _line_of(error: BaseException) -> str:
    cause = error.__cause__ or error
    return traceback.extract_tb(cause.__traceback__)[-1].line or type(cause).__name__
