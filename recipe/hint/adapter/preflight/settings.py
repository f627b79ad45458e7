"""Check settings: keys, values, sizes that agree, and the loss that the method is defined by.

A check refuses what fails or spoils a run after minutes; what verl refuses itself within a minute,
in a sentence, is left to verl. What merely has no effect is named in one warning.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf

from recipe.hint.command.compose import CONFIG_DIR, flat_names, nearest
from recipe.hint.methods import Method
from recipe.hint.settings import HintSettings, method_defaults, unread_settings
from recipe.run.config import (
    ACTOR,
    FUNCTION,
    GROUP,
    KWARGS,
    MINI,
    MODEL_NODE,
    PROMPT_LENGTH,
    REF,
    ROLLOUT,
    check,
    demand,
    is_separate,
    leaves,
    names,
    setting,
    text_of,
    world_size,
)
from recipe.run.errors import ConfigError, one_line
from recipe.run.typed import check_finite

_BUFFER = f"{KWARGS}.overlong_buffer_cfg"
_ESTIMATOR, _FILTER = "algorithm.adv_estimator", "algorithm.filter_groups.enable"
_BYPASS = "algorithm.rollout_correction.bypass_mode"
_ULYSSES = "ulysses_sequence_parallel_size"
# verl's estimators that compare a response with nothing of its group, and those that give a group
# of equal rewards advantages: they whiten over the batch.
_WITHOUT_GROUP = ("gae", "reinforce_plus_plus")
AGAINST_ALL = (*_WITHOUT_GROUP, "reinforce_plus_plus_baseline")

# Settings inside verl's sections that its file does not list: ours, what verl 0.9.1 reads all the
# same (`.get("...")`), and fields of its dataclasses that the presets give.
BESIDE_VERLS = (
    *("preflight_only", "model_engine", "trainer.method", "trainer.eval_only", "data.solution_key"),
    *names("data", "cache_dir chat_template_func filter_prompts need_tools_kwargs"),
    *names("trainer", "remove_previous_ckpt_in_save wandb_proxy"),
    *names(ROLLOUT, "enable_sleep_mode agent.agent_loop_manager_class repetition_penalty"),
    *names(f"{ACTOR}.fsdp_config", "mixed_precision"),
    *(f"{REF}.fsdp_config.mixed_precision", "critic.fsdp.mixed_precision"),
    "critic.ppo_infer_max_token_len_per_gpu",
    f"{FUNCTION}.reward_kwargs",  # the arguments of a user's function: any keys
    *(f"{KWARGS}.max_resp_len", *names(_BUFFER, "enable len penalty_factor log")),
)
# Sections in verl's file whose keys belong to somebody else; `hint` has dataclasses of its own.
_OPEN = (
    *("hint", "hydra", "ray_kwargs.ray_init", "transfer_queue", f"{ROLLOUT}.engine_kwargs"),
    "distillation.teacher_models",
)
# verl's default may be of another type than a value that it takes.
_OTHERWISE_TYPED = ("reshard_after_forward", "rollout_is_threshold")
# What a value may be -> the settings, of which another value spoils the run or fails late.
_ALLOWED: dict[tuple[Any, ...], tuple[str, ...]] = {
    ("cuda", "cpu"): ("trainer.device",),
    ("sync", "colocate_async", "separate_async"): ("trainer.v1.trainer_mode",),
    ("auto", "disable", "resume_path"): ("trainer.resume_mode",),
    ("vllm",): (f"{ROLLOUT}.name",),
    ("fsdp", "fsdp2"): (f"{ACTOR}.strategy",),
    ("reward", "acc"): ("algorithm.filter_groups.metric",),  # no row carries another
    ("naive", "dapo"): ("reward.reward_manager.name",),  # hint.verify or a function gives rewards
    ("register",): ("reward.reward_manager.source",),
    ("prompt",): ("data.prompt_key",),
    ("fixed",): ("algorithm.kl_ctrl.type",),  # an adapted coefficient is in no checkpoint
    (False,): (
        *("reward.reward_model.enable", "reward_model.enable", "distillation.enabled"),
        # No agent loop or tool of verl's runs, and a group goes to one replica.
        *names(ROLLOUT, "multi_turn.enable disaggregation.enabled enable_rollout_routing_replay"),
        # A kill during the save would leave no checkpoint, or one that looks whole.
        "trainer.remove_previous_ckpt_in_save",
        *(f"{section}.checkpoint.async_save" for section in (ACTOR, "critic")),
    ),
    (): ("custom_reward_function.path",),  # verl has moved it to reward.custom_reward_function
}
_KLS = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3")  # with a + the gradient is another's
# What is divided by, or counts.
_WHOLE = (
    *names("data", "train_batch_size max_prompt_length max_response_length"),
    *(MINI, GROUP, PROMPT_LENGTH, f"{ROLLOUT}.val_kwargs.n"),
    *names("trainer", "nnodes n_gpus_per_node total_epochs total_training_steps"),
)

# Beginnings of names that nothing in verl's V1 trainers, its FSDP engine or this recipe reads ...
_UNREAD = (
    *names("data", "tool_config_path function_tool_path reward_fn_key return_raw_input_ids"),
    *names("data", "truncation return_full_prompt"),
    *names(ROLLOUT, "agent.default_agent_loop agent.agent_loop_config_path multi_turn. do_sample"),
    *names(ROLLOUT, "val_kwargs.do_sample ignore_eos repetition_penalty"),
    *names(ACTOR, "grad_clip optim.total_training_steps"),
    *names("critic", "grad_clip ppo_max_token_len_per_gpu use_dynamic_bsz ppo_micro_batch_size"),
    *names("trainer", "balance_batch default_hdfs_dir use_v1"),
    *("algorithm.use_pf_ppo", "algorithm.pf_ppo.", f"{MODEL_NODE}.lora."),
    *("reward.", "custom_reward_function.", "reward_model."),
)
# ... and the exceptions from it.
_READ = (
    *(*names("reward.reward_manager", "name source"), "reward.reward_model.enable", FUNCTION),
    *(f"{MODEL_NODE}.lora.merge", f"{ROLLOUT}.multi_turn.enable", KWARGS),
)
# A setting -> beginnings of names that are read where it is set ...
_READ_WITH = {
    f"{ACTOR}.use_kl_loss": names(ACTOR, "kl_loss_coef kl_loss_type"),
    "algorithm.use_kl_in_reward": names("algorithm", "kl_ctrl. kl_penalty"),
    _FILTER: names("algorithm.filter_groups", "metric max_"),
    f"{MODEL_NODE}.lora_rank": names(MODEL_NODE, "lora_alpha target_modules exclude_modules"),
}
# ... or where it is not: rows are packed by their tokens otherwise.
_READ_WITHOUT = {
    f"{ACTOR}.use_dynamic_bsz": f"{ACTOR}.ppo_micro_batch_size",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz": f"{ROLLOUT}.log_prob_micro_batch_size",
    f"{REF}.log_prob_use_dynamic_bsz": f"{REF}.log_prob_micro_batch_size",
}


@dataclass(frozen=True)
class Sizes:
    """Numbers of a training: prompts of a batch, a mini-batch, and a share between two syncs."""

    batch: int
    mini: int
    num_shares: int
    group: int
    row: int  # tokens of the longest prompt and response
    mode: str

    @property
    def share(self) -> int:
        return self.batch // self.num_shares


def read_sizes(config: DictConfig) -> Sizes:
    """Read the sizes of a run; each must be a whole number of at least 1."""
    for name in _WHOLE:
        value = setting(config, name)
        is_left_out = value is None and name.endswith("_steps")
        is_fine = is_left_out or (isinstance(value, int) and value >= 1)
        check(is_fine, f"{name}={value} must be a whole number of at least 1")
    mode = setting(config, "trainer.v1.trainer_mode")
    return Sizes(
        batch=setting(config, "data.train_batch_size"),
        mini=setting(config, MINI),
        num_shares=setting(config, f"trainer.v1.{mode}.parameter_sync_step") or 1,
        group=setting(config, GROUP),
        row=setting(config, PROMPT_LENGTH) + setting(config, f"{ROLLOUT}.response_length"),
        mode=mode,
    )


def check_keys(config: DictConfig) -> None:
    """Refuse a key that neither verl nor this recipe reads, and a value of another type.

    A mapping that is empty or null in verl's file belongs to another program (vLLM's arguments, the
    model's configuration). ``no`` is a text, which verl would take for true.
    """
    demand(config, "model_engine", ("dp",))  # another one's settings have other names
    found: Any = OmegaConf.to_container(config, resolve=False)
    check_finite(found, "")
    known = _known()
    for name in _unknown(found, known):
        meant = nearest(name, [*flat_names(known), *flat_names({"hint": found["hint"]})])
        hint = f"did you mean {meant}?" if meant else "drop it"
        raise ConfigError(f"{name} is a key that neither verl nor this recipe reads; {hint}")
    for name, default in leaves(known):
        value = setting(config, name) if isinstance(default, bool | int | float) else None
        if value is None or name.startswith(_OPEN) or name.endswith(_OTHERWISE_TYPED):
            continue
        is_same = isinstance(default, bool) == isinstance(value, bool)
        kind = "true or false" if isinstance(default, bool) else "a number"
        check(is_same and not isinstance(value, str), f"{name}={value} must be {kind}")


@functools.cache
def _known() -> dict[str, Any]:
    """Return verl's settings and ours with their defaults."""
    verls = OmegaConf.load(Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml")
    ours = OmegaConf.load(CONFIG_DIR / "hint_trainer.yaml")
    beside = OmegaConf.create()
    for name in BESIDE_VERLS:
        OmegaConf.update(beside, name, None, force_add=True)
    known: Any = OmegaConf.merge(beside, verls, {"trainer": method_defaults()["trainer"]}, ours)
    OmegaConf.update(known, "critic.enable", False, force_add=True)
    return OmegaConf.to_container(known, resolve=False)


def _unknown(found: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in found.items():
        name = f"{prefix}{key}"
        if key not in known:
            yield name
        elif isinstance(known[key], Mapping) and known[key]:
            is_section = isinstance(value, Mapping)
            told = f"{name}={value!r} replaces a whole section; set the keys in it, like "
            check(is_section or prefix, f"{told}{name}.KEY=VALUE")
            if is_section and name not in _OPEN:
                yield from _unknown(value, known[key], f"{name}.")


def check_values(config: DictConfig) -> None:
    """Refuse values that fail or spoil a run after its start."""
    allowed = {name: choices for choices, several in _ALLOWED.items() for name in several}
    if not setting(config, "trainer.eval_only"):
        from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

        kinds = (*_KLS, *(f"{each}+" for each in _KLS))
        allowed |= dict.fromkeys((f"{ACTOR}.kl_loss_type", "algorithm.kl_penalty"), kinds)
        if not setting(config, f"{MODEL_NODE}.external_lib"):  # it may register more
            allowed[_ESTIMATOR] = tuple(sorted(ADV_ESTIMATOR_REGISTRY))
            allowed[f"{ACTOR}.policy_loss.loss_mode"] = tuple(sorted(POLICY_LOSS_REGISTRY))
    if setting(config, "trainer.device") == "cpu":
        # vLLM cannot rewind the seed of a request there.
        allowed[f"{ROLLOUT}.enable_chunked_prefill"] = (False,)
    for name, choices in allowed.items():
        demand(config, name, choices)
    # Rollouts are to differ; a validation may be greedy.
    check(
        setting(config, f"{ROLLOUT}.temperature") > 0,
        f"{ROLLOUT}.temperature=0 would make the responses of a group the same; give more",
    )


def idle_warning(
    config: DictConfig,
    given: Iterable[str],
    settings: HintSettings,
    method: Method,
    *,
    has_critic: bool,
) -> list[str]:
    """Return one warning that names all settings ``given`` without effect; else nothing."""
    found: dict[str, Any] = {}
    for name in given:
        value = setting(config, name)
        is_section = isinstance(value, DictConfig) and value  # given as a mapping
        found |= dict(leaves(value, f"{name}.")) if is_section else {name: value}
    unread = [*_UNREAD]
    for switch, heads in _READ_WITH.items():
        unread += () if setting(config, switch) else heads
    unread += [head for switch, head in _READ_WITHOUT.items() if setting(config, switch)]
    modes = {"colocate_async", "separate_async"} - {setting(config, "trainer.v1.trainer_mode")}
    unread += [f"trainer.v1.{other}." for other in modes]
    if not has_critic:
        unread += [f"critic.{key}" for key in config.critic if key != "enable"]
    if setting(config, "trainer.resume_mode") != "resume_path":
        unread.append("trainer.resume_from_path")
    if method.credit is not None:
        unread += names("algorithm", "adv_estimator norm_adv_by_std_in_grpo gamma lam")
    idle = {*unread_settings(str(setting(config, "trainer.method")), found, settings)}
    idle |= {
        each for each in found if each.startswith(tuple(unread)) and not each.startswith(_READ)
    }
    told = [f"{name}={text_of(value)}" for name, value in found.items() if name in idle]
    told = [each for each in told if not each.endswith("=None")]
    return [f"without effect in this run: {', '.join(told)}"] if told else []


def reference_and_critic(config: DictConfig) -> tuple[bool, bool]:
    """Return whether verl will build either; its import takes a second."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    with _quiet():
        return need_reference_policy(config), need_critic(config)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep verl's output out of the summary."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_sizes(config: DictConfig, sizes: Sizes) -> None:
    """Check what verl asserts on after the first rollouts, or what would waste all of them.

    ``config`` is the run's, with the models that its method asks for.
    """
    if is_separate(config):
        _check_separate(config, sizes)
    given, mini = f"data.train_batch_size={sizes.batch}", f"{MINI}={sizes.mini}"
    steps = f"trainer.v1.{sizes.mode}.parameter_sync_step={sizes.num_shares}"
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
        _check_row_fits(config, name, sizes, setting(config, f"critic.fsdp.{_ULYSSES}") or 1)
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
    transfer = f"{ROLLOUT}.checkpoint_engine"
    for name in names(ROLLOUT, "nnodes n_gpus_per_node"):
        told = f"{name}={setting(config, name)}: separate_async needs devices for rollouts alone"
        check(setting(config, name), told)
    backend = setting(config, f"{transfer}.backend")
    module = setting(config, f"{transfer}.custom_backend_module")
    check(
        backend != "naive" and (backend != "gloo" or module),
        f"{transfer}.backend={backend} with custom_backend_module={module} cannot send weights to "
        f"other devices; give {transfer}.backend=nccl, or on a CPU gloo and "
        f"{transfer}.custom_backend_module=recipe.laptop.transfer",
    )
    if any(setting(config, name) for name in names(MODEL_NODE, "lora_rank lora_adapter_path")):
        why = "with lora_rank in separate_async: verl would send the model without its adapter"
        demand(config, f"{MODEL_NODE}.lora.merge", (True,), why)
    check(
        sizes.mini == sizes.share,
        f"{MINI}={sizes.mini} must be data.train_batch_size={sizes.batch} / "
        f"parameter_sync_step={sizes.num_shares} in separate_async; give {MINI}={sizes.share}",
    )
    is_on_gpus = setting(config, "trainer.device") == "cuda"
    if is_on_gpus and sizes.num_shares > 1 and not setting(config, _BYPASS):
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
    node = config.actor_rollout_ref
    try:
        with _quiet():
            for each in (node.rollout, node.actor, *[config.critic] * uses_critic):
                omega_conf_to_dataclass(each)
            validate_config(config, uses_reference, uses_critic)
    except refusals as error:
        message = one_line(error.__cause__ or error)
        raise ConfigError(f"verl refuses a setting: {message or 'without a reason'}") from error


def check_method(config: DictConfig, method: Method, sizes: Sizes) -> None:
    """Refuse values of verl's settings that do not give the loss that the method is defined by."""
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
        compares = method.needs.group if method.credit is not None else compares
        check(
            not (compares or setting(config, _FILTER)),
            f"{GROUP}=1 must be at least 2: {who} with {_ESTIMATOR}={estimator} compares the "
            f"responses of one group",
        )
    method.check_run(
        group_size=sizes.group,
        use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward"),
    )
    low = method.role_steps[0]
    told = f"{method.settings_node}.t_low={low} needs trainer.v1.trainer_mode=sync"
    check(not low or sizes.mode == "sync", f"{told}: phases mix in others")


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
