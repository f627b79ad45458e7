"""Refuse keys that nothing reads, and settings of verl's that have no effect or do harm here."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

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
)
from recipe.hint.adapter.preflight.values import check_type, check_types
from recipe.hint.adapter.rewards import FUNCTION, KWARGS, MANAGER, grade_options, overlong_of
from recipe.hint.command.compose import flat_names, nearest
from recipe.hint.settings import HintSettings, method_defaults
from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.pool.processes import WorkerFactory
from recipe.verify.pool.workers import GRADE

# Settings of ours inside verl's sections; `hint` is read by `read_settings`, which knows its keys.
OURS = (
    "preflight_only",
    *names("trainer", "method eval_only"),
    "data.solution_key",
    *(f"trainer.{name}" for name in method_defaults().get("trainer", ())),
)
# What verl 0.9.1 reads (`.get("...")`) but leaves out of its files; the test of this file finds
# these in the installed source, and no others.
READ_BY_VERL = (
    "model_engine",
    *names("data", "cache_dir chat_template_func filter_prompts need_tools_kwargs"),
    *names("trainer", "remove_previous_ckpt_in_save wandb_proxy"),
)
# Fields of verl's dataclasses that the presets give: known without importing verl.
_TYPED = (
    *names(ROLLOUT, "enable_sleep_mode agent.agent_loop_manager_class"),
    *(f"{name}.mixed_precision" for name in (f"{ACTOR}.fsdp_config", f"{REF}.fsdp_config")),
    "critic.fsdp.mixed_precision",
)
# Sections with entries in verl's file whose keys belong to somebody else: Ray, TransferQueue's
# backends, engines by name, teachers by name; `check_unread` looks at each key of `reward`.
OPEN = (
    *("hint", "ray_kwargs.ray_init", "transfer_queue", f"{ROLLOUT}.engine_kwargs"),
    *("distillation.teacher_models", "reward"),
)

_GRADED = "rewards come from the project's verifier (hint.verify.*) or your own function"
_ONE_TURN = "a prompt is one turn of whole groups, and no agent loop or tool of verl's runs"
_NOT_V1 = "nothing of verl's V1 trainers and FSDP engine looks at it"
_REFUSED = "a prompt that is too long is refused before the start"
_NO_MANAGER = (
    "the search needs an accuracy per response between two groups, so no reward manager of verl's "
    "runs; give the function to reward.custom_reward_function"
)
# Of the settings below, those that are read.
_READ = (
    *(MANAGER, *names(FUNCTION, "path name reward_kwargs."), f"{KWARGS}.max_resp_len"),
    *names(f"{KWARGS}.overlong_buffer_cfg", "enable len penalty_factor"),
    "actor_rollout_ref.model.lora.merge",
)
# The beginning of a name -> why nothing reads it; the first match counts.
_UNREAD = {
    **dict.fromkeys(names("data", "tool_config_path function_tool_path"), _ONE_TURN),
    f"{ROLLOUT}.agent.default_agent_loop": _ONE_TURN,
    f"{ROLLOUT}.agent.agent_loop_config_path": _ONE_TURN,
    f"{ROLLOUT}.multi_turn.": _ONE_TURN,
    f"{ROLLOUT}.trace.backend": "rollouts are not traced; samples.jsonl shows some of each step",
    f"{ROLLOUT}.do_sample": "vLLM samples with rollout.temperature",
    f"{ROLLOUT}.val_kwargs.do_sample": "vLLM samples with val_kwargs.temperature; for greedy "
    "responses give val_kwargs.temperature=0 and val_kwargs.n=1",
    "actor_rollout_ref.model.lora.": "it is for verl's Megatron engine; FSDP reads lora_rank, "
    "lora_alpha and target_modules of actor_rollout_ref.model, and lora.merge",
    **dict.fromkeys(
        (f"{ACTOR}.grad_clip", "critic.grad_clip"),
        "verl's FSDP engine clips by optim.clip_grad of the same section; give that",
    ),
    **{
        f"{name}.optim.total_training_steps": "verl writes the run's own number over it"
        for name in (ACTOR, "critic")
    },
    **dict.fromkeys(names("algorithm", "use_pf_ppo pf_ppo."), _NOT_V1),
    **dict.fromkeys(names("trainer", "balance_batch esi_redundant_time"), _NOT_V1),
    **dict.fromkeys(names("data", "reward_fn_key return_raw_input_ids"), _NOT_V1),
    **dict.fromkeys(names("data", "truncation return_full_prompt"), _REFUSED),
    "critic.forward_micro_batch_size_per_gpu": _NOT_V1,
    f"{ROLLOUT}.agent.custom_async_server.": _NOT_V1,
    "skip.rollout.": "verl's V1 reads skip.rollout_tq",
    **dict.fromkeys(names(ACTOR, "freeze_vision_tower use_prefix_grouper"), _NOT_V1),
    **dict.fromkeys(names(ROLLOUT, "over_sample_rate multi_stage_wake_up"), _NOT_V1),
    "actor_rollout_ref.nccl_timeout": _NOT_V1,
    "ray_kwargs.timeline_json_file": "verl's own main_ppo writes it, and that does not run",
    "trainer.default_hdfs_dir": "verl's FSDP checkpoints are written to trainer.default_local_dir "
    "alone; copy them from there",
    "trainer.use_v1": "the trainers are built on verl's V1",
    "critic.ppo_max_token_len_per_gpu": "verl's V1 trainers pack the critic's rows by "
    "critic.ppo_infer_max_token_len_per_gpu",
    "reward.num_workers": "responses are graded in the processes of hint.verify.num_workers",
    "reward.reward_manager.": _NO_MANAGER,
    "reward.reward_model.": f"no reward model is started: {_GRADED}",
    "reward.sandbox_fusion.": "programs run in the project's own sandbox (hint.verify.program_*)",
    f"{KWARGS}.overlong_buffer_cfg.log": "records.jsonl has what every response trained with",
    f"{KWARGS}.": "only max_resp_len and overlong_buffer_cfg are read",
    "reward.": _GRADED,
    **{
        f"{name}.": f"verl has moved this node to reward.{name}, and {_GRADED}"
        for name in ("custom_reward_function", "reward_model", "sandbox_fusion")
    },
}
# Read by verl, but wrong here.
_UNSUPPORTED = {
    "data.prompt_key": "prompts are in the column `prompt` (docs/data.md)",
    "model_engine": "the trainer is FSDP: the other engines are not among the locked packages, and "
    "evaluation merges checkpoints of FSDP only",
    f"{ROLLOUT}.enable_rollout_routing_replay": "a whole-group request returns no expert routes",
    f"{ROLLOUT}.disaggregation.enabled": "a whole-group request goes to one replica",
    f"{ROLLOUT}.full_determinism": "a whole-group request has a random id",
    **dict.fromkeys(
        names(ROLLOUT, "ignore_eos repetition_penalty"), "a whole-group request does not carry it"
    ),
    "trainer.remove_previous_ckpt_in_save": "verl would delete the last checkpoint before the new "
    "one is whole (max_actor_ckpt_to_keep=2 keeps two)",
    **dict.fromkeys(
        (f"{ACTOR}.checkpoint.async_save", "critic.checkpoint.async_save"),
        "a checkpoint is marked COMPLETE when verl's call returns",
    ),
    "algorithm.kl_ctrl.type": "an adapted coefficient is in no checkpoint of verl's",
    "distillation.enabled": "no teacher log-probabilities are stored with a response",
}
# Defaults of the primary config that differ from verl's file.
_DEFAULTS = {
    "model_engine": "dp",
    "reward.num_workers": 0,
    f"{ROLLOUT}.val_kwargs.do_sample": True,
    f"{ROLLOUT}.repetition_penalty": 1.0,
}
_CONTENTS = ("model", "optimizer", "extra")  # of a checkpoint
_START_LIMIT_S = 120.0
_CORRECTION = "algorithm.rollout_correction"
# The beginning of a name -> what must be set for verl to read it, where that is one setting.
_READ_BESIDE = {
    **dict.fromkeys(names(ACTOR, "kl_loss_coef kl_loss_type"), f"{ACTOR}.use_kl_loss"),
    **dict.fromkeys(names("algorithm", "kl_ctrl. kl_penalty"), "algorithm.use_kl_in_reward"),
    **dict.fromkeys(names(_CORRECTION, "rollout_is_"), f"{_CORRECTION}.rollout_is"),
    f"{_CORRECTION}.rollout_rs_threshold": f"{_CORRECTION}.rollout_rs",
    **dict.fromkeys(
        names("algorithm.filter_groups", "metric max_num_gen_batches max_inflight_gen_batches"),
        "algorithm.filter_groups.enable",
    ),
}
_PACKED = "other engines than FSDP, which packs by critic.ppo_infer_max_token_len_per_gpu"
# The beginning of a name that verl takes from the actor -> what would read one of the critic's own.
_NOT_OF_CRITIC = {
    **dict.fromkeys(names("critic", "use_dynamic_bsz ppo_micro_batch_size"), _PACKED),
    "critic.ulysses_sequence_parallel_size": "critic.fsdp in front of its last name",
}
# As _READ_BESIDE, where it must not be set: rows are packed by their tokens then.
_READ_WITHOUT = {
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": f"{ACTOR}.use_dynamic_bsz",
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": f"{ROLLOUT}.log_prob_use_dynamic_bsz",
    f"{REF}.log_prob_micro_batch_size_per_gpu": f"{REF}.log_prob_use_dynamic_bsz",
}


def check_keys(config: DictConfig) -> None:
    """Refuse a key that neither verl nor this recipe reads, and a value of another type.

    A mapping that is empty or null in verl's file belongs to another program (vLLM's arguments, the
    model's configuration): its keys are not checked. In a section with a dataclass of verl's, the
    fields of that dataclass are known too.
    """
    known = _known()
    found: Any = OmegaConf.to_container(config, resolve=False)
    for key in found["trainer"]["v1"]["sync"] or ():  # empty in verl's file, and no one else's
        raise ConfigError(
            f"trainer.v1.sync.{key}: mode sync has no settings of its own, and verl's trainer "
            f"would take it for one of an asynchronous mode; drop it"
        )
    for name, target in _unknown(found, known):
        section, _, key = name.rpartition(".")
        fields = _fields(target)
        if key in fields:
            if bool in (fields[key], *get_args(fields[key])):
                check_type(name, setting(config, name), bool)
            continue
        others = [*names(section, " ".join(fields)), *flat_names({"hint": found["hint"]})]
        meant = nearest(name, [*flat_names(known), *others])
        raise ConfigError(
            f"{name} is a key that neither verl nor this recipe reads: it would change nothing"
            f"{f'; did you mean {meant}?' if meant else '; drop it'}"
        )
    check_types(config, defaults())


def check_unread(config: DictConfig, settings: HintSettings) -> None:
    """Refuse values of verl's settings that do nothing here, and load the reward function.

    A setting that has verl's default is not looked at.
    """
    usual = dict(leaves(_known())) | _DEFAULTS
    # Sorted: a setting of the rollouts comes before those that take its value.
    for name, value in sorted(leaves(OmegaConf.to_container(config))):
        if value is None or value == usual.get(name) or name.startswith(_READ):
            continue
        text = str(value).lower() if isinstance(value, bool) else value
        for why, verdict in ((_UNREAD, "would not be read"), (_UNSUPPORTED, "is not supported")):
            if head := next((head for head in why if name.startswith(head)), None):
                raise ConfigError(f"{name}={text} {verdict}: {why[head]}; drop the setting")
    _check_clip(config)
    _check_contents(config)
    manager = setting(config, MANAGER)
    if manager not in ("naive", "dapo"):
        raise ConfigError(
            f"{MANAGER}={manager} would not be read: {_NO_MANAGER}; choose one of naive, dapo"
        )
    overlong_of(config)
    options = grade_options(settings.verify, config)
    if options.function_path:
        # What the run will start: a process that loads the function and says so.
        factory = WorkerFactory(GRADE, options, _START_LIMIT_S)
        try:
            factory.check()
        except VerifierError as problem:
            raise ConfigError(f"{FUNCTION}.path={options.function_path}: {problem}") from problem
        finally:
            factory.close()


def check_read_beside(config: DictConfig, given: Iterable[str], has_critic: bool) -> None:
    """Refuse settings of the command line that only some other setting makes verl read.

    Presets give some of them in case the other one is turned on. Values that are verl's default are
    not checked.

    Args:
        config: The run's, as verl will get it.
        given: Names of the command line.
        has_critic: Whether there is one.
    """
    for name in given:
        value = setting(config, name)
        if value is None or isinstance(value, DictConfig) or value == defaults().get(name):
            continue
        if need := _missing_beside(config, name, has_critic):
            raise ConfigError(
                f"{name}={value} would not be read: verl reads it only with {need}; drop the "
                f"setting, or give that"
            )


def _missing_beside(config: DictConfig, name: str, has_critic: bool) -> str:
    """Return what would have to be set for verl to read a setting; empty where it is."""
    mode = setting(config, "trainer.v1.trainer_mode")
    for head, switch in _READ_BESIDE.items():
        if name.startswith(head) and not setting(config, switch):
            return f"{switch}={'true' if setting(config, switch) is False else '...'}"
    for head, switch in _READ_WITHOUT.items():
        if name.startswith(head) and setting(config, switch):
            return f"{switch}=false"
    for head, reader in _NOT_OF_CRITIC.items():
        # Without dynamic batches of the actor verl insists on a size here, and does not read it.
        is_asked_for = reader == _PACKED and not setting(config, f"{ACTOR}.use_dynamic_bsz")
        if name.startswith(head) and not is_asked_for:
            return reader
    for other in ("colocate_async", "separate_async"):
        if name.startswith(f"trainer.v1.{other}.") and mode != other:
            return f"trainer.v1.trainer_mode={other} (here: {mode})"
    if name.startswith("critic.") and name != "critic.enable" and not has_critic:
        return (
            "a critic (algorithm.adv_estimator=gae, critic.enable=true, or a method that has one)"
        )
    rank, adapter = (
        setting(config, f"{MODEL_NODE}.{key}") for key in ("lora_rank", "lora_adapter_path")
    )
    needs_lora = name.startswith(names(MODEL_NODE, "lora_alpha target_modules exclude_modules"))
    return f"{MODEL_NODE}.lora_rank=..." if needs_lora and not (rank or adapter) else ""


def _check_contents(config: DictConfig) -> None:
    """Refuse checkpoints that lack what a run is resumed from."""
    for section in (f"{ACTOR}.checkpoint", "critic.checkpoint"):
        for name in names(section, "save_contents load_contents"):
            value = setting(config, name)
            found = list(value) if isinstance(value, list | ListConfig) else []
            if missing := [each for each in _CONTENTS if each not in found]:
                raise ConfigError(
                    f"{name}={value} leaves out {' and '.join(missing)}: a run could not be "
                    f"resumed as it was; give [{','.join(_CONTENTS)}], or more"
                )


def _check_clip(config: DictConfig) -> None:
    """Refuse a clip ratio that two others replace."""
    name, *others = names(ACTOR, "clip_ratio clip_ratio_low clip_ratio_high")
    value, low, high = (setting(config, each) for each in (name, *others))
    if value != defaults()[name] and low is not None and high is not None:
        raise ConfigError(
            f"{name}={value} would not be read: {others[0]}={low} and {others[1]}={high} are taken "
            f"in its place; give these two, or null for both"
        )


@functools.cache
def defaults() -> dict[str, Any]:
    """Return verl's defaults by dotted name, resolved, without what belongs to somebody else."""
    config = OmegaConf.load(_verls_file())
    return {
        name: OmegaConf.select(config, name)
        for name, _ in leaves(OmegaConf.to_container(config, resolve=False))
        if not name.startswith(OPEN)
    }


def _verls_file() -> Path:
    return Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml"


@functools.cache
def _known() -> dict[str, Any]:
    """Return verl's settings with their defaults, and ours among them."""
    known: Any = OmegaConf.to_container(OmegaConf.load(_verls_file()), resolve=False)
    for name in (*OURS, *READ_BY_VERL, *_TYPED):
        *sections, key = name.split(".")
        functools.reduce(dict.__getitem__, sections, known)[key] = None
    return known


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


def _fields(target: str) -> dict[str, Any]:
    """Return the fields of one of verl's dataclasses with their types; its import takes seconds."""
    if not target:
        return {}
    cls = get_class(target)
    types = get_type_hints(cls)
    return {field.name: types[field.name] for field in dataclasses.fields(cls)}
