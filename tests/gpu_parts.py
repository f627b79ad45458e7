"""The runs that check a GPU machine (configs/gpu_check.yaml), and what each must show."""

import json
import statistics
import subprocess
import sys

from recipe import PROGRAMS, REPOSITORY
from recipe.run.children import end_child, start_child
from recipe.run.run_folder import accuracies, read_rows
from recipe.run.typed import read_yaml
from recipe.study.runs import SECONDS

VLLM_DIFFERENCE = "training/rollout_probs_diff_mean"  # of a token's probability

PARTS = read_yaml((REPOSITORY / "configs/gpu_check.yaml").read_text(encoding="utf-8"))["parts"]


def command(name, device, folder):
    """The command of a part; ``device`` is ``cuda``, or ``cpu`` in its place."""
    part, preset = PARTS[name], "laptop" if device == "cpu" else "gpu1_tiny"
    given = [f"hardware={preset}", f"hint.run_dir={folder / name}"]
    for each in [*joined(part["settings"]), *part.get(device, ())]:
        # Those of keys that only the CPU's preset has already need no plus sign there.
        given.append((each.lstrip("+") if device == "cpu" else each).format(folder=folder))
    return [sys.executable, str(PROGRAMS / "main_hint.py"), *given]


def joined(settings):
    return sum(([each] if isinstance(each, str) else joined(each) for each in settings), [])


def run(name, device, folder, limit_s=1800):
    """Run a part to its end, with what it is to go on from before."""
    part, arguments = PARTS[name], command(name, device, folder)
    env = part.get("env", {})
    for more in ([part["first"]] if "first" in part else []) + [[]]:
        process = start_child([*arguments, *more], env=env, cwd=REPOSITORY)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = f"none within {limit_s} s"
        finally:
            end_child(process)
        assert code == 0, f"exit code {code} of {name}, in {folder / name}"


def numbers_of(name, device, folder):
    """What a part that has run shows; an assertion says what it must."""
    own, part, numbers = folder / name, PARTS[name], {}
    if name == "evaluation":
        found = json.loads((own / "evaluation/results.json").read_bytes())["benchmarks"]
        return {source: each["avg"] for source, each in found.items()}
    if "as_reference" in part:
        theirs, ours = rounds_of(folder / "reference"), rounds_of(own)
        other = [key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)]
        numbers["equal prompts"] = f"{len(theirs) - len(other)} of {len(theirs)}"
        # On a GPU sums in another order may change a token.
        assert device != "cpu" or not other, f"other prompts: {sorted(other)[:3]}"
    rows = list(read_rows(own / "metrics.jsonl"))
    for row in rows:
        numbers |= {f"{source} after {row['step']}": of for source, of in accuracies(row).items()}
    steps = [row for row in rows if VLLM_DIFFERENCE in row]
    mean = statistics.fmean(row[VLLM_DIFFERENCE] for row in steps)
    assert mean <= part.get("max_mean", 1.0), f"mean difference {mean:.1e}: the weights differ"
    largest = max(row["training/rollout_probs_diff_max"] for row in steps)
    step_s = statistics.fmean([row[SECONDS] for row in steps[1:]] or [0.0])
    return numbers | {"mean": mean, "largest": largest, "step s": step_s}


def rounds_of(folder):
    """What became of each prompt of a run, but for its times: (step, problem) -> its rounds."""
    found = {}
    for row in read_rows(folder / "records.jsonl"):
        rounds = [
            {name: each for name, each in one.items() if not name.endswith("seconds")}
            for one in row["rounds"]
        ]
        found.setdefault((row["step"], row["problem_id"]), []).append(json.dumps(rounds))
    return {key: sorted(each) for key, each in found.items()}
