"""Write an evaluation as a log of inspect_ai: a sample per problem, an epoch per response."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recipe.problems.columns import read_problems
from recipe.problems.schema import Problem
from recipe.run.config import check
from recipe.run.typed import read_yaml
from recipe.run.whole_file import file_sha256
from recipe.study.results import read_evaluation, read_kept, response_path


def write_log(run: Path, out: Path) -> None:
    """Write the log of a finished evaluation, given its run's folder or ``RUN/evaluation``.

    Raises ``ConfigError`` if inspect_ai is missing, ``out`` exists or a data file has changed.
    """
    check(
        importlib.util.find_spec("inspect_ai"), "inspect_ai is missing: docs/evaluation.md has it"
    )
    library = importlib.import_module("inspect_ai.log")
    check(out.suffix == ".eval" and not out.exists(), f"{out}: give a new file NAME.eval")
    folder = run if run.name == "evaluation" else run / "evaluation"
    (results, groups), settings = read_evaluation(folder), read_kept(folder)
    config, problems = read_yaml((folder / "config.yaml").read_text("utf-8")), {}
    for path in map(Path, config["data"]["val_files"]):
        is_same = file_sha256(path) in settings["files"].get(path.name, "")
        check(is_same, f"{path} has changed since the evaluation; put the former file back")
        problems |= {(each.data_source, each.id): each for each in read_problems(path)}
    texts = (response_path(folder, name).read_bytes() for name in groups)
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    made = datetime.fromtimestamp((folder / "results.json").stat().st_mtime, UTC)
    ids = dict.fromkeys(("eval_id", "task_id", "run_id"), file_sha256(folder / "results.json")[:22])
    spec = {
        **{"task": folder.resolve().parent.name, "created": made.isoformat(), **ids},
        "dataset": {"name": ", ".join(groups), "samples": sum(map(len, groups.values()))},
        **{"model": results["model"], "config": {"epochs": results["num_samples"]}},
        "model_generate_config": results["sampling"],
        "metadata": settings,
    }
    avg = {name: {"name": "avg", "value": of["avg"]} for name, of in results["benchmarks"].items()}
    scores = [
        {"name": n, "scorer": "verifier", "metrics": {"avg": each}} for n, each in avg.items()
    ]
    found = {"total_samples": len(rows), "completed_samples": len(rows), "scores": scores}
    model = results["model"]
    samples = [_sample(row, problems[row["benchmark"], row["id"]], model) for row in rows]
    log = {"status": "success", "eval": spec, "results": found, "samples": samples}
    library.write_eval_log(library.EvalLog.model_validate(log), out)


def _sample(row: dict[str, Any], problem: Problem, model: str) -> dict[str, Any]:
    source, reply = row["benchmark"], {"role": "assistant", "content": row.pop("response")}
    stop = "max_tokens" if row["is_truncated"] else "stop"
    verdict = {"value": row["score"], "answer": row["extracted"], "explanation": row["reason"]}
    return {
        **{"id": f"{source}/{row['id'].removeprefix(source + '/')}", "epoch": row["sample"] + 1},
        **{"input": [*problem.messages], "target": problem.answer},
        "messages": [*row.pop("conversation", problem.messages), reply],
        "output": {"model": model, "choices": [{"message": reply, "stop_reason": stop}]},
        **{"scores": {"verifier": verdict}, "metadata": row},
    }
