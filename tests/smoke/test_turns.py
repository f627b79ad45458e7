"""Methods of several turns on the embedded model: rows of every turn and role in real updates."""

import pytest
from runs import ROOT, check_weights, train

pytestmark = pytest.mark.slow
# The embedded tokenizer spells the instructions out: a prompt of a later turn is long.
TURNS = ("actor_rollout_ref.rollout.prompt_length=420", "data.max_response_length=48")


def test_score_trains_both_turns_in_both_stages_and_the_reference_follows_from_the_start(tmp_path):
    run = train(
        tmp_path / "run",
        *TURNS,
        "trainer.method=score",
        "hint.score.stage1_steps=1",
        "trainer.total_training_steps=3",
        "trainer.test_freq=3",
        "data.val_max_samples=16",
    )
    assert run.code == 0, run.err
    check_weights(run, 3)
    first, *later = run.metrics
    # 8 prompts x 4 conversations; one update, so that nothing is off-policy within the step.
    for row in run.metrics:
        assert row["credit/solver_t1/rows"] == row["credit/solver_t2/rows"] == 32
        assert row["actor/pg_clipfrac"] == row["actor/ppo_kl"] == 0
    # Weights that nobody has changed yet are the reference policy's own.
    assert first["credit/solver_t1/kl"] == first["credit/solver_t2/kl"] == 0
    assert any(row["credit/solver_t2/kl"] != 0 for row in later)
    assert [row["credit/solver_t1/advantage_abs"] > 0 for row in run.metrics][0] is False
    for record in run.records:
        assert [each["prompt"] for each in record["rounds"]] == ["bare", "revise"]
        assert len(record["conversations"]) == 4
        before, after = (each["accuracies"] for each in record["rounds"])
        alpha = 0.0 if record["step"] == 1 else 10.0
        shaped = [r2 + alpha * (r2 - r1) for r1, r2 in zip(before, after, strict=True)]
        assert record["rewards"] == [*([0.0] * 4 if record["step"] == 1 else before), *shaped]
    last = run.metrics[-1]
    change = last["val-turns/tiny/hard/wrong_to_right"] - last["val-turns/tiny/hard/right_to_wrong"]
    assert last["val-turns/tiny/hard/delta"] == pytest.approx(change)


@pytest.mark.long
def test_solver_and_guide_of_a_tree_train_in_an_asynchronous_mode(tmp_path):
    run = train(
        tmp_path / "run",
        *TURNS,
        # Easy problems and the first turn's own reward: the embedded model knows no feedback.
        f"data.train_files={ROOT / 'data/tiny/val_easy.parquet'}",
        "trainer.method=mlmt",
        "hint.mlmt.solver_credit=score",
        "hint.mlmt.feedbacks=2",
        "hint.mlmt.refinements=2",
        "hint.mlmt.guide_max_tokens=24",
        "trainer.v1.trainer_mode=colocate_async",
        # Nothing changes the weights: prompts of step 2 are sampled before the update of step 1.
        "actor_rollout_ref.actor.optim.lr=1e-12",
        "trainer.total_training_steps=2",
        "data.train_batch_size=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
    )
    assert run.code == 0, run.err
    check_weights(run, 2)
    for row in run.metrics:
        # 4 prompts x 4 attempts x (1, 2, 2 x 2).
        rows = [row[f"credit/{name}/rows"] for name in ("solver_t1", "guide_t2", "solver_t3")]
        assert rows == [16, 32, 64]
        assert row["turns/feedback_tokens"] <= 24
    for record in run.records:
        roles = [(each["role"], len(each["parents"])) for each in record["rounds"]]
        assert roles == [("solver", 0), ("guide", 4 * 2), ("solver", 8 * 2)]
