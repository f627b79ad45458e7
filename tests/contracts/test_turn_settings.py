"""What methods of several turns refuse of verl's settings and of the data, by name."""

import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer

from recipe import REPOSITORY
from recipe.hint.adapter.preflight.model import Model
from recipe.hint.adapter.preflight.phases import (
    check_phases_ahead,
    check_stages,
    check_warmup,
    reference_warnings,
    warmup_warnings,
)
from recipe.hint.adapter.preflight.turns import (
    AGAINST_ALL,
    check_attempts,
    check_critic,
    check_thoughts,
    check_turns,
)
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.luffy import Luffy
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.settings import build_method, check_settings_are_read, read_settings
from recipe.problems.columns import ProblemFile
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, DataError

STEPS = 10
PHASES = "trainer.method=mlmt hint.mlmt.t_low=2 hint.mlmt.t_high=1"
STAGES = "trainer.method=score hint.score.stage1_steps"
VALUES = "trainer.method=mlmt hint.mlmt.baseline=value"
VERLS_CRITIC = "trainer.method=grpo algorithm.adv_estimator=gae"
ASYNC = "trainer.v1.trainer_mode=colocate_async"
AHEAD = "trainer.v1.colocate_async.num_warmup_batches"
ACTOR, REF = "actor_rollout_ref.actor", "actor_rollout_ref.ref"
CORRECTION = "algorithm.rollout_correction"
GOOD = [
    *(f"trainer.method={name}" for name in ("score", "score-guided", "mlmt", "archer", "luffy")),
    "experiment=score_math trainer.method=mlmt",
    "trainer.method=archer critic.optim.lr=1e-4 critic.optim.lr_warmup_steps=0",
    f"{VALUES} critic.optim.lr_scheduler_type=cosine critic.ppo_epochs=2",
    "trainer.method=score critic.cliprange_value=0.1",
    PHASES,
    f"{PHASES} actor_rollout_ref.actor.entropy_coeff=0.01",  # without a critic no row goes along
    f"{VALUES} actor_rollout_ref.actor.entropy_coeff=0.01",
    f"{VALUES} hint.mlmt.train_solver=false actor_rollout_ref.actor.entropy_coeff=0.01",
    # Step t trains on prompts of step t - 1: stage I ends with step 8 + 1, and II has step 10.
    f"{STAGES}=8 {ASYNC}",
    f"{STAGES}=9",
    f"{STAGES}=10 {ASYNC}",
    f"{STAGES}=7 {ASYNC} {AHEAD}=2",
    f"{STAGES}=9 {ASYNC} {AHEAD}=0.5",  # half of the last batch is of step 10
    f"trainer.method=sft hint.sft.steps=8 {ASYNC}",
    "trainer.method=score actor_rollout_ref.actor.policy_loss.loss_mode=gspo",  # a weight a turn
    "trainer.method=ghpo algorithm.adv_estimator=rloo",
    "trainer.method=archer trainer.critic_warmup=10",
    "trainer.method=grpo algorithm.adv_estimator=gae trainer.critic_warmup=5",
    f"{STAGES}=4 hint.score.baseline=value trainer.critic_warmup=4",
    # Off is off.
    "trainer.method=score hint.score.stage1_steps=0 hint.score.alpha=0 hint.score.beta2=0 "
    "hint.score.solver_credit=joint",
    "trainer.method=sage algorithm.adv_estimator=gae",  # it drops no group
    f"trainer.method=sage {ACTOR}.loss_agg_mode=seq-mean-token-sum-norm "
    f"{ACTOR}.loss_scale_factor=48",
]
WRONG = {
    "trainer.method=score algorithm.filter_groups.enable=true": (
        "filter_groups.enable=true does not work with trainer.method=score: .* one group"
    ),
    **{
        f"trainer.method={name} {given}": f"{given} does not work with trainer.method={name}: {why}"
        for name, given, why in (
            ("score", "algorithm.norm_adv_by_std_in_grpo=false", ".*method's own"),
            ("mlmt", "algorithm.gamma=0.9", ".*give algorithm.gamma=1.0"),
            ("mlmt", "algorithm.lam=0.9", ".*give algorithm.lam=1.0"),
            ("score", "algorithm.use_kl_in_reward=true", ".*KL coefficients of its own"),
            ("score", f"{ACTOR}.use_kl_loss=true", ".*KL coefficients of its own"),
            ("score", f"{ACTOR}.use_dynamic_bsz=false", ".*several rows"),
            # 511 rows, one grade having failed, are no micro-batches of 4.
            ("score", f"{REF}.log_prob_use_dynamic_bsz=false", ".*several rows"),
            ("luffy", f"{CORRECTION}.bypass_mode=true", ".*not computed then"),
        )
    },
    **{
        f"trainer.method={name} {ACTOR}.loss_agg_mode=seq-mean-token-sum-norm": (
            f"{ACTOR}.loss_agg_mode=.* divides each micro-batch by .* give "
            f"{ACTOR}.loss_scale_factor=48 "
        )
        for name in ("score", "sage", "sage-light", "grpo", "ghpo")
    },
    f"{VERLS_CRITIC} critic.loss_agg_mode=seq-mean-token-sum-norm": (
        "critic.loss_agg_mode=.* divides each .* give critic.loss_scale_factor=48 "
    ),
    f"{PHASES} {ASYNC}": "t_low=2 needs trainer.v1.trainer_mode=sync: in colocate_async",
    f"{STAGES}=9 {ASYNC}": "stage1_steps=9 leaves no step of 10 .* at most 8, or 10 for stage I",
    f"{STAGES}=8 {ASYNC} {AHEAD}=2": "stage1_steps=8 leaves no step of 10 .*=2 steps .* most 7,",
    f"trainer.method=sft hint.sft.steps=9 {ASYNC}": r"sft.steps=9 leaves no step .* at most 8$",
    f"trainer.method=scaf hint.scaf.warmup_steps=9 {ASYNC}": "warmup_steps=9 leaves no step of 10",
    f"trainer.method=ghpo hint.ghpo.cold_start_steps=9 {ASYNC}": "cold_start_steps=9 leaves no",
    "trainer.method=luffy actor_rollout_ref.actor.policy_loss.loss_mode=geo_mean": (
        "loss_mode=geo_mean does not work with trainer.method=luffy: it weighs each token"
    ),
    **{
        f"trainer.method={name} actor_rollout_ref.actor.policy_loss.loss_mode=geo_mean": (
            "loss_mode=geo_mean adds up the means of the micro-batches.* give .*=vanilla"
        )
        for name in ("score", "score-guided", "mlmt", "archer", "sage", "sage-light", "grpo")
    },
    **{
        f"trainer.method=ghpo algorithm.adv_estimator={name}": f"adv_estimator={name} does not work"
        for name in AGAINST_ALL
    },
    "trainer.method=archer critic.optim.lr_scheduler_type=cosine": (
        "lr_scheduler_type=cosine does not work with trainer.method=archer: .* give .*=constant"
    ),
    "trainer.method=archer critic.optim.lr_warmup_steps=5": "lr_warmup_steps=5 does not work",
    "trainer.method=archer critic.optim.lr_warmup_steps_ratio=0.1": "ratio=0.1 does not work",
    f"{VALUES} hint.mlmt.train_solver=false hint.mlmt.value_bonus=0.1 {ACTOR}.entropy_coeff=0.01": (
        "entropy_coeff=0.01 would train the role that does not train.* give .*entropy_coeff=0"
    ),
    f"{VALUES} hint.mlmt.t_low=1 hint.mlmt.t_high=1 actor_rollout_ref.actor.entropy_coeff=0.01": (
        "entropy_coeff=0.01 would train the role"
    ),
    **{
        f"trainer.method={name} trainer.critic_warmup=5": "critic_warmup=5 keeps the policy .* 4 "
        f"steps, and trainer.method={name} has no critic"
        for name in ("grpo", "sage")
    },
    f"{STAGES}=4 trainer.critic_warmup=2": "critic_warmup=2 keeps .* has no critic",
    "trainer.method=archer trainer.critic_warmup=11": "above the 10 steps of the run, in which",
    f"{STAGES}=4 hint.score.baseline=value trainer.critic_warmup=5": (
        "critic_warmup=5 is above the 4 steps of hint.score.stage1_steps"
    ),
    f"{VALUES} hint.mlmt.t_low=2 hint.mlmt.t_high=2 trainer.critic_warmup=3": (
        "critic_warmup=3 is above the 2 steps of hint.mlmt.t_low"
    ),
    "trainer.method=mlmt hint.mlmt.t_low=10 hint.mlmt.t_high=1": "t_low=10 leaves none of the run",
    f"{PHASES} hint.mlmt.stage1_steps=3": "stage1_steps=3 is above t_low=2: stages count all",
    **{
        f"trainer.method={method} {' '.join(f'hint.{node}.{each}' for each in given.split())}": (
            f"{message} does nothing beside the other settings of hint.{node}"
        )
        for method, node, given, message in (
            ("mlmt", "mlmt", "alpha=5", r"alpha=5\.0"),
            ("mlmt", "mlmt", "beta2=0.2", "beta2=0.2"),
            ("score-guided", "score_guided", "train_guide=false guide_weight=3", r"weight=3\.0"),
            ("score-guided", "score_guided", "train_solver=false beta1=0.5", "beta1=0.5"),
            (
                "score-guided",
                "score_guided",
                "train_solver=false solver_credit=joint",
                "solver_credit=joint",
            ),
            (
                "score-guided",
                "score_guided",
                "train_guide=false feedback_leaks=penalise",
                "penalise",
            ),
            ("mlmt", "mlmt", "train_guide=false guide_weight=3", r"guide_weight=3\.0"),
            ("mlmt", "mlmt", "train_solver=false beta1=0.5", "beta1=0.5"),
            ("mlmt", "mlmt", "adaptive_beta2=true", "adaptive_beta2=True"),
            ("score", "score", "stage1_steps=4 beta2=0 adaptive_beta2=true", "adaptive_beta2=True"),
            ("score", "score", "stage1_steps=4 solver_credit=joint alpha=20", r"alpha=20\.0"),
            ("score-guided", "score_guided", "stage1_steps=4 leak_penalty=3", r"leak_penalty=3\.0"),
            ("archer", "archer", "variant=lite expectile=0.9", "expectile=0.9"),
            ("archer", "archer", "variant=lite updates=99", "updates=99"),
            ("archer", "archer", "lam=0.1", "lam=0.1"),
            ("archer", "archer", "variant=bandit gamma=0.1", "gamma=0.1"),
            ("ghpo", "ghpo", "level=1 cold_start_steps=2", "level=1"),
        )
    },
    "trainer.method=archer critic.ppo_epochs=2": "critic.ppo_epochs=2 would not be read by",
    "trainer.method=archer critic.shuffle=true": "critic.shuffle=true would not be read by",
    f"{VALUES} critic.ppo_mini_batch_size=4": "critic.ppo_mini_batch_size=4 would not be read",
    f"{VALUES} critic.cliprange_value=0.2": "critic.cliprange_value=0.2 would not be read by",
    f"{VALUES} critic.loss_agg_mode=seq-mean-token-sum": "critic.loss_agg_mode=.*would not be read",
}


@pytest.fixture(scope="module")
def presets(composed):
    """The laptop's settings, and those of an experiment with a loss of its own, by name."""
    names = ("hardware=laptop", "experiment=score_math")
    return {name: composed(name, "hint.run_dir=x") for name in names}


def check(presets, given):
    first, *rest = given.split()
    name = first if first in presets else "hardware=laptop"
    config = OmegaConf.merge(
        presets[name], OmegaConf.from_dotlist(rest if first in presets else [first, *rest])
    )
    node = OmegaConf.to_container(config.hint, resolve=True)
    own = read_settings(node)
    method = build_method(config.trainer, own)
    check_turns(config, method)
    check_critic(config, method)
    if given.startswith("trainer.method=mlmt"):  # the others' stage I is longer by default
        method.check_steps(STEPS)
    check_stages(config, method, STEPS)
    check_warmup(config, method, STEPS)
    check_settings_are_read(config.trainer.method, [each.partition("=")[0] for each in rest], own)


@pytest.mark.parametrize("given", GOOD)
def test_settings_that_are_read_pass(presets, given):
    check(presets, given)


@pytest.mark.parametrize("given", WRONG)
def test_what_would_do_nothing_or_harm_is_refused_by_name(presets, given):
    with pytest.raises(ConfigError, match=WRONG[given]):
        check(presets, given)


@pytest.fixture
def begun_at(presets, tmp_path):
    """Settings and method of a run that begins at a step of another run, or of its own."""

    def begun_at(step, *given, is_own=False):
        root = tmp_path / ("own" if is_own else "another")
        more = (
            f"trainer.default_local_dir={tmp_path / 'own'}",
            "trainer.resume_mode=resume_path",
            f"trainer.resume_from_path={root / f'global_step_{step}'}",
        )
        config = OmegaConf.merge(
            presets["hardware=laptop"], OmegaConf.from_dotlist([*given, *more])
        )
        own = read_settings(OmegaConf.to_container(config.hint, resolve=True))
        return config, build_method(config.trainer, own)

    return begun_at


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (f"{STAGES}=250", "stage1_steps=250 would be over at once: .* step 300 .* give 550 for"),
        ("trainer.method=sft hint.sft.steps=300", "sft.steps=300 would be over .* give 600"),
        (f"{VALUES} trainer.critic_warmup=20", "critic_warmup=20 would be over .* give 320"),
    ],
)
def test_a_phase_that_is_over_where_another_runs_checkpoint_begins_is_refused(
    begun_at, given, says
):
    with pytest.raises(ConfigError, match=says):
        check_phases_ahead(*begun_at(300, *given.split()))
    # A run's own steps had their phase; one that is not over goes on.
    check_phases_ahead(*begun_at(300, *given.split(), is_own=True))
    check_phases_ahead(*begun_at(10, *given.split()))


def test_a_reference_that_is_not_what_the_run_begins_with_is_told(begun_at):
    kl = f"{ACTOR}.use_kl_loss=true"
    [told] = reference_warnings(begun_at(300, "trainer.method=grpo", kl)[0])
    assert "resume_from_path" in told and "not to the weights that the run begins with" in told
    adapter = "actor_rollout_ref.model.lora_adapter_path=sft"
    own = begun_at(300, "trainer.method=grpo", kl, adapter, is_own=True)[0]
    [told] = reference_warnings(own)
    assert "lora_adapter_path=sft is not in the reference policy" in told
    assert reference_warnings(begun_at(300, "trainer.method=grpo")[0]) == []


def test_a_critic_of_utterances_that_advises_before_it_has_learnt_is_told(begun_at):
    archer = "trainer.method=archer"
    for variant in ("full", "bandit"):
        [told] = warmup_warnings(*begun_at(0, archer, f"hint.archer.variant={variant}"))
        assert told.startswith("warning: trainer.critic_warmup=0 lets the policy ascend the noise")
    # The policy trains from step 1 on, so that 1 is none.
    assert warmup_warnings(*begun_at(0, archer, "trainer.critic_warmup=1"))
    for step, *given in (
        (0, archer, "trainer.critic_warmup=2"),
        (0, archer, "hint.archer.variant=lite"),
        (0, "trainer.method=mlmt", "hint.mlmt.baseline=value"),
        (3, archer),  # its critic has learnt for 3 steps
    ):
        assert warmup_warnings(*begun_at(step, *given)) == []


class Letters:
    """A tokenizer: a token is a letter."""

    eos_token_id = 0

    def __call__(self, text, **_):
        return {"input_ids": [ord(each) for each in text]}

    def apply_chat_template(self, messages, **_):
        return "".join(f"<{each['role']}>{each['content']}" for each in messages)


@pytest.mark.parametrize(
    ("attempts", "message"),
    [
        (("four", "five"), None),
        (("four", "five", "far too long"), None),  # the first two are continued
        (("four",), "row 1 of data.train_files has 1 texts .*offline_attempts=2 continues as many"),
        ((), "row 1 of data.train_files has 0 texts"),
        (("four", " "), "row 1 of data.train_files has a blank text in the column"),
        # Five letters and the end of the turn.
        (("four", "sixth"), "row 1 .* a text of 6 tokens .*max_response_length=5: no response"),
    ],
)
def test_every_row_has_as_many_whole_first_attempts_as_are_gone_on_from(attempts, message):
    config = OmegaConf.create({"data": {"max_response_length": 5}})
    method = Score(settings=ScoreSettings(offline_attempts=2))
    model = Model("m", Letters(), None, 100, {}, ())
    rows = [("a", "b"), attempts]
    problems = [
        Problem(f"p{n}", (), "x", "y", "1", first_attempts=each) for n, each in enumerate(rows)
    ]
    files = [ProblemFile("f.parquet", problems, "")]
    if message is None:
        return check_attempts(config, method, model, files)
    with pytest.raises(DataError, match=message):
        check_attempts(config, method, model, files)


@pytest.mark.parametrize("end", ["", "<think>\n", "<think>\n\n</think>\n\n"])
@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Luffy(), r"trains on the column `solution`, which would end inside its thoughts; give a "),
        (Ghpo(), r"hint.ghpo.format_weight a <think> .* give hint.ghpo.format_weight=0, or a chat"),
        (Ghpo(settings=GhpoSettings(format_weight=0)), None),
        (Score(), None),
    ],
)
def test_a_template_that_opens_the_thoughts_of_a_response_is_refused_where_its_text_must(
    method, message, end
):
    tokenizer = AutoTokenizer.from_pretrained(REPOSITORY / "data/tiny/base")
    tokenizer.chat_template += f"{{% if add_generation_prompt %}}{end}{{% endif %}}"
    model = Model("m", tokenizer, None, 100, {}, ())
    config = OmegaConf.create({"trainer": {"method": "m"}})
    asked = ({"role": "user", "content": "Write <think>"},)
    files = [ProblemFile("f.parquet", [Problem("p", asked, "x", "y", "1")], "")]
    if message is None or not end.endswith("<think>\n"):
        check_thoughts(config, method, model, files)
        return
    with pytest.raises(ConfigError, match=message):
        check_thoughts(config, method, model, files)
