"""Methods on the embedded world: hinted, guided, plain and given rows in real updates."""

import re

import pyarrow.parquet as pq
import pytest
from runs import ROOT, check_records, check_weights, train

from recipe.problems.columns import write_rows

pytestmark = pytest.mark.slow
STEPS = 6


def write_hints(path):
    """The embedded problems with 1, half and all but one of their results as hints, two of each."""
    rows = pq.read_table(ROOT / "data/tiny/train.parquet").to_pylist()
    for row in rows:
        results = re.findall(r"[A-E]=\d", row["solution"])
        for level, count in enumerate((1, (len(results) + 1) // 2, len(results) - 1), start=1):
            shown = results[:count], results[-count:]
            row[f"hint_level_{level}"] = [", ".join(each) for each in shown]
    write_rows(rows, path)


def untied_base(folder):
    """Save the embedded base with a head of its own, equal to the embedding at the start."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = ROOT / "data/tiny/base"
    model = AutoModelForCausalLM.from_pretrained(base)
    head = model.get_input_embeddings().weight.detach().clone()
    model.config.tie_word_embeddings = False
    model.lm_head.weight = type(model.lm_head.weight)(head)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def ghpo(tmp_path_factory):
    """Six steps of GHPO on a model whose head is not its embedding."""
    folder = tmp_path_factory.mktemp("ghpo")
    run = train(
        folder / "run",
        "trainer.method=ghpo",
        "hint.ghpo.cold_start_steps=1",
        f"trainer.total_training_steps={STEPS}",
        f"actor_rollout_ref.model.path={untied_base(folder / 'untied')}",
    )
    check_records(run, STEPS)
    return run


@pytest.mark.long
def test_ghpo_extends_the_prompts_of_difficult_groups_after_its_cold_start(ghpo):
    for record in ghpo.records:
        is_cold = record["step"] == 1
        assert record["is_off_schedule"] == is_cold
        if is_cold:
            assert [done["level"] for done in record["rounds"]] == [0]
        for done in record["rounds"][:-1]:
            assert not any(done["accuracies"])


@pytest.mark.long
def test_the_weights_follow_with_untied_embeddings_too(ghpo):
    check_weights(ghpo, STEPS)
    # Both kinds of row were compared.
    assert {record["accepted_level"] > 0 for record in ghpo.records} == {True, False}
    assert [row["hint/prompts"] for row in ghpo.metrics] == [8] * STEPS


@pytest.mark.long
def test_scaf_replaces_one_failed_rollout_by_a_guided_one_in_one_group(tmp_path):
    write_hints(tmp_path / "hints.parquet")
    run = train(
        tmp_path / "run",
        "trainer.method=scaf",
        "hint.scaf.warmup_steps=0",
        "hint.scaf.increments=2",
        "hint.scaf.rollouts=2",
        f"data.train_files={tmp_path / 'hints.parquet'}",
        f"trainer.total_training_steps={STEPS}",
    )
    check_records(run, STEPS)
    check_weights(run, STEPS)
    assert [row["hint/prompts"] for row in run.metrics] == [8] * STEPS
    guided = [record for record in run.records if len({place for place, _ in record["rows"]}) > 1]
    assert 0 < len(guided) < len(run.records)
    for record in guided:
        assert [place for place, _ in record["rows"]] == [0, 0, 0, len(record["rounds"]) - 1]
        assert record["rewards"] == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.long
def test_luffy_trains_on_solutions_beside_what_vllm_sampled(tmp_path):
    run = train(tmp_path / "run", "trainer.method=luffy", "trainer.total_training_steps=3")
    assert run.code == 0, run.err
    # Of the sampled rows alone: the solutions have no probabilities of vLLM's.
    check_weights(run, 3)
    for row in run.metrics:
        assert row["hint/given"] == row["hint/given_right"] == 8
        assert row["credit/reference_t1/rows"] == 8
        assert row["credit/solver_t1/rows"] == 32
        assert row["hint/zero_signal_after"] < row["hint/zero_signal_before"]
        assert row["actor/pg_clipfrac"] == row["actor/ppo_kl"] == 0
    for record in run.records:
        assert [done["is_given"] for done in record["rounds"]] == [False, True]
        assert record["rewards"] == [*record["accuracies"], 1.0]


@pytest.mark.long
def test_sft_imitates_and_goes_over_to_grpo_on_the_weights_that_it_made(tmp_path):
    run = train(
        tmp_path / "run", "trainer.method=sft", "hint.sft.steps=2", "trainer.total_training_steps=3"
    )
    assert run.code == 0, run.err
    first, second, third = run.metrics
    for row in (first, second):
        assert row["hint/given"] == row["credit/reference_t1/rows"] == 8
        assert row["hint/rollout_tokens"] == 0
        assert row["actor/grad_norm"] > 0
        # Every token has the advantage 1 and the ratio 1.
        assert row["actor/pg_loss"] == pytest.approx(-1, abs=1e-5)
        assert "training/rollout_probs_diff_mean" not in row
    assert third["credit/solver_t1/rows"] == 32
    assert third["training/rollout_probs_diff_mean"] <= 1e-6
    assert third["training/rollout_probs_diff_max"] <= 1e-4
