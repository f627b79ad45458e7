"""Check that sizes agree, and that verl's settings give the loss that the method is defined by."""

from __future__ import annotations

from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import Sizes, quiet
from recipe.hint.methods import Method
from recipe.run.config import (
    ACTOR,
    GROUP,
    MINI,
    MODEL_NODE,
    REF,
    ROLLOUT,
    check,
    demand,
    is_separate,
    names,
    setting,
    world_size,
)
from recipe.run.errors import ConfigError, one_line

_ESTIMATOR, _FILTER = "algorithm.adv_estimator", "algorithm.filter_groups.enable"
_ULYSSES = "ulysses_sequence_parallel_size"
_BYPASS = "algorithm.rollout_correction.bypass_mode"
# verl's estimators that compare a response with nothing of its group, and those that give a group
# of equal rewards advantages: they whiten over the batch.
_WITHOUT_GROUP = ("gae", "reinforce_plus_plus")
AGAINST_ALL = (*_WITHOUT_GROUP, "reinforce_plus_plus_baseline")


def reference_and_critic(config: DictConfig) -> tuple[bool, bool]:
    """Return whether verl will build either; its import takes a second."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    with quiet():
        return need_reference_policy(config), need_critic(config)


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
    given, mini = f"data.train_batch_size={sizes.batch}", f"{MINI}={sizes.mini}"
    steps = f"trainer.v1.{sizes.mode}.parameter_sync_step={sizes.num_shares}"
    fetched = setting(config, "data.gen_batch_size") or sizes.batch
    # In other modes single prompts are fetched.
    is_whole = sizes.mode != "sync" or sizes.batch % fetched == 0
    check(is_whole, f"data.gen_batch_size={fetched} must be a divisor of {given}")
    check(sizes.batch % sizes.num_shares == 0, f"{given} is not a multiple of {steps}")
    parts = f" / {steps}" if sizes.num_shares > 1 else ""
    share = f"{mini} must be a divisor of {sizes.share} ({given}{parts}; both count prompts)"
    check(sizes.share % sizes.mini == 0, share)
    uses_reference, uses_critic = reference_and_critic(config)
    passes = [(ACTOR, f"{ACTOR}.", "ppo_"), (ACTOR, f"{ROLLOUT}.log_prob_", "")]
    passes += [(REF, f"{REF}.log_prob_", "")] if uses_reference else []
    for engine, head, kind in passes:
        shared = [setting(config, f"{engine}{part}.{_ULYSSES}") for part in ("", ".fsdp_config")]
        parallel = max(each or 1 for each in shared)
        ranks = max(1, world_size(config) // parallel)
        rows, rest = divmod(sizes.mini * sizes.group, ranks)
        check(not rest, f"{mini} x {GROUP}={sizes.group} rows do not divide to {ranks} processes")
        if setting(config, f"{head}use_dynamic_bsz"):
            _check_row_fits(config, f"{head}{kind}max_token_len_per_gpu", sizes, parallel)
            continue
        name = f"{head}{kind}micro_batch_size_per_gpu"
        size = setting(config, name)
        told = f"{name}={size} must divide the {rows} rows that a process holds of a mini-batch"
        check(size and rows % size == 0, f"{told}; give a divisor, or {head}use_dynamic_bsz=true")
    name = "critic.ppo_infer_max_token_len_per_gpu"  # verl packs its updates by it too
    if uses_critic and setting(config, name):
        parallel = setting(config, f"critic.fsdp.{_ULYSSES}") or 1
        _check_row_fits(config, name, sizes, parallel)
    _check_with_verl(config, uses_reference, uses_critic)


def _check_row_fits(config: DictConfig, name: str, sizes: Sizes, parallel: int) -> None:
    limit = setting(config, name)
    check(
        isinstance(limit, int) and limit * parallel >= sizes.row,
        f"{name}={limit} x {parallel} ({_ULYSSES}) is below a prompt and its response = "
        f"{sizes.row} tokens: verl would stop at the first row that long; give "
        f"{-(-sizes.row // parallel)} or more",
    )


def _check_separate(config: DictConfig, sizes: Sizes) -> None:
    """Check mode separate_async: devices for rollouts alone, and a way for the weights."""
    transfer, device = f"{ROLLOUT}.checkpoint_engine", setting(config, "trainer.device")
    for name in names(ROLLOUT, "nnodes n_gpus_per_node"):
        check(
            setting(config, name),
            f"{name}={setting(config, name)}: separate_async needs devices for the rollouts alone",
        )
    backend = setting(config, f"{transfer}.backend")
    module = setting(config, f"{transfer}.custom_backend_module")
    own = f"gloo {transfer}.custom_backend_module=recipe.laptop.transfer"
    check(
        backend != "naive" and (backend != "gloo" or module),
        f"{transfer}.backend={backend} with custom_backend_module={module} cannot send weights to "
        f"other devices; give {transfer}.backend={own if device == 'cpu' else 'nccl'}",
    )
    if any(setting(config, name) for name in names(MODEL_NODE, "lora_rank lora_adapter_path")):
        why = "with lora_rank in separate_async: verl would send the model without its adapter"
        demand(config, f"{MODEL_NODE}.lora.merge", (True,), why)
    check(
        sizes.mini == sizes.share,
        f"{MINI}={sizes.mini} must be data.train_batch_size={sizes.batch} / "
        f"parameter_sync_step={sizes.num_shares} in separate_async; give {MINI}={sizes.share}",
    )
    if device == "cuda" and sizes.num_shares > 1 and not setting(config, _BYPASS):
        # verl writes the weights that a step began with into the shards, where the next pass must
        # see them and nothing else write.
        why = "where verl puts back the weights of a step's beginning (parameter_sync_step above 1)"
        demand(config, f"{ACTOR}.fsdp_config.reshard_after_forward", (True,), why)
        demand(config, f"{ACTOR}.fsdp_config.param_offload", (False,), why)
        if world_size(config) > 1:
            demand(config, f"{ACTOR}.strategy", ("fsdp2",), why)


def _check_with_verl(config: DictConfig, uses_reference: bool, uses_critic: bool) -> None:
    """Run verl's own checks."""
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    refusals = AssertionError, NotImplementedError, TypeError, ValueError, InstantiationException
    rollout = config.actor_rollout_ref
    try:
        with quiet():
            for node in (rollout.rollout, rollout.actor, *[config.critic] * uses_critic):
                omega_conf_to_dataclass(node)
            validate_config(config, uses_reference, uses_critic)
    except refusals as error:
        message = one_line(error.__cause__ or error)
        raise ConfigError(f"verl refuses a setting: {message or 'without a reason'}") from error


def check_method(config: DictConfig, method: Method, sizes: Sizes) -> None:
    """Refuse values of verl's settings that do not give the loss that the method is defined by.

    Raises:
        ConfigError: Naming the setting.
    """
    who, estimator = f"trainer.method={config.trainer.method}", setting(config, _ESTIMATOR)
    if method.credit is not None:
        for name, (choice, why) in _own_needs(method).items():
            demand(config, name, choice, f"with {who}: {why}")
    elif method.needs.dropped_groups:
        check(
            estimator not in AGAINST_ALL,
            f"{_ESTIMATOR}={estimator} does not work with {who}: a group that is dropped has equal "
            f"rewards, and this estimator compares them with more than the group",
        )
    if setting(config, "trainer.val_only"):
        return
    if sizes.group == 1:
        from verl.trainer.ppo.core_algos import AdvantageEstimator

        # One that a library of the user's registers may do without a group.
        compares = estimator in {each.value for each in AdvantageEstimator} - {*_WITHOUT_GROUP}
        if method.credit is not None:
            compares = method.needs.group
        check(
            not (compares or setting(config, _FILTER)),
            f"{GROUP}=1 must be at least 2: {who} with {_ESTIMATOR}={estimator} compares the "
            f"responses of one group",
        )
    method.check_run(
        group_size=sizes.group,
        use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward"),
        num_updates=sizes.share // sizes.mini,
    )


def _own_needs(method: Method) -> dict[str, tuple[tuple[Any, ...], str]]:
    """Return the values of verl's settings that a method with its own credit needs, and why."""
    kl, rows = "it has KL coefficients of its own", "a prompt has several rows, not always as many"
    needs: dict[str, tuple[tuple[Any, ...], str]] = {
        "algorithm.use_kl_in_reward": ((False,), kl),
        f"{ACTOR}.use_kl_loss": ((False,), kl),
        f"{ACTOR}.use_dynamic_bsz": ((True,), rows),
        _FILTER: ((False,), "verl would take all rows of a prompt for one group"),
    }
    if method.needs.reference:
        needs[f"{REF}.log_prob_use_dynamic_bsz"] = ((True,), rows)
    if method.needs.log_probs:
        needs[_BYPASS] = ((False,), "it reads the trainer's own log-probabilities")
    if method.credit and method.credit.weighs_tokens:
        needs[f"{ACTOR}.policy_loss.loss_mode"] = (("vanilla",), "it weighs each token")
    if method.needs.critic_rows:
        needs[f"{ACTOR}.entropy_coeff"] = ((0,), "the role that does not train would train")
    if method.needs.utterance_critic:
        updates = f"verl's schedule moves at each of {method.settings_node}.updates"
        needs["critic.optim.lr_scheduler_type"] = (("constant",), updates)
        needs["critic.optim.lr_warmup_steps_ratio"] = ((0.0,), updates)
        needs["critic.optim.lr_warmup_steps"] = ((-1, 0), updates)
    return needs


def check_phases(config: DictConfig, method: Method, sizes: Sizes, num_steps: int) -> None:
    """Refuse phases that do not fit the run's steps, or that its mode would mix.

    In asynchronous modes a prompt is sent ``num_warmup_batches`` steps before it trains, and keeps
    the phase of the step that sent it. The policy changes from step ``critic_warmup`` on.

    Raises:
        ConfigError: Naming the setting.
    """
    method.check_steps(num_steps)
    node, (name, first) = method.settings_node, method.first_phase
    low = method.role_steps[0]
    if sizes.mode != "sync":
        needs = f"{node}.t_low={low} needs trainer.v1.trainer_mode=sync: phases mix in others"
        check(not low, needs)
        lag = int(setting(config, f"trainer.v1.{sizes.mode}.num_warmup_batches") or 0)
        check(
            not first or not num_steps - lag <= first < num_steps,
            f"{node}.{name}={first} leaves no step of {num_steps} to what follows: prompts are "
            f"sampled {lag} steps before",
        )
    warmup = setting(config, "trainer.critic_warmup") or 0
    shortest = min(each for each in (num_steps, first, low) if each)
    told = f"trainer.critic_warmup={warmup} keeps the policy as it is for a phase of {shortest}"
    check(warmup <= shortest, f"{told} steps; give at most {shortest}")
