"""Read settings by their dotted names; refuse keys and values that fail or spoil a run."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    leaves,
    names,
    setting,
    text_of,
)
from recipe.run.errors import ConfigError
from recipe.run.typed import check_finite

_BUFFER = f"{KWARGS}.overlong_buffer_cfg"

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
    *(f"{KWARGS}.max_resp_len", *names(_BUFFER, "enable len penalty_factor log")),
)
# Sections in verl's file whose keys belong to somebody else; `hint` has dataclasses of its own.
_OPEN = (
    *("hint", "hydra", "ray_kwargs.ray_init", "transfer_queue", f"{ROLLOUT}.engine_kwargs"),
    *("distillation.teacher_models", f"{FUNCTION}.reward_kwargs"),
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
_WHOLE = (
    *names("data", "train_batch_size max_prompt_length max_response_length"),
    *(MINI, GROUP, PROMPT_LENGTH, f"{ROLLOUT}.response_length", f"{ROLLOUT}.val_kwargs.n"),
    *names("trainer", "nnodes n_gpus_per_node total_epochs"),
    *names(ROLLOUT, "tensor_model_parallel_size agent.num_workers"),
    "transfer_queue.backend.SimpleStorage.num_data_storage_units",
)
_WHOLE_OR_NULL = (
    *names("trainer", "total_training_steps max_actor_ckpt_to_keep max_critic_ckpt_to_keep"),
    *(f"{ROLLOUT}.max_model_len", "ray_kwargs.ray_init.num_cpus", "data.gen_batch_size"),
)

# Beginnings of names that nothing in verl's V1 trainers, its FSDP engine or this recipe reads ...
_UNREAD = (
    *names("data", "tool_config_path function_tool_path reward_fn_key return_raw_input_ids"),
    *names("data", "truncation return_full_prompt"),
    *names(ROLLOUT, "agent.default_agent_loop agent.agent_loop_config_path multi_turn. do_sample"),
    *names(ROLLOUT, "val_kwargs.do_sample over_sample_rate ignore_eos repetition_penalty"),
    *names(ACTOR, "grad_clip freeze_vision_tower use_prefix_grouper optim.total_training_steps"),
    *names("critic", "grad_clip forward_micro_batch_size_per_gpu ppo_max_token_len_per_gpu"),
    *names("critic", "use_dynamic_bsz ppo_micro_batch_size ulysses_sequence_parallel_size"),
    *names("trainer", "balance_batch esi_redundant_time default_hdfs_dir use_v1"),
    *("algorithm.use_pf_ppo", "algorithm.pf_ppo.", "sandbox_fusion.", f"{MODEL_NODE}.lora."),
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
    "algorithm.rollout_correction.rollout_is": ("algorithm.rollout_correction.rollout_is_",),
    "algorithm.rollout_correction.rollout_rs": ("algorithm.rollout_correction.rollout_rs_",),
    "algorithm.filter_groups.enable": names("algorithm.filter_groups", "metric max_"),
    f"{MODEL_NODE}.lora_rank": names(MODEL_NODE, "lora_alpha target_modules exclude_modules"),
}
# ... or where it is not: rows are packed by their tokens otherwise.
_READ_WITHOUT = {
    f"{ACTOR}.use_dynamic_bsz": f"{ACTOR}.ppo_micro_batch_size",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz": f"{ROLLOUT}.log_prob_micro_batch_size",
    f"{REF}.log_prob_use_dynamic_bsz": f"{REF}.log_prob_micro_batch_size",
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep verl's output out of the summary."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
    """Read the sizes of a run.

    Raises:
        ConfigError: If one is no whole number of at least 1.
    """
    for name in (*_WHOLE, *_WHOLE_OR_NULL):
        value = setting(config, name)
        if not is_whole(value) and not (value is None and name in _WHOLE_OR_NULL):
            raise ConfigError(f"{name}={value} must be a whole number of at least 1")
    mode = setting(config, "trainer.v1.trainer_mode")
    return Sizes(
        batch=setting(config, "data.train_batch_size"),
        mini=setting(config, MINI),
        num_shares=setting(config, f"trainer.v1.{mode}.parameter_sync_step") or 1,
        group=setting(config, GROUP),
        row=setting(config, PROMPT_LENGTH) + setting(config, f"{ROLLOUT}.response_length"),
        mode=mode,
    )


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


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
        raise ConfigError(
            f"{name} is a key that neither verl nor this recipe reads"
            f"{f'; did you mean {meant}?' if meant else '; drop it'}"
        )
    for name, default in leaves(known):
        value = setting(config, name) if isinstance(default, bool | int | float) else None
        if value is None or name.startswith(_OPEN) or name.endswith(_OTHERWISE_TYPED):
            continue
        if isinstance(default, bool) != isinstance(value, bool) or isinstance(value, str):
            kind = "true or false" if isinstance(default, bool) else "a number"
            raise ConfigError(f"{name}={value} must be {kind}")


@functools.cache
def _known() -> dict[str, Any]:
    """Return verl's settings and ours with their defaults."""
    verls = OmegaConf.load(Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml")
    ours = OmegaConf.load(CONFIG_DIR / "hint_trainer.yaml")
    beside = OmegaConf.create()
    for name in BESIDE_VERLS:
        OmegaConf.update(beside, name, None, force_add=True)
    known = OmegaConf.merge(beside, verls, {"trainer": method_defaults()["trainer"]}, ours)
    for name in ("preflight_only", "trainer.eval_only", "critic.enable"):
        OmegaConf.update(known, name, False, force_add=True)
    result: Any = OmegaConf.to_container(known, resolve=False)
    for name, value in leaves(OmegaConf.to_container(known, resolve=False)):
        if isinstance(value, str) and "${" in value and not name.startswith(_OPEN):
            *sections, key = name.split(".")
            node = functools.reduce(lambda node, part: node[part], sections, result)
            node[key] = OmegaConf.select(known, name)
    return result


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
            allowed["algorithm.adv_estimator"] = tuple(sorted(ADV_ESTIMATOR_REGISTRY))
            allowed[f"{ACTOR}.policy_loss.loss_mode"] = tuple(sorted(POLICY_LOSS_REGISTRY))
    if setting(config, "trainer.device") == "cpu":
        # vLLM cannot rewind the seed of a request there.
        allowed[f"{ROLLOUT}.enable_chunked_prefill"] = (False,)
    for name, choices in allowed.items():
        demand(config, name, choices)
    for name in names(ROLLOUT, "temperature top_p val_kwargs.temperature val_kwargs.top_p"):
        value, most = setting(config, name), 1 if name.endswith("top_p") else math.inf
        # Rollouts are to differ; a validation may be greedy.
        is_zero = value == 0 and name != f"{ROLLOUT}.val_kwargs.temperature"
        if not isinstance(value, int | float) or is_zero or not 0 <= value <= most:
            raise ConfigError(f"{name}={value} must be a number above 0, top_p at most 1")


def idle_warning(
    config: DictConfig,
    given: Iterable[str],
    settings: HintSettings,
    method: Method,
    *,
    has_critic: bool,
) -> list[str]:
    """Return one warning that names all settings given without effect; else nothing.

    Args:
        config: The run's, resolved.
        given: Names of the command line.
        settings: The ``hint:`` node.
        method: The run's.
        has_critic: Whether there is one.
    """
    found: dict[str, Any] = {}
    for name in given:
        value = setting(config, name)
        is_section = isinstance(value, DictConfig) and value  # given as a mapping
        found |= dict(leaves(value, f"{name}.")) if is_section else {name: value}
    idle = {*unread_settings(str(setting(config, "trainer.method")), found, settings)}
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
        if method.needs.utterance_critic:
            unread += names("critic", "ppo_mini_batch_size ppo_epochs shuffle cliprange_value")
    idle |= {
        each for each in found if each.startswith(tuple(unread)) and not each.startswith(_READ)
    }
    told = [f"{name}={text_of(found[name])}" for name in found if name in idle]
    told = [each for each in told if not each.endswith("=None")]
    return [f"without effect in this run: {', '.join(told)}"] if told else []
