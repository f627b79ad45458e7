"""Lines of a response file for tests, from the few facts that a test is about."""

import json

from pydantic import TypeAdapter

from recipe.study.results import GradedResponse

# A letter per response: what the verifier said of it.
REASONS = {
    "+": "correct",
    "-": "wrong",
    "n": "no_answer",
    "m": "malformed",
    "s": "too_slow",
    "t": "timeout",
    "e": "error",
    "c": "truncated",
}


def row(problem_id="p", number=0, reason="correct", **more):
    values = {
        "benchmark": "toy",
        "id": problem_id,
        "sample": number,
        "seed": 1 + number,
        "score": float(reason == "correct"),
        "reason": reason,
        "extracted": {"correct": "1", "wrong": "2"}.get(reason, ""),
        "response": "some text",
        "prompt_tokens": 5,
        "response_tokens": 10,
        "is_truncated": reason == "truncated",
        "seconds": 0.5,
    }
    return values | more


def rows(benchmark, **verdicts):
    """``rows("toy", a="++-", b="n-+")``: two problems with three responses each."""
    return [
        row(problem_id, number, REASONS[letter], benchmark=benchmark)
        for problem_id, letters in verdicts.items()
        for number, letter in enumerate(letters)
    ]


def turn_facts(before, after, **more):
    """What a second turn changed of a conversation."""
    facts = {
        "acc_t1": before,
        "acc_t2": after,
        "delta": after - before,
        "wrong_to_right": float(after > before),
        "right_to_wrong": float(after < before),
        "unchanged": float(after == before),
    }
    return facts | more


def responses(**verdicts):
    return list(map(parsed, rows("toy", **verdicts)))


def parsed(value):
    return TypeAdapter(GradedResponse).validate_json(json.dumps(value))


def write_rows(folder, benchmark, lines):
    """``lines`` into the benchmark's file below ``folder``, which is RUN/evaluation."""
    path = folder / "samples" / f"{benchmark}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path
