"""Real runs on the embedded world: Ray, verl, FSDP2, vLLM and TransferQueue, on the CPU."""

import pytest
from runs import ROOT, train

pytestmark = pytest.mark.slow
LEVELS = {"grpo": {0}, "sage-light": {0, 1, 2}, "fixed": {0, 2}}


def check_records(run, steps, prompts=8, group=4):
    assert run.code == 0, run.err
    by_step = run.by_step()
    assert sorted(by_step) == list(range(1, steps + 1))
    for records in by_step.values():
        assert len(records) == len({record["uid"] for record in records}) == prompts
        for record in records:
            accepted = record["accepted"]
            assert len(record["rewards"][accepted]) == group
            assert record["levels"][accepted] == record["accepted_level"]


def check_weights(run, steps):
    """Trainer and vLLM give every sampled token the same probability, after every update."""
    assert len(run.metrics) == steps
    for row in run.metrics:
        assert row["training/rollout_probs_diff_mean"] <= 1e-6, row["step"]
        assert row["training/rollout_probs_diff_max"] <= 1e-4, row["step"]
    # Not in every step: eight groups may all be equal by chance.
    assert any(row["actor/grad_norm"] > 0 for row in run.metrics)


def check_samples(run, steps):
    """Every step leaves prompts to look at, with all levels that were tried."""
    records = {record["uid"]: record for record in run.records}
    assert sorted({row["step"] for row in run.samples}) == list(range(1, steps + 1))
    assert len({row["uid"] for row in run.samples}) == len(run.samples) <= 8 * steps
    # A quarter of the 8 places is drawn blindly.
    assert sum("random" in row["why"] for row in run.samples) == 2 * steps
    for row in run.samples:
        record = records[row["uid"]]
        assert tuple(each["level"] for each in row["attempts"]) == tuple(record["levels"])
        graded = sum(len(answer["rows"]) for answer in row["answers"])
        assert (graded, row["left_out"]) == (sum(map(len, record["rewards"])), 0)
        assert all(each["hint"] for each in row["attempts"] if each["hint_status"] == "ok")
        assert any("boxed" in answer.get("response", "") for answer in row["answers"])
    for row in run.metrics:
        shares = [value for name, value in row.items() if name.startswith("verify/by_")]
        assert sum(shares) == pytest.approx(1.0)
    assert sum(row["verify/second_judge_asked"] for row in run.metrics) > 0


def test_sage_climbs_only_where_nobody_was_right_and_the_weights_follow(tmp_path):
    run = train(tmp_path, "trainer.method=sage", "trainer.total_training_steps=20")
    check_records(run, 20)
    check_weights(run, 20)
    check_samples(run, 20)
    hinted = 0
    for record in run.records:
        assert record["levels"] == list(range(len(record["levels"])))
        for rewards in record["rewards"][:-1]:
            assert not any(rewards)
        hinted += record["accepted_level"] > 0
    assert 0 < hinted < len(run.records)  # both kinds of row were compared
    assert sum(row["hint/generate_success"] for row in run.metrics) > 0


def test_the_weights_follow_with_untied_embeddings_too(tmp_path):
    run = train(
        tmp_path / "run",
        "trainer.method=sage",
        "trainer.total_training_steps=20",
        f"actor_rollout_ref.model.path={untied_base(tmp_path / 'untied')}",
    )
    check_records(run, 20)
    check_weights(run, 20)
    assert {record["accepted_level"] > 0 for record in run.records} == {True, False}


def untied_base(folder):
    """The embedded base with a head of its own, equal to the embedding at the start."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = ROOT / "data/tiny/base"
    model = AutoModelForCausalLM.from_pretrained(base)
    head = model.get_input_embeddings().weight.detach().clone()
    model.config.tie_word_embeddings = False
    model.lm_head.weight = type(model.lm_head.weight)(head)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("method", ["grpo", "sage-light", "fixed"])
def test_each_method_trains_at_its_own_levels(tmp_path, method):
    # Eight problems: each is visited in every step, so that a schedule has something to follow.
    run = train(
        tmp_path,
        f"trainer.method={method}",
        "trainer.total_training_steps=3",
        "data.train_max_samples=8",
    )
    check_records(run, 3)
    check_weights(run, 3)
    assert {record["accepted_level"] for record in run.records} <= LEVELS[method]
    last_planned = {record["planned_level"] for record in run.by_step()[3]}
    assert {"grpo": {0}, "fixed": {2}}.get(method, last_planned) == last_planned
    if method == "sage-light":
        assert max(last_planned) == 2  # never right at level 0, nor at level 1: two steps up


def test_two_ranks_and_two_replicas_keep_their_weights_together(tmp_path):
    run = train(
        tmp_path,
        "trainer.method=sage",
        "trainer.total_training_steps=3",
        "trainer.n_gpus_per_node=2",
    )
    check_records(run, 3)
    check_weights(run, 3)


def test_rollouts_go_on_during_training_in_colocate_async_mode(tmp_path):
    run = train(
        tmp_path,
        "trainer.method=sage",
        "trainer.total_training_steps=3",
        "trainer.v1.trainer_mode=colocate_async",
    )
    assert run.code == 0, run.err
    assert sorted(run.by_step()) == [1, 2, 3]
    assert len(run.records) == len({record["uid"] for record in run.records}) == 24
