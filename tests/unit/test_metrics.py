"""The step's metrics, each with its arithmetic."""

import json
from dataclasses import replace

from records import record

from recipe.hint.metrics import step_metrics, verify_metrics
from recipe.hint.record import PromptRecord

STEP = [
    record("solved", groups=[(0, [1, 0])]),
    record("all-right", groups=[(0, [1, 1])]),
    record("climbed", groups=[(0, [0, 0]), (1, [0, 0]), (2, [0, 1])], hint_calls=2, hint_tokens=30),
    record("never", groups=[(0, [0, 0]), (1, [0, 0]), (2, [0, 0]), (3, [0, 0])], hint_calls=1),
    record(
        "unparsed",
        groups=[(0, [0, 0]), (1, [])],
        statuses=("none", "parse_failed"),
        accepted=0,
        hint_calls=3,
    ),
]


def test_prompts_are_counted_once_whatever_they_tried():
    metrics = step_metrics(STEP, 3)
    assert metrics["prompts"] == 5
    assert metrics["prompts_needing_hint"] == 3
    assert metrics["prompts_with_hint"] == 2
    levels = [metrics["used_no_hint"]] + [metrics[f"used_level_{k}"] for k in (1, 2, 3)]
    assert levels == [3, 0, 1, 1]
    assert "used_level_4" not in metrics
    assert sum(levels) == 5


def test_a_prompt_that_is_never_solved_counts_at_level_three_with_accuracy_zero():
    metrics = step_metrics(STEP, 3)
    assert metrics["acc_level_3_mean"] == 0.0
    assert metrics["acc_level_2_mean"] == 0.5  # 1 of 2
    assert metrics["acc_no_hint_mean"] == (0.5 + 1.0 + 0.0) / 3


def test_requests_split_into_success_and_failure_by_reason():
    metrics = step_metrics(STEP, 3)
    assert metrics["generate_requested"] == 3
    assert metrics["generate_success"] == 2
    assert metrics["generate_failed"] == metrics["parse_failed"] == 1
    assert metrics["generate_attempts"] == 2 + 1 + 3


def test_why_hints_were_not_written_is_counted_by_name():
    refused, silent = (replace(STEP[0], hint_fault=fault) for fault in ("refused", "timeout"))
    metrics = step_metrics([*STEP, refused, refused, silent], 3)
    faults = {name: value for name, value in metrics.items() if name.startswith("fault_")}
    assert faults == {"fault_refused": 2, "fault_timeout": 1}


def test_zero_signal_is_compared_before_and_after_the_hints():
    metrics = step_metrics(STEP, 3)
    assert metrics["zero_signal_before"] == 4 / 5  # only `solved` was mixed at its first level
    assert metrics["zero_signal_after"] == 3 / 5  # `climbed` became mixed
    assert metrics["mixed_groups"] == 2


def test_discarded_tokens_are_those_of_groups_that_do_not_train():
    metrics = step_metrics(STEP, 3)
    assert metrics["rollout_tokens"] == 10 * (1 + 1 + 3 + 4 + 2)
    assert metrics["rollout_tokens_discarded"] == 10 * (0 + 0 + 2 + 3 + 1)
    assert metrics["tokens"] == 30


GUIDED = record(
    "guided",
    groups=[(0, [0, 0]), (5, [1])],
    accepted=0,
    rows=((0, 0), (1, 0)),
    trained_tokens=12,
)


def test_a_guided_rollout_counts_its_group_at_the_hint_s_level():
    metrics = step_metrics([GUIDED], 12)
    assert (metrics["used_no_hint"], metrics["used_level_5"]) == (0, 1)
    assert metrics["prompts_with_hint"] == metrics["injected_rollouts"] == 1
    assert metrics["acc_level_5_mean"] == 0.5  # one of the two that train
    assert (metrics["zero_signal_before"], metrics["zero_signal_after"]) == (1.0, 0.0)
    assert metrics["rollout_tokens_discarded"] == 10 + 10 - 12


def test_dropped_plain_and_off_policy_groups_are_counted():
    groups = [
        record("a", groups=[(0, [0, 1])], is_dropped=True),
        record("b", groups=[(0, [0, 1])], is_off_schedule=True),
        record("c", groups=[(0, [0, 0]), (1, [0, 1])], on_policy=False),
    ]
    metrics = step_metrics(groups, 3)
    assert metrics["dropped"] == metrics["off_schedule"] == metrics["off_policy"] == 1
    assert metrics["mixed_groups"] == 2  # a dropped group has no gradient


def test_a_record_survives_json():
    for item in [*STEP, GUIDED]:
        assert PromptRecord.from_json(json.loads(json.dumps(item.as_json()))) == item


def test_shares_of_grading_are_of_all_verdicts_of_all_rounds():
    records = [
        record(
            "a",
            groups=[(0, [0, 0]), (1, [1, 0])],
            bases={"number": 2, "text": 1, "none": 1},
            num_ignored=1,
            ungraded=(1, 0),
        ),
        record("b", groups=[(0, [1] * 4)], bases={"number": 4}),
    ]
    metrics = verify_metrics(records)
    assert metrics["by_number"] == 6 / 8
    assert metrics["by_text"] == metrics["by_none"] == 1 / 8
    assert metrics["by_algebra"] == metrics["by_tests"] == 0.0
    assert sum(value for name, value in metrics.items() if name.startswith("by_")) == 1.0
    assert metrics["ignored_text"] == 1 / 8
    assert metrics["ungraded"] == 1 / 8
    assert verify_metrics([]) == {}
