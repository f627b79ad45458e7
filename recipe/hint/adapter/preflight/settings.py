"""Check settings without any file: values that must agree, and verl's own checks."""

from __future__ import annotations

import contextlib
import io
import math
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig, ListConfig, OmegaConf

from recipe.run.errors import ConfigError, one_line
from recipe.run.typed import check_finite


def names(section: str, keys: str) -> tuple[str, ...]:
    """Return the dotted names of several settings of one section."""
    return tuple(f"{section}.{key}" for key in keys.split())


ACTOR, ROLLOUT, REF, MODEL_NODE = names("actor_rollout_ref", "actor rollout ref model")
PROMPT_LENGTH = f"{ROLLOUT}.prompt_length"
_MINI, _GROUP = f"{ACTOR}.ppo_mini_batch_size", f"{ROLLOUT}.n"
_SECTIONS = ("trainer", "hint", "data", "actor_rollout_ref", "algorithm", "reward", "ray_kwargs")
# In the update, and where log-probabilities are computed: whether rows are packed by tokens, the
# tokens of a micro-batch, and the rows of one.
_UPDATE = "use_dynamic_bsz ppo_max_token_len_per_gpu ppo_micro_batch_size_per_gpu"
_LOG_PROB = (
    "log_prob_use_dynamic_bsz log_prob_max_token_len_per_gpu log_prob_micro_batch_size_per_gpu"
)


def setting(config: DictConfig, name: str) -> Any:
    """Return the value of a dotted name; ``None`` where the config has no such node."""
    return OmegaConf.select(config, name)


def files_of(config: DictConfig, name: str) -> list[str]:
    """Return a setting that is one file or a list of files as a list."""
    value = setting(config, name)
    many = list(value) if isinstance(value, list | tuple | ListConfig) else [value]
    return [str(each) for each in many if each is not None and str(each).strip()]


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of each setting; an empty mapping is a value."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def is_separate(config: DictConfig) -> bool:
    """Return whether the run trains with rollouts on devices of their own."""
    mode = setting(config, "trainer.v1.trainer_mode")
    return mode == "separate_async" and not setting(config, "trainer.eval_only")


def world_size(config: DictConfig) -> int:
    """Return the number of trainer processes."""
    return setting(config, "trainer.nnodes") * setting(config, "trainer.n_gpus_per_node")


def rollout_devices(config: DictConfig) -> int:
    """Return the number of devices that only roll out."""
    if not is_separate(config):
        return 0
    counts = (setting(config, f"{ROLLOUT}.{name}") for name in ("nnodes", "n_gpus_per_node"))
    return math.prod(count or 0 for count in counts)


def check_sections(config: DictConfig) -> None:
    """Refuse ``trainer=3``, which replaces a whole section, and numbers that are not finite."""
    check_finite(OmegaConf.to_container(config), "")
    for name in _SECTIONS:
        value = config.get(name)
        if not isinstance(value, Mapping | DictConfig):
            raise ConfigError(
                f"{name}={value!r} replaces a whole section; set the keys in it, like "
                f"{name}.KEY=VALUE"
            )


def check_settings(config: DictConfig) -> None:
    """Check everything that follows from the settings alone."""
    _check_sampling(config)
    if not setting(config, "trainer.eval_only"):
        _check_validation(config)
        _check_separate(config)
        _check_oldest(config)
        _check_batch(config)
        _check_passes(config)
        _check_with_verl(config)


def is_whole(value: Any, smallest: int) -> bool:
    """Return whether a value is a whole number of at least ``smallest``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= smallest


def _check_sampling(config: DictConfig) -> None:
    rollout = config.actor_rollout_ref.rollout
    given, twin, val = rollout.response_length, config.data.max_response_length, rollout.val_kwargs
    if given != twin:
        raise ConfigError(
            f"{ROLLOUT}.response_length={given} and data.max_response_length={twin} are two names "
            f"of one length; give both the same value"
        )
    if config.trainer.device == "cpu" and rollout.enable_chunked_prefill:
        raise ConfigError(
            f"{ROLLOUT}.enable_chunked_prefill=true does not work with trainer.device=cpu: vLLM "
            f"cannot rewind the seed of a request there; set it to false"
        )
    if val.temperature == 0 and val.n > 1:
        raise ConfigError(
            f"{ROLLOUT}.val_kwargs.n={val.n} with val_kwargs.temperature=0 would give one response "
            f"{val.n} times; set n to 1 or the temperature above 0"
        )


def _check_validation(config: DictConfig) -> None:
    """Check that a run which should only validate does so: verl would train otherwise."""
    first, alone = names("trainer", "val_before_train val_only")
    if setting(config, alone) and not setting(config, first):
        raise ConfigError(
            f"{alone}=true with {first}=false would train: verl validates alone only where it "
            f"validates first; set {first}=true, or drop {alone}"
        )


def _check_oldest(config: DictConfig) -> None:
    """Check that an asynchronous mode does not throw away what it has just sampled."""
    mode = setting(config, "trainer.v1.trainer_mode")
    oldest, strategy = (
        setting(config, name)
        for name in names("trainer.v1.sampler", "max_off_policy_threshold max_off_policy_strategy")
    )
    if mode == "sync" or strategy != "drop" or oldest is None:
        return
    ahead = f"trainer.v1.{mode}.num_warmup_batches"
    size = setting(config, "data.train_batch_size")
    chunk = setting(config, "data.gen_batch_size") or size  # verl sends whole ones
    lag = math.ceil(math.floor((setting(config, ahead) or 0) * size / chunk) * chunk / size)
    if oldest <= lag:
        raise ConfigError(
            f"trainer.v1.sampler.max_off_policy_threshold={oldest} would throw away finished "
            f"prompts at every step: with {ahead}={lag} they span {lag + 1} versions of the "
            f"weights; give {lag + 1} or more, or trainer.v1.sampler.max_off_policy_strategy=wait"
        )


def _check_separate(config: DictConfig) -> None:
    """Check mode separate_async: devices for rollouts alone, and a way for the weights."""
    if not is_separate(config):
        return
    device, transfer = setting(config, "trainer.device"), f"{ROLLOUT}.checkpoint_engine"
    what = f"trainer.v1.trainer_mode=separate_async with trainer.device={device}"
    for name in names(ROLLOUT, "nnodes n_gpus_per_node"):
        if not is_whole(setting(config, name), 1):
            raise ConfigError(
                f"{what} needs devices for the rollouts alone, but {name}={setting(config, name)}; "
                f"give a whole number of at least 1 (those of the trainer have their own settings)"
            )
    backend = setting(config, f"{transfer}.backend")
    module = setting(config, f"{transfer}.custom_backend_module")
    if backend == "naive" or (backend == "gloo" and not module):
        cpu = f"gloo {transfer}.custom_backend_module=recipe.laptop.transfer"
        raise ConfigError(
            f"{what} sends weights to other devices, which {transfer}.backend={backend} with "
            f"custom_backend_module={module} cannot; give {transfer}.backend="
            f"{cpu if device == 'cpu' else 'nccl'}"
        )
    if not setting(config, "actor_rollout_ref.hybrid_engine"):
        raise ConfigError(
            f"{what} and actor_rollout_ref.hybrid_engine=false: verl 0.9.1 stops there while it "
            f"writes a line of its log; set it to true"
        )
    keys = names(MODEL_NODE, "lora_rank lora_adapter_path")
    rank, adapter = (setting(config, key) for key in keys)
    if (rank or adapter) and not setting(config, f"{MODEL_NODE}.lora.merge"):
        raise ConfigError(
            f"{what} and {MODEL_NODE}.lora_rank={rank} (lora_adapter_path={adapter}): verl 0.9.1 "
            f"sends the model without its adapter to other devices; set "
            f"{MODEL_NODE}.lora.merge=true"
        )
    if device == "cuda":
        _check_kept_weights(config)


def _check_kept_weights(config: DictConfig) -> None:
    """Check that the weights a step began with can be put back for its later updates.

    verl writes them into the shards, where the next pass must see them and nothing else write.
    """
    steps = "trainer.v1.separate_async.parameter_sync_step"
    bypass = "algorithm.rollout_correction.bypass_mode"
    if setting(config, steps) <= 1 or setting(config, bypass):
        return
    others = f"or give {steps}=1, or {bypass}=true"
    strategy, offload = names(ACTOR, "strategy fsdp_config.param_offload")
    reshard = f"{ACTOR}.fsdp_config.reshard_after_forward"
    if setting(config, reshard) is False:
        raise ConfigError(
            f"{reshard}=false with {steps}={setting(config, steps)}: verl keeps the weights of a "
            f"step's beginning, and cannot put them back in its second update while each process "
            f"holds them gathered (DTensor parameters not initialized); set it to true, {others}"
        )
    if setting(config, offload):
        raise ConfigError(
            f"{offload}=true with {steps}={setting(config, steps)}: verl keeps the weights on the "
            f"CPU in the memory that it writes the older ones to, and updates are lost; set it to "
            f"false, {others}"
        )
    if setting(config, strategy) == "fsdp" and world_size(config) > 1:
        raise ConfigError(
            f"{strategy}=fsdp with {steps}={setting(config, steps)}: the first pass of an update "
            f"would take embedding and head of the older weights, which FSDP1 does not gather "
            f"again; give fsdp2, {others}"
        )


def num_updates(config: DictConfig) -> int:
    """Return the mini-batches of a batch's share between two weight syncs."""
    steps = f"trainer.v1.{setting(config, 'trainer.v1.trainer_mode')}.parameter_sync_step"
    share = setting(config, "data.train_batch_size") // (setting(config, steps) or 1)
    return share // setting(config, _MINI)


def _check_batch(config: DictConfig) -> None:
    """Check the batch in shares, one between two weight syncs, and a share in mini-batches."""
    batch, mini = setting(config, "data.train_batch_size"), setting(config, _MINI)
    fetched = setting(config, "data.gen_batch_size") or batch
    # Elsewhere verl fetches single prompts, whatever is given.
    if setting(config, "trainer.v1.trainer_mode") == "sync" and batch % fetched:
        raise ConfigError(
            f"data.gen_batch_size={fetched} does not divide data.train_batch_size={batch}: a step "
            f"takes whole fetches; drop it, or give a divisor"
        )
    steps = f"trainer.v1.{setting(config, 'trainer.v1.trainer_mode')}.parameter_sync_step"
    num_shares = setting(config, steps) or 1
    given = f"data.train_batch_size={batch}"
    if batch % num_shares:
        raise ConfigError(f"{given} is not a multiple of {steps}={num_shares}; change one of them")
    share = batch // num_shares
    if mini > share or share % mini:
        cause = "is above" if mini > share else "does not divide"
        parts = f" / {steps}={num_shares}" if num_shares > 1 else ""
        raise ConfigError(
            f"{_MINI}={mini} {cause} {given}{parts} (both count prompts); give a divisor of {share}"
        )
    if is_separate(config) and mini != share:
        raise ConfigError(
            f"{given} must be {steps}={num_shares} x {_MINI}={mini} in mode separate_async; give "
            f"{_MINI}={share}"
        )


def _check_passes(config: DictConfig) -> None:
    """Check a process's rows and tokens; verl asserts on them after the first rollouts."""
    uses_reference, uses_critic = reference_and_critic(config)
    passes = [(ACTOR, names(ACTOR, _UPDATE)), (ACTOR, names(ROLLOUT, _LOG_PROB))]
    if uses_reference:
        passes.append((REF, names(REF, _LOG_PROB)))
    rows = setting(config, _MINI) * setting(config, _GROUP)
    for engine, (dynamic, tokens, micro) in passes:
        parallel = _sequence_parallel(config, engine)
        ranks, size = world_size(config) // parallel, setting(config, micro)
        if rows % ranks:
            raise ConfigError(
                f"{_MINI} x {_GROUP} = {rows} rows cannot be shared out evenly to {ranks} trainer "
                f"processes; give a multiple of {ranks}"
            )
        if setting(config, dynamic):
            _check_row_fits(config, tokens, setting(config, tokens), parallel)
        elif not is_whole(size, 1) or (rows // ranks) % size:
            raise ConfigError(
                f"{micro}={size} must divide the {rows // ranks} rows that one process holds of a "
                f"mini-batch ({_MINI} x {_GROUP} / processes); give a divisor, or {dynamic}=true"
            )
    update, log_prob = (dynamic for _, (dynamic, *_) in passes[:2])
    if setting(config, update) != setting(config, log_prob):
        raise ConfigError(
            f"{update}={setting(config, update)} and {log_prob}={setting(config, log_prob)}: verl "
            f"asserts in the trainer's start that they agree; give both the same value"
        )
    if uses_critic:
        from verl.workers.config import CriticConfig

        name = "critic.ppo_infer_max_token_len_per_gpu"  # verl packs its updates by it too
        limit = setting(config, name) or CriticConfig.ppo_infer_max_token_len_per_gpu
        parallel = setting(config, "critic.fsdp.ulysses_sequence_parallel_size") or 1
        _check_row_fits(config, name, limit, parallel)


def _sequence_parallel(config: DictConfig, engine: str) -> int:
    """Return how many processes share one row; the first name is deprecated, and wins in verl."""
    name, new = names(engine, "{0} fsdp_config.{0}".format("ulysses_sequence_parallel_size"))
    if (setting(config, name) or 1) == 1:
        name = new
    size, processes = setting(config, name) or 1, world_size(config)
    padding = "actor_rollout_ref.model.use_remove_padding"
    if size > 1 and not setting(config, padding):
        raise ConfigError(
            f"{name}={size} with {padding}=false: verl's sequence parallel takes rows without "
            f"padding only; set {padding}=true"
        )
    if processes % size:
        raise ConfigError(f"{name}={size} does not divide the {processes} trainer processes")
    return size


def _check_row_fits(config: DictConfig, name: str, limit: Any, parallel: int) -> None:
    prompt = setting(config, PROMPT_LENGTH)
    response = setting(config, f"{ROLLOUT}.response_length")
    if not is_whole(limit, 1) or limit * parallel < prompt + response:
        shared = f" x {parallel} (ulysses_sequence_parallel_size)" if parallel > 1 else ""
        raise ConfigError(
            f"{name}={limit}{shared} is below {PROMPT_LENGTH}={prompt} + "
            f"data.max_response_length={response} = {prompt + response} tokens: verl would stop at "
            f"the first row that long; give {-(-(prompt + response) // parallel)} or more"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep verl's output out of the summary."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def reference_and_critic(config: DictConfig) -> tuple[bool, bool]:
    """Return whether verl will build either; its import takes a second."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    with _quiet():
        return need_reference_policy(config), need_critic(config)


def _check_with_verl(config: DictConfig) -> None:
    """Run verl's checks, and name the settings that its message mentions."""
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    refusals = AssertionError, NotImplementedError, TypeError, ValueError, InstantiationException
    try:
        with _quiet():
            omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
            validate_config(config, *reference_and_critic(config))
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
