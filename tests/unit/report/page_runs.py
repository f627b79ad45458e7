"""Run folders for the tests of the page."""

import json

import yaml

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
)


def record(step, name, *groups, rows=None, **more):
    """A record whose rounds have these marks, level by level: ``record(1, "a", "00", "01")``."""
    rounds = [
        {"prompt": "hinted" if level else "bare", "level": level, "seconds": 0.5, "tokens": 10}
        | {"hint_status": "ok" if level else "none", "num_ungraded": 0, "role": "solver"}
        | {"accuracies": [float(mark) for mark in marks]}
        for level, marks in enumerate(groups)
    ]
    last = len(groups) - 1
    rows = [[last, turn] for turn in range(len(groups[-1]))] if rows is None else rows
    rewards = [rounds[at]["accuracies"][turn] for at, turn in rows]
    right = int(sum(rewards))
    return {
        "problem_id": name, "uid": f"{name}-{step}", "step": step, "rounds": rounds, "rows": rows,
        "rewards": rewards, "accuracies": rewards, "groups": [], "leaked_levels": [],
        "reasons": {"correct": right, "wrong": len(rewards) - right}, "on_policy": True,
        "hint_calls": last, "hint_tokens": 5 * last,
    } | more  # fmt: skip


def sample(step, name, *responses, why=("random",), **more):
    """A sample with responses (level, reason, text)."""
    entries = [
        {"round": level, "level": level, "rows": [place], "trains": True, "score": 0.0}
        | {"reward": float(reason == "correct"), "reason": reason, "basis": "number"}
        | {"extracted": text[:5], "ignored": "", "second": "not_asked", "shape": "", "why": []}
        | {"response": text}
        for place, (level, reason, text) in enumerate(responses)
    ]
    levels = sorted({level for level, _, _ in responses})
    rounds = [
        {"prompt": "hinted", "level": level, "hint_status": "ok", "hint": "think", "leaks": False}
        for level in levels
    ]
    return {
        "step": step, "why": list(why), "problem_id": name, "data_source": "tiny/hard",
        "problem": "How many?", "answer": "5", "rounds": rounds, "responses": entries,
    } | more  # fmt: skip


def metrics(step, accuracy=None):
    row = {
        "step": step, "hint/prompts": 4.0, "hint/prompts_with_hint": 1.0, "hint/used_no_hint": 3.0,
        "hint/used_level_1": 1.0, "hint/rollout_tokens": 900.0, "hint/tokens": 100.0,
        "hint/rollout_tokens_discarded": 300.0, "hint/zero_signal_after": 0.25,
        "timing_s/step": 3.0, "timing_s/gen": 2.0, "critic/score/mean": 0.5,
    }  # fmt: skip
    return row if accuracy is None else row | {"val-core/tiny/hard/acc/mean@2": accuracy}


def write_run(folder, records=(), samples=(), rows=(), **settings):
    """Write a run's files; ``settings`` go under ``hint``, ``method`` under ``trainer``."""
    folder.mkdir(parents=True, exist_ok=True)
    method = settings.pop("method", "sage")
    config = {
        "trainer": {"method": method, "experiment_name": folder.name, "total_training_steps": 9},
        "data": {"val_files": [], "val_max_samples": -1},
        "hint": {"run_dir": str(folder), "max_level": 3, "seed": 1} | settings,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    files = {"records": records, "samples": samples, "metrics": rows}
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
