"""Refuse misspelt keys and values that spoil a run; name in one line all that has no effect."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra.utils import get_class
from omegaconf import DictConfig, ListConfig, OmegaConf

from recipe.hint.adapter.preflight.settings import (
    ACTOR,
    MODEL_NODE,
    REF,
    ROLLOUT,
    leaves,
    names,
    setting,
    text_of,
)
from recipe.hint.adapter.rewards import FUNCTION, KWARGS, MANAGER, grade_options, overlong_of
from recipe.hint.command.compose import flat_names, nearest
from recipe.hint.methods import Method
from recipe.hint.settings import HintSettings, method_defaults, unread_settings
from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.pool.processes import WorkerFactory
from recipe.verify.pool.workers import GRADE

# Settings inside verl's sections that its file does not list: ours, what verl 0.9.1 reads all the
# same (`.get("...")`), and fields of its dataclasses that the presets give.
BESIDE_VERLS = (
    *("preflight_only", "model_engine", "trainer.method", "trainer.eval_only", "data.solution_key"),
    *(f"trainer.{name}" for name in method_defaults().get("trainer", ())),
    *names("data", "cache_dir chat_template_func filter_prompts need_tools_kwargs"),
    *names("trainer", "remove_previous_ckpt_in_save wandb_proxy"),
    *names(ROLLOUT, "enable_sleep_mode agent.agent_loop_manager_class"),
    *(f"{name}.mixed_precision" for name in (f"{ACTOR}.fsdp_config", f"{REF}.fsdp_config")),
    *("critic.fsdp.mixed_precision", f"{KWARGS}.max_resp_len"),
    *names(f"{KWARGS}.overlong_buffer_cfg", "enable len penalty_factor log"),
)
# Sections in verl's file whose keys belong to somebody else; `hint` has dataclasses of its own.
OPEN = (
    *("hint", "ray_kwargs.ray_init", "transfer_queue", f"{ROLLOUT}.engine_kwargs"),
    *("distillation.teacher_models", f"{FUNCTION}.reward_kwargs"),
)
# verl's default may be of another type than a value that it takes.
_OTHERWISE_TYPED = ("reshard_after_forward", "rollout_is_threshold")

_OWN_REWARD = "rewards come from hint.verify or your function in reward.custom_reward_function"
# Values that spoil a run: a setting -> what may be given, and why nothing else.
_ALLOWED: dict[str, tuple[tuple[Any, ...], str]] = {
    "trainer.device": (("cuda", "cpu"), ""),
    "trainer.v1.trainer_mode": (("sync", "colocate_async", "separate_async"), ""),
    "trainer.resume_mode": (("auto", "disable", "resume_path"), ""),
    f"{ROLLOUT}.name": (("vllm",), ""),
    f"{ACTOR}.strategy": (("fsdp", "fsdp2"), ""),
    "model_engine": (("dp",), "the trainer is FSDP"),
    "algorithm.filter_groups.metric": (("reward", "acc"), "no row carries another"),
    MANAGER: (("naive", "dapo"), _OWN_REWARD),
    "reward.reward_manager.source": (("register",), _OWN_REWARD),
    "reward.reward_model.enable": ((False,), _OWN_REWARD),
    "reward_model.enable": ((False,), _OWN_REWARD),
    "custom_reward_function.path": ((), f"verl has moved it to {FUNCTION}.path"),
    "data.prompt_key": (("prompt",), "prompts are in the column `prompt` (docs/data.md)"),
    f"{ROLLOUT}.multi_turn.enable": ((False,), "no agent loop or tool of verl's runs"),
    f"{ROLLOUT}.enable_rollout_routing_replay": ((False,), "no expert routes are returned"),
    f"{ROLLOUT}.disaggregation.enabled": ((False,), "a group goes to one replica"),
    "trainer.remove_previous_ckpt_in_save": (
        (False,),
        "a kill during the save would leave no checkpoint; max_actor_ckpt_to_keep=2 keeps two",
    ),
    **dict.fromkeys(
        (f"{ACTOR}.checkpoint.async_save", "critic.checkpoint.async_save"),
        ((False,), "a checkpoint is marked COMPLETE when verl's call returns"),
    ),
    "algorithm.kl_ctrl.type": (("fixed",), "an adapted coefficient is in no checkpoint"),
    "distillation.enabled": ((False,), "no teacher's log-probabilities are stored"),
}
_KLS = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3")  # with a + the gradient is another's
# Bounds of sampling, of which the lower one is left out for the rollouts: they are to differ.
_RANGES = {
    f"{ROLLOUT}.temperature": (1e-9, 1e9),
    f"{ROLLOUT}.val_kwargs.temperature": (0, 1e9),
    **dict.fromkeys(names(ROLLOUT, "top_p val_kwargs.top_p"), (1e-9, 1)),
}

# Beginnings of names that nothing in verl's V1 trainers, its FSDP engine or this recipe reads ...
_UNREAD = (
    *names("data", "tool_config_path function_tool_path reward_fn_key return_raw_input_ids"),
    *names("data", "truncation return_full_prompt"),
    *names(f"{ROLLOUT}.agent", "default_agent_loop agent_loop_config_path custom_async_server."),
    *names(ROLLOUT, "multi_turn. do_sample val_kwargs.do_sample trace.backend trace.token2text"),
    *names(ROLLOUT, "over_sample_rate multi_stage_wake_up full_determinism ignore_eos"),
    *names(ROLLOUT, "repetition_penalty"),
    *names(ACTOR, "grad_clip freeze_vision_tower use_prefix_grouper optim.total_training_steps"),
    *names("critic", "grad_clip forward_micro_batch_size_per_gpu ppo_max_token_len_per_gpu"),
    *names("critic", "use_dynamic_bsz ppo_micro_batch_size ulysses_sequence_parallel_size"),
    *names("critic", "optim.total_training_steps"),
    *names("trainer", "balance_batch esi_redundant_time default_hdfs_dir use_v1"),
    *("algorithm.use_pf_ppo", "algorithm.pf_ppo.", "skip.rollout.", f"{MODEL_NODE}.lora."),
    *("actor_rollout_ref.nccl_timeout", "ray_kwargs.timeline_json_file"),
    *("reward.", "custom_reward_function.", "reward_model.", "sandbox_fusion."),
)
# ... and the exceptions from it.
_READ = (
    *(MANAGER, *names(FUNCTION, "path name reward_kwargs"), f"{KWARGS}.max_resp_len"),
    *names(f"{KWARGS}.overlong_buffer_cfg", "enable len penalty_factor"),
    f"{MODEL_NODE}.lora.merge",
)
_CORRECTION = "algorithm.rollout_correction"
# The beginning of a name -> what must be set for verl to read it ...
_READ_WITH = {
    **dict.fromkeys(names(ACTOR, "kl_loss_coef kl_loss_type"), f"{ACTOR}.use_kl_loss"),
    **dict.fromkeys(names("algorithm", "kl_ctrl. kl_penalty"), "algorithm.use_kl_in_reward"),
    f"{_CORRECTION}.rollout_is_": f"{_CORRECTION}.rollout_is",
    f"{_CORRECTION}.rollout_rs_threshold": f"{_CORRECTION}.rollout_rs",
    **dict.fromkeys(
        names("algorithm.filter_groups", "metric max_num_gen_batches max_inflight_gen_batches"),
        "algorithm.filter_groups.enable",
    ),
}
# ... or must not: rows are packed by their tokens then.
_READ_WITHOUT = {
    f"{ACTOR}.ppo_micro_batch_size": f"{ACTOR}.use_dynamic_bsz",
    f"{ROLLOUT}.log_prob_micro_batch_size": f"{ROLLOUT}.log_prob_use_dynamic_bsz",
    f"{REF}.log_prob_micro_batch_size": f"{REF}.log_prob_use_dynamic_bsz",
}
# What a method with credit of its own does not read, and its critic neither.
_NOT_OF_OWN_CREDIT = names("algorithm", "adv_estimator norm_adv_by_std_in_grpo gamma lam")
_NOT_OF_OWN_CRITIC = names(
    "critic", "ppo_mini_batch_size loss_agg_mode loss_scale_factor cliprange_value"
)
_NOT_OF_UTTERANCES = names("critic", "ppo_epochs shuffle data_loader_seed")
_CONTENTS = ("model", "optimizer", "extra")  # of a checkpoint
_START_LIMIT_S = 120.0


def check_keys(config: DictConfig) -> None:
    """Refuse a key that neither verl nor this recipe reads, ``no`` for false, text for a number.

    A mapping that is empty or null in verl's file belongs to another program (vLLM's arguments, the
    model's configuration). In a section with a dataclass of verl's, its fields are known too.
    """
    known = _known()
    found: Any = OmegaConf.to_container(config, resolve=False)
    for key in found["trainer"]["v1"]["sync"] or ():  # empty in verl's file, and no one else's
        raise ConfigError(f"trainer.v1.sync.{key}: mode sync has no settings of its own; drop it")
    for name, target in _unknown(found, known):
        section, _, key = name.rpartition(".")
        cls = get_class(target) if target else None  # its import takes seconds
        fields = {item.name for item in dataclasses.fields(cls)} if cls else set()  # pyright: ignore[reportArgumentType]
        if key in fields:
            continue
        others = [*names(section, " ".join(fields)), *flat_names({"hint": found["hint"]})]
        meant = nearest(name, [*flat_names(known), *others])
        raise ConfigError(
            f"{name} is a key that neither verl nor this recipe reads"
            f"{f'; did you mean {meant}?' if meant else '; drop it'}"
        )
    for name, default in leaves(known):
        value = setting(config, name) if isinstance(default, bool | int | float) else None
        if value is None or name.startswith(OPEN) or name.endswith(_OTHERWISE_TYPED):
            continue
        if isinstance(default, bool) and not isinstance(value, bool):
            raise ConfigError(f"{name}={value!r} must be true or false")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(default, bool) and not is_number:
            raise ConfigError(f"{name}={value} must be a number")


def check_values(config: DictConfig) -> None:
    """Refuse values that fail or spoil a run after its start."""
    allowed = dict(_ALLOWED)
    if not setting(config, "trainer.eval_only"):
        from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

        kinds = (*_KLS, *(f"{each}+" for each in _KLS))
        allowed |= dict.fromkeys((f"{ACTOR}.kl_loss_type", "algorithm.kl_penalty"), (kinds, ""))
        if not setting(config, f"{MODEL_NODE}.external_lib"):  # it may register more
            allowed["algorithm.adv_estimator"] = (tuple(sorted(ADV_ESTIMATOR_REGISTRY)), "")
            loss = f"{ACTOR}.policy_loss.loss_mode"
            allowed[loss] = (tuple(sorted(POLICY_LOSS_REGISTRY)), "")
    for name, (choices, why) in allowed.items():
        value = setting(config, name)
        if value is not None and value not in choices:
            told = f"choose one of {', '.join(map(text_of, choices))}" if choices else "drop it"
            raise ConfigError(
                f"{name}={text_of(value)} is not supported{f': {why}' if why else ''}; {told}"
            )
    for name, (low, high) in _RANGES.items():
        value = setting(config, name)
        if not isinstance(value, int | float) or not low <= value <= high:
            bounds = f"{'above 0' if low else 'of at least 0'}{' and at most 1' * (high == 1)}"
            raise ConfigError(f"{name}={value} must be a number {bounds}")
    chunked = f"{ROLLOUT}.enable_chunked_prefill"
    if setting(config, "trainer.device") == "cpu" and setting(config, chunked):
        raise ConfigError(
            f"{chunked}=true does not work with trainer.device=cpu: vLLM cannot rewind the seed of "
            f"a request there; set it to false"
        )


def check_reward(config: DictConfig, settings: HintSettings) -> None:
    """Check the over-long penalty, and load the user's own reward function as the run will."""
    overlong_of(config)
    options = grade_options(settings.verify, config)
    if not options.function_path:
        return
    factory = WorkerFactory(GRADE, options, _START_LIMIT_S)
    try:
        factory.check()
    except VerifierError as problem:
        raise ConfigError(f"{FUNCTION}.path={options.function_path}: {problem}") from problem
    finally:
        factory.close()


def warnings_of(
    config: DictConfig,
    given: Iterable[str],
    settings: HintSettings,
    method: Method,
    *,
    has_critic: bool,
) -> list[str]:
    """Return one warning that names all settings given without effect, and one of checkpoints.

    Args:
        config: The run's, resolved.
        given: Names of the command line.
        settings: The ``hint:`` node.
        method: The run's.
        has_critic: Whether there is one.
    """
    found = {
        name: value for each in given for name, value in _values(config, each) if value is not None
    }
    unread = unread_settings(str(setting(config, "trainer.method")), found, settings)
    idle = [
        f"{name}={text_of(value)}"
        for name, value in found.items()
        if name in unread or _is_idle(config, name, method, has_critic=has_critic)
    ]
    lines = [f"without effect in this run: {', '.join(idle)}"] if idle else []
    for section in (f"{ACTOR}.checkpoint", *["critic.checkpoint"] * has_critic):
        for name in names(section, "save_contents load_contents"):
            value = setting(config, name)
            kept = list(value) if isinstance(value, list | ListConfig) else []
            if missing := [each for each in _CONTENTS if each not in kept]:
                lines.append(f"{name}={value}: without {', '.join(missing)} no run can be resumed")
    return lines


def _values(config: DictConfig, name: str) -> list[tuple[str, Any]]:
    """Return the settings that one override gives: a section may be given as a mapping."""
    value = setting(config, name)
    if isinstance(value, DictConfig) and value:
        return list(leaves(OmegaConf.to_container(value), f"{name}."))
    return [(name, value)]


def _is_idle(config: DictConfig, name: str, method: Method, *, has_critic: bool) -> bool:
    """Return whether a setting of verl's changes nothing beside the others."""
    if name.startswith(_READ) or name in _ALLOWED:
        return False
    idle = list(_UNREAD)
    idle += [head for head, switch in _READ_WITH.items() if not setting(config, switch)]
    idle += [head for head, switch in _READ_WITHOUT.items() if setting(config, switch)]
    mode = setting(config, "trainer.v1.trainer_mode")
    others = {"colocate_async", "separate_async"} - {mode}
    idle += [f"trainer.v1.{other}." for other in others]
    if not has_critic and name != "critic.enable":
        idle.append("critic.")
    if not any(setting(config, each) for each in names(MODEL_NODE, "lora_rank lora_adapter_path")):
        idle += names(MODEL_NODE, "lora_alpha target_modules exclude_modules")
    if setting(config, "trainer.resume_mode") != "resume_path":
        idle.append("trainer.resume_from_path")
    if method.credit is not None:
        idle += _NOT_OF_OWN_CREDIT
        idle += _NOT_OF_OWN_CRITIC if method.needs.critic else ()
        idle += _NOT_OF_UTTERANCES if method.needs.utterance_critic else ()
    low, high = (setting(config, f"{ACTOR}.clip_ratio_{end}") for end in ("low", "high"))
    is_replaced = name == f"{ACTOR}.clip_ratio" and None not in (low, high)
    return is_replaced or name.startswith(tuple(idle))


@functools.cache
def _known() -> dict[str, Any]:
    """Return verl's settings with their defaults, and ours among them."""
    file = Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml"
    config = OmegaConf.load(file)
    known: Any = OmegaConf.to_container(config, resolve=False)
    for name, value in leaves(OmegaConf.to_container(config, resolve=False)):
        if isinstance(value, str) and "${" in value and not name.startswith(OPEN):
            _put(known, name, OmegaConf.select(config, name))
    for name in BESIDE_VERLS:
        _put(known, name, None)
    for name in ("preflight_only", "trainer.eval_only", "critic.enable"):
        _put(known, name, False)
    return known


def _put(node: dict[str, Any], name: str, value: Any) -> None:
    *sections, key = name.split(".")
    for section in sections:
        node = node.setdefault(section, {})
    node[key] = value


def _unknown(
    found: Mapping[str, Any], known: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield keys that verl's file does not have, each with the dataclass of its section."""
    target = found.get("_target_") or ""  # of the composed section: it may be another engine's
    for key, value in found.items():
        name = f"{prefix}{key}"
        if name in OPEN:
            continue
        if key not in known:
            yield name, target
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], f"{name}.")
