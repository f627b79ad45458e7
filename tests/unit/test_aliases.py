"""The names of other implementations, before Hydra: what each becomes, is left out for, or says."""

import pytest

from recipe.hint.command.aliases import LEFT_OUT, OF_METHOD, resolve_aliases
from recipe.hint.methods import METHODS
from recipe.run.errors import ConfigError

LR, ROLLOUT = "actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.rollout"
LENGTH = "data.max_response_length"
KL = "actor_rollout_ref.actor.kl_loss_coef=0.04 actor_rollout_ref.actor.use_kl_loss=true"
NO_KL = "actor_rollout_ref.actor.kl_loss_coef=0.0 actor_rollout_ref.actor.use_kl_loss=false"
SCORE, GUIDED, MLMT = (f"trainer.method={name}" for name in ("score", "score-guided", "mlmt"))
ARCHER, GHPO, GRPO = (f"trainer.method={name}" for name in ("archer", "ghpo", "grpo"))
# What is given -> what Hydra gets.
BECOMES = {
    # The SAGE release.
    "actor_rollout_ref.model.pretrained_model_name_or_path=/m": "actor_rollout_ref.model.path=/m",
    f"{ROLLOUT}.num_generations_per_prompt=4": f"{ROLLOUT}.n=4",
    f"{ROLLOUT}.response_length=99": f"{LENGTH}=99",
    # GHPO.
    "rl_type=ghpo start_hint_step=20": f"{GHPO} hint.ghpo.cold_start_steps=20",
    "rl_type=grpo num_generations=8": f"{GRPO} {ROLLOUT}.n=8",
    f"{GHPO} beta=0.04": f"{GHPO} {KL}",
    f"{GRPO} beta=0.0": f"{GRPO} {NO_KL}",
    f"{GHPO} reward_weights=[1.0,0.5]": (
        f"{GHPO} hint.ghpo.accuracy_weight=1.0 hint.ghpo.format_weight=0.5"
    ),
    "experiment=ghpo reward_weights=[2,1]": (
        "experiment=ghpo hint.ghpo.accuracy_weight=2 hint.ghpo.format_weight=1"
    ),
    "learning_rate=1e-6 max_completion_length=9": f"{LR}=1e-6 {LENGTH}=9",
    # The multi-turn reference.
    f"{SCORE} policy_lm=/m rollout_size=32": (
        f"{SCORE} actor_rollout_ref.model.path=/m data.train_batch_size=32"
    ),
    f"{SCORE} save_path=out eval_freq=2": f"{SCORE} hint.run_dir=out trainer.test_freq=2",
    f"{SCORE} stage1_steps=138 alpha=5": f"{SCORE} hint.score.stage1_steps=138 hint.score.alpha=5",
    f"{GUIDED} train_guidance_model=false": f"{GUIDED} hint.score_guided.train_guide=false",
    f"{GUIDED} guidance_kl_coef=0.1 beta2=1": (
        f"{GUIDED} hint.score_guided.guide_kl_coef=0.1 hint.score_guided.beta2=1"
    ),
    f"{SCORE} use_wandb=false": SCORE,
    f"{MLMT} value_coef=0.2": f"{MLMT} hint.mlmt.value_bonus=0.2",
    f"{MLMT} stop_value_gradients=True": f"{MLMT} hint.mlmt.value_grad=stop",
    "experiment=bi_level_score_math stop_value_gradients=false": (
        "experiment=bi_level_score_math hint.mlmt.value_grad=full"
    ),
    "agent_type=bi_level_score alpha=5": f"{MLMT} hint.mlmt.alpha=5",
    f"{MLMT} use_wandb=true": f"{MLMT} trainer.logger=[console,wandb]",
    f"{ARCHER} epochs=50 batch_size=64 tau=0.1": (
        f"{ARCHER} hint.archer.updates=50 hint.archer.batch_size=64 hint.archer.tau=0.1"
    ),
    "experiment=archer_code critic_lr=2e-5": "experiment=archer_code critic.optim.lr=2e-5",
    # A bare name means nothing to a method without it.
    f"{GRPO} alpha=5": f"{GRPO} alpha=5",
}
REFUSED = {
    f"{ROLLOUT}.num_generations_per_prompt=4 {ROLLOUT}.n=8": "are two names of one setting",
    f"{ROLLOUT}.response_length=4 {LENGTH}=8": "are two names of one setting",
    f"{SCORE} stage1_steps=1 hint.score.stage1_steps=2": "are two names of one setting",
    f"{SCORE} stage2_steps=5": "give trainer.total_training_steps",
    f"{SCORE} use_smart_corrections=true": "give trainer.method=score-guided",
    f"{MLMT} guidance_model_path=/m": "guide=teacher and hint.teacher.base_url",
    "dataset_name=any": "give data.train_files, made by main_prepare.py ghpo",
}


@pytest.mark.parametrize(("given", "becomes"), BECOMES.items())
def test_a_name_of_another_implementation_becomes_our_settings(given, becomes, capsys):
    assert resolve_aliases(given.split()) == becomes.split()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("given", "message"), REFUSED.items())
def test_a_name_that_would_spoil_the_run_says_what_to_write(given, message):
    with pytest.raises(ConfigError, match=message):
        resolve_aliases(given.split())


def test_names_without_a_setting_here_are_left_out_with_one_line(capsys):
    harmless = [name for name in LEFT_OUT if name not in ("tau", "gamma", "capacity")]
    argv = [GRPO, *(f"{name}=1" for name in harmless), "guidance_model_path=null"]
    assert resolve_aliases(argv) == [GRPO]
    (line,) = capsys.readouterr().err.splitlines()
    assert all(f"{name}=1" in line for name in harmless)


def test_every_method_of_the_table_exists():
    assert OF_METHOD.keys() <= METHODS.keys()
