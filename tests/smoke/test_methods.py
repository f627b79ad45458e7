"""GHPO and Scaf-GRPO on the embedded world: hinted, guided and plain rows in real updates."""

import re

import pyarrow.parquet as pq
import pytest
from runs import ROOT, check_records, check_weights, train

from recipe.hint.problems.columns import write_rows

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


def test_ghpo_extends_the_prompts_of_difficult_groups_after_its_cold_start(ghpo):
    for record in ghpo.records:
        is_cold = record["step"] == 1
        assert record["is_off_schedule"] == is_cold
        if is_cold:
            assert [done["level"] for done in record["rounds"]] == [0]
        for done in record["rounds"][:-1]:
            assert not any(done["accuracies"])


def test_the_weights_follow_with_untied_embeddings_too(ghpo):
    check_weights(ghpo, STEPS)
    # Both kinds of row were compared.
    assert {record["accepted_level"] > 0 for record in ghpo.records} == {True, False}
    assert [row["hint/prompts"] for row in ghpo.metrics] == [8] * STEPS


def test_scaf_replaces_one_failed_rollout_by_a_guided_one_in_one_group(tmp_path):
    write_hints(tmp_path / "hints.parquet")
    run = train(
        tmp_path / "run",
        "trainer.method=scaf",
        "hint.scaf.warmup_steps=0",
        "hint.scaf.increments=2",
        "hint.scaf.rollouts=2",
        "hint.logprob_gain_every=2",
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
    # Four results of five are given: the last one was drawn under them and is likelier with them.
    measured = [gap for record in guided for gap in record["logprob_gains"]]
    assert measured
    assert min(measured) > 0
    assert {record["step"] % 2 for record in guided if record["logprob_gains"]} == {0}
