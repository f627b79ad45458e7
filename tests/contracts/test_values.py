"""Values that verl would misread, trip over inside Ray, or not read: refused by name, at once."""

import os
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

from recipe.hint.adapter.preflight.keys import (
    _UNREAD,
    OPEN,
    _fields,
    check_keys,
    check_read_beside,
    check_unread,
    defaults,
)
from recipe.hint.adapter.preflight.settings import check_settings
from recipe.hint.adapter.preflight.turns import AGAINST_ALL
from recipe.hint.adapter.preflight.values import (
    BOOLS,
    OTHERWISE_TYPED,
    check_first_update,
    check_types,
    check_values,
)
from recipe.hint.settings import read_settings
from recipe.run.errors import ConfigError

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MODEL, CORRECTION = "actor_rollout_ref.model", "algorithm.rollout_correction"
SAMPLER, ADAPTER = "trainer.v1.sampler", f"{MODEL}.lora_adapter_path"
MICRO, DYNAMIC = f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ACTOR}.use_dynamic_bsz"
LOG_MICRO = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
LOG_DYNAMIC = f"{ROLLOUT}.log_prob_use_dynamic_bsz"
MODE = "trainer.v1.trainer_mode=colocate_async"
BATCHES = "trainer.v1.colocate_async.num_warmup_batches=5"
TYPES = {
    **{
        f"{name}={value}": rf"{name}={told} must be true or false"
        for name, value, told in (
            ("trainer.eval_only", "no", "'no'"),
            ("trainer.eval_only", "truee", "'truee'"),
            ("preflight_only", "yes", "'yes'"),
            ("data.shuffle", "no", "'no'"),
            ("algorithm.use_kl_in_reward", "off", "'off'"),
            ("algorithm.filter_groups.enable", "1", "1"),
            ("critic.enable", "no", "'no'"),
            (f"{ROLLOUT}.enable_sleep_mode", "no", "'no'"),
            (DYNAMIC, "0", "0"),
            (f"+{ACTOR}.checkpoint.save_lora_only".lstrip("+"), "no", "'no'"),
        )
    },
    **{
        f"{name}=abc": f"{name}=abc must be a number"
        for name in (
            *(f"{ROLLOUT}.val_kwargs.temperature", f"{ROLLOUT}.val_kwargs.top_k"),
            *(f"{ACTOR}.entropy_coeff", "data.train_max_samples", "trainer.critic_warmup"),
        )
    },
}
OUT_OF_RANGE = {
    **dict.fromkeys((f"{ROLLOUT}.top_p=0", f"{ROLLOUT}.top_p=1.5"), "above 0 and at most 1"),
    **dict.fromkeys((f"{ROLLOUT}.top_k=-5", f"{ROLLOUT}.top_k=2.5"), "whole number of at least -1"),
    f"{ROLLOUT}.temperature=0": "a number above 0$",
    f"{ROLLOUT}.val_kwargs.temperature=-1": "a number of at least 0$",
    f"{ROLLOUT}.val_kwargs.temperature=null": "temperature=None must be a number",
    f"{ROLLOUT}.max_num_seqs=0": "whole number of at least 1",
    f"{ROLLOUT}.dtype=foo": "choose one of auto, half",
    f"{ACTOR}.clip_ratio_low=-3": "of at least 0",
    **dict.fromkeys((f"{ACTOR}.ppo_epochs={n}" for n in (0, -1, 1.5)), "whole number of at least"),
    f"{ACTOR}.optim.betas=[2,3]": "two numbers from 0 to below 1",
    f"{ACTOR}.optim.optimizer=Foo": "no class of torch.optim",
    f"{ACTOR}.optim.lr_scheduler_type=foo": "choose one of constant, cosine",
    f"{ACTOR}.policy_loss.loss_mode=foo": "choose one of .*vanilla",
    f"{ACTOR}.kl_loss_type=foo": "choose one of kl,",
    f"{ACTOR}.fsdp_config.model_dtype=foo": "choose one of fp32,",
    "algorithm.adv_estimator=foo": "choose one of .*grpo",
    f"{CORRECTION}.rollout_is=foo": "choose one of null, token, sequence",
    "data.seed=abc": "must be a whole number$",
    "data.train_max_samples=20.5": "must be a whole number$",
    "trainer.critic_warmup=-3": "whole number of at least 0",
    "trainer.logger=[foo]": "choose one of wandb",
    "trainer.logger=null": "must be a list",
    f"{ROLLOUT}.agent.agent_loop_manager_class=foo.Bar": "no module foo",
    f"{SAMPLER}.custom_sampler.path=/zz.py": "no such file",
    "data.gen_batch_size=5": "does not divide data.train_batch_size=16",
    "trainer.val_only=true trainer.val_before_train=false": "val_only=true with .*would train",
}
UNREAD = {
    **{
        f"{name}={value}": f"{re.escape(name)}={value} would not be read"
        for name, value in (
            *((f"{ACTOR}.grad_clip", 0.3), ("critic.grad_clip", 0.3), ("data.reward_fn_key", "x")),
            *((f"{ACTOR}.optim.total_training_steps", 7), ("trainer.balance_batch", "false")),
            *((f"{ACTOR}.freeze_vision_tower", "true"), (f"{ROLLOUT}.over_sample_rate", 0.5)),
            *(("data.truncation", "left"), ("data.return_full_prompt", "true")),
            *(("critic.forward_micro_batch_size_per_gpu", 2), ("skip.rollout.enable", "true")),
            (f"{ROLLOUT}.agent.custom_async_server.name", "x"),
        )
    },
    f"{ACTOR}.clip_ratio=0.05": "clip_ratio=0.05 would not be read: .*clip_ratio_low=0.2",
    f"{ACTOR}.kl_loss_coef=0.1": "only with .*use_kl_loss=true",
    "algorithm.kl_ctrl.kl_coef=0.1": "only with algorithm.use_kl_in_reward=true",
    f"{CORRECTION}.rollout_is_threshold=5": r"only with .*rollout_is=\.\.\.",
    f"{MICRO}=1": "only with .*use_dynamic_bsz=false",
    f"{LOG_MICRO}=1": "only with .*log_prob_use_dynamic_bsz=false",
    "critic.optim.lr=0.5": "only with a critic",
    "critic.use_dynamic_bsz=true": "only with other engines than FSDP",
    "critic.ppo_micro_batch_size_per_gpu=3": "only with other engines than FSDP",
    "critic.ulysses_sequence_parallel_size=2": "only with critic.fsdp in front",
    f"{MODEL}.lora_alpha=64": "only with .*lora_rank",
    BATCHES: "only with trainer.v1.trainer_mode=colocate_async",
    "data.prompt_key=problem": "column `prompt`",
    f"{ACTOR}.checkpoint.save_contents=[optimizer,extra]": "leaves out model: a run could not",
    "critic.checkpoint.load_contents=[model]": "leaves out optimizer and extra",
    "critic.checkpoint.async_save=true": "marked COMPLETE when verl's call returns",
}
LOSS = f"{ACTOR}.policy_loss"
FIRST_UPDATE = {
    f"{CORRECTION}.rollout_rs=foo {CORRECTION}.rollout_rs_threshold=2": "rollout_rs=foo.*Invalid",
    f"{CORRECTION}.rollout_rs=token_k1": "rollout_rs_threshold=None: verl would stop at the first",
    f"{CORRECTION}.rollout_rs=token_k1 {CORRECTION}.rollout_rs_threshold=x": "threshold=x: verl",
    f"{CORRECTION}.rollout_is=token {CORRECTION}.rollout_is_threshold=-1": "threshold=-1.*positive",
    f"{LOSS}.loss_mode=dro": "loss_mode=dro.*dro_beta=None.*must be a positive value",
}
TAKEN = [
    "trainer.eval_only=false data.shuffle=false critic.enable=null",
    f"{ROLLOUT}.top_k=0 {ROLLOUT}.val_kwargs.top_k=-1 {ROLLOUT}.top_p=1",
    f"{ACTOR}.clip_ratio=0.05 {ACTOR}.clip_ratio_low=null {ACTOR}.clip_ratio_high=null",
    f"{ACTOR}.clip_ratio=0.05 {ACTOR}.clip_ratio_high=null",
    f"{ACTOR}.fsdp_config.reshard_after_forward=2",
    f"{ACTOR}.use_kl_loss=true {ACTOR}.kl_loss_coef=0.1 {ACTOR}.kl_loss_type=k3+",
    "algorithm.use_kl_in_reward=true algorithm.kl_ctrl.kl_coef=0.1",
    f"{CORRECTION}.rollout_is=token {CORRECTION}.rollout_is_threshold='0.5_5.0'",
    f"{CORRECTION}.rollout_rs=token_k1 {CORRECTION}.rollout_rs_threshold='0.5_2.0'",
    *(f"{LOSS}.loss_mode={mode}" for mode in ("vanilla", "gspo", "gpg", "clip_cov", "cispo")),
    f"{LOSS}.loss_mode=dro {LOSS}.dro_beta=1.0",
    f"{MODEL}.lora_rank=8 {MODEL}.lora_alpha=64",
    f"{MODEL}.external_lib=mine {ACTOR}.policy_loss.loss_mode=of_mine",
    f"{MICRO}=8 {DYNAMIC}=false {LOG_MICRO}=8 {LOG_DYNAMIC}=false",
    f"{MODE} {BATCHES} {SAMPLER}.max_off_policy_threshold=null",
    f"{ACTOR}.optim.clip_grad=0.3 {ACTOR}.optim.betas=[0.9,0.95] {ACTOR}.optim.weight_decay=0",
    f"{ACTOR}.kl_loss_coef=0.001",  # verl's own default
    "trainer.logger=[] data.seed=null data.val_max_samples=-1 data.gen_batch_size=8",
    "trainer.val_only=true",
    f"{ACTOR}.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
]
# Read where the search below does not look: dataclasses and code that verl loads by name.
_ELSEWHERE = {
    *("optimizer_impl", "warmup_style", "override_optimizer_config", "tokenizer_path"),
    *("num_shards", "use_v1", "return_raw_chat", "num_repeat_rollouts"),
}
# Not of the V1 trainers, of FSDP or of vLLM; and dataclasses, which only list fields.
_OTHERS = re.compile(
    r"megatron|automodel|veomni|torchtitan|/models/|sglang|trtllm|diffusion|omni|legacy|mindspeed|"
    r"experimental/(fully|one_step|separ|reward)|ray_trainer|main_ppo|sft_trainer|/config/|"
    r"fsdp_turbo|/reward_loop|/reward_manager"
)
_SKIPPED = re.compile(
    r"^(reward|distillation|global_profiler|skip|sandbox|custom_reward)|profiler|megatron|turbo_|"
    r"\.(qat|mtp|lora|disaggregation|multi_turn)\."
)


@pytest.fixture(scope="module")
def laptop(composed):
    return composed("hardware=laptop", "trainer.method=sage", "hint.run_dir=x")


def with_given(laptop, given):
    config, names = laptop.copy(), []
    OmegaConf.set_struct(config, False)
    for text in given.split():
        override = OverridesParser.create().parse_override(text)
        OmegaConf.update(config, override.key_or_group, override.value())
        names.append(override.key_or_group)
    return config, names


def check(laptop, given):
    config, names = with_given(laptop, given)
    check_keys(config)
    settings = read_settings(OmegaConf.to_container(config.hint, resolve=True))
    check_unread(config, settings)
    check_values(config)
    check_settings(config)
    check_first_update(config)
    check_read_beside(config, names, has_critic=False)


@pytest.mark.parametrize("given", [*TYPES, *OUT_OF_RANGE, *UNREAD])
def test_a_value_that_would_be_misread_or_not_read_is_refused_by_name(laptop, given):
    with pytest.raises(ConfigError, match=(TYPES | OUT_OF_RANGE | UNREAD)[given]) as caught:
        check(laptop, given)
    assert str(caught.value).startswith(given.split("=")[0])


@pytest.mark.parametrize("given", FIRST_UPDATE)
def test_what_verl_refuses_only_in_its_first_update_is_refused_before(laptop, given):
    with pytest.raises(ConfigError, match=FIRST_UPDATE[given]):
        check(laptop, given)


def first_advantages(config, name):
    """verl's V1 advantages of a mixed group and of a dropped one: rewards of 0, a token a row.

    The mixed group has a short wrong response: a mean over the batch's tokens is not 0.
    """
    rewards, mask = torch.zeros(8, 3), torch.ones(8, 3)
    rewards[0, 2], mask[1, 1:], mask[4:, 1:] = 1.0, 0.0, 0.0
    columns = ("rollout_log_probs", "old_log_probs", "ref_log_prob", "values")
    columns = {column: torch.zeros(8, 3) for column in columns}
    columns |= {"token_level_rewards": rewards, "response_mask": mask}
    uids = np.array(["a"] * 4 + ["b"] * 4, dtype=object)
    found = compute_advantage_for_multi_trajectories(
        DataProto(batch=TensorDict(columns, batch_size=8), non_tensor_batch={"uid": uids}),
        [f"{uid}_{row}_0" for row, uid in enumerate(uids)],
        name,
        config=config.algorithm,
    )
    return found.batch["advantages"]


@pytest.mark.parametrize("name", [str(name) for name in ADV_ESTIMATOR_REGISTRY])
def test_every_estimator_of_verls_runs_in_its_v1_trainers_or_is_refused(laptop, name):
    config, _ = with_given(laptop, f"algorithm.adv_estimator={name}")
    try:
        advantages = first_advantages(config, name)
    except (AssertionError, TypeError):
        with pytest.raises(ConfigError, match=f"^algorithm.adv_estimator={name}: verl would stop"):
            check_first_update(config)
        return
    check_first_update(config)
    # A method that drops groups refuses the others (`check_turns`).
    assert bool(advantages[4:].any()) == (name in AGAINST_ALL)


@pytest.mark.parametrize("given", TAKEN)
def test_a_value_that_verl_takes_passes(laptop, given):
    check(laptop, given)


def test_no_is_nowhere_taken_for_true(laptop):
    found = {name: value for name, value in defaults().items() if isinstance(value, bool)}
    assert len(found) > 100
    config, _ = with_given(laptop, "")
    for name, value in found.items():
        if name in OTHERWISE_TYPED:
            continue
        OmegaConf.update(config, name, "no")  # a copy for each would take a tenth of a second
        with pytest.raises(ConfigError, match=f"{re.escape(name)}='no' must be true or false"):
            check_types(config, {name: value})


def test_the_settings_typed_by_hand_are_those_that_verls_file_does_not_type(laptop):
    hidden, otherwise = set(), set()
    for name, default in defaults().items():
        section, _, key = name.rpartition(".")
        target = OmegaConf.select(laptop, f"{section}._target_")
        types = get_args(_fields(target).get(key)) if target and "rofiler" not in target else ()
        if bool in types and default is None:
            hidden.add(name)
        if isinstance(default, int | float) and str in types:
            otherwise.add(name)
    assert hidden <= set(BOOLS)
    assert otherwise <= set(OTHERWISE_TYPED)


def test_a_setting_whose_name_stands_nowhere_in_verls_v1_path_is_refused(config_paths):
    package = Path(os.environ["HINT_VERL_CONFIG"]).parents[1]
    texts = [
        path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
        if not _OTHERS.search(str(path.relative_to(package.parent)))
    ]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    config = OmegaConf.load(Path(os.environ["HINT_VERL_CONFIG"]) / "_generated_ppo_trainer.yaml")
    raw = OmegaConf.to_container(config, resolve=False)
    unread = []
    for name in defaults():
        key, node = name.rpartition(".")[2], raw
        for part in name.split("."):
            node = node[part]
        follows = isinstance(node, str) and node.startswith("${")  # takes another's value
        is_ours = name.startswith((*_UNREAD, *OPEN)) or key in _ELSEWHERE or follows
        if key not in words and key != "_target_" and not is_ours and not _SKIPPED.search(name):
            unread.append(name)
    assert unread == []
