"""Check a machine with one GPU: ``main_gpu_check.py [--device cpu] [--only PART,...]``.

Each part runs the package's own command on the embedded environment and returns numbers; what it
raises is its result, and the other parts run all the same. The parts are in configs/gpu_check.yaml.
Needs no network. Prints one Markdown table and writes gpu_check.json after each part; the exit code
is 1 when a part failed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from recipe import PROGRAMS, REPOSITORY
from recipe.run.arguments import Parser
from recipe.run.children import end_children, start_child
from recipe.run.config import check
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import HintError
from recipe.run.run_folder import accuracies, read_rows
from recipe.run.typed import read_yaml
from recipe.run.whole_file import write_whole
from recipe.study.runs import SECONDS, VLLM_DIFFERENCE, compare_records
from recipe.study.tables import markdown

_CONFIG = read_yaml((REPOSITORY / "configs/gpu_check.yaml").read_text(encoding="utf-8"))
PARTS: dict[str, Mapping[str, Any]] = _CONFIG["parts"]
_LARGEST = "training/rollout_probs_diff_max"


def command(name: str, device: str, folder: Path) -> list[str]:
    """Return the command of a part; ``device`` is ``cuda``, or ``cpu`` in its place."""
    part, preset = PARTS[name], "laptop" if device == "cpu" else "gpu1_tiny"
    script = str(PROGRAMS / part.get("script", "main_hint.py"))
    given = [f"hardware={preset}", f"hint.run_dir={folder / name}"]
    for each in [*_joined(part["settings"]), *part.get(device, ())]:
        # Those of keys that only the CPU's preset has already need no plus sign there.
        given.append((each.lstrip("+") if device == "cpu" else each).format(folder=folder))
    return [sys.executable, script, *given]


def _joined(settings: Iterable[Any]) -> Iterator[str]:
    for each in settings:
        yield from [each] if isinstance(each, str) else _joined(each)


def run(arguments: Sequence[str], env: Mapping[str, str], folder: Path, limit_s: float) -> None:
    """Run a command to its end; ``HintError`` with the last error of its output, or the limit."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "console.txt", "ab") as log:
        process = start_child(arguments, env={**os.environ, **env}, log=log, cwd=REPOSITORY)
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        raise HintError("no time was left for it") from error
    finally:
        end_children([process])
    if code:
        text = (folder / "console.txt").read_text(encoding="utf-8", errors="replace")
        errors = [line for line in text.splitlines() if "rror" in line] or ["no output"]
        raise HintError(f"exit code {code}: {errors[-1][:300]} ({folder})")


def numbers_of(name: str, device: str, folder: Path) -> dict[str, Any]:
    """Return what a part that has run shows; ``HintError`` if it is not what it must be."""
    own, part, numbers = folder / name, PARTS[name], dict[str, Any]()
    if name == "evaluation":
        found = json.loads((own / "evaluation/results.json").read_bytes())["benchmarks"]
        return {source: each["avg"] for source, each in found.items()}
    if name == "arms":
        found = json.loads((own / "bench.json").read_bytes())["arms"]
        return {f"{arm} step s": each["step_s"] for arm, each in found.items()}
    if "as_reference" in part:
        same = compare_records(folder / "reference", own)
        numbers["equal prompts"] = f"{same.num_equal} of {same.num_prompts}"
        # On a GPU sums in another order may change a token.
        if device == "cpu" and same.num_equal < same.num_prompts:
            raise HintError(f"differs from the reference at step {same.first_step}: {numbers}")
    rows = list(read_rows(own / "metrics.jsonl"))
    for row in rows:
        for source, share in accuracies(row).items():
            numbers[f"{source} after {row['step']}"] = share
    steps = [row for row in rows if VLLM_DIFFERENCE in row]
    mean = statistics.fmean(row[VLLM_DIFFERENCE] for row in steps)
    if mean > part.get("max_mean", 1.0):
        raise HintError(f"mean difference {mean:.1e}: the weights differ")
    largest = max(row[_LARGEST] for row in steps)
    step_s = statistics.fmean([row[SECONDS] for row in steps[1:]] or [0.0])
    return numbers | {"mean": mean, "largest": largest, "step s": step_s}


def run_part(name: str, device: str, folder: Path, deadline: float) -> dict[str, Any]:
    """Return ``ok``, ``not here`` or ``FAILED`` with numbers or the reason, and the seconds.

    ``folder`` has runs and results; ``deadline`` is on the clock of ``time.monotonic``.
    """
    began, part = time.monotonic(), PARTS[name]
    reason = part.get("not_on_cpu")
    if device == "cuda":
        is_here = torch.cuda.device_count() >= part.get("num_gpus", 1)
        reason = None if is_here else f"needs {part['num_gpus']} GPUs"
    if reason:
        return {"result": "not here", "reason": reason, "seconds": 0}
    arguments = command(name, device, folder)
    try:
        for more in ([part["first"]] if "first" in part else []) + [[]]:
            left_s = deadline - time.monotonic()
            run([*arguments, *more], part.get("env", {}), folder / name, left_s)
        result: dict[str, Any] = {"result": "ok", "numbers": numbers_of(name, device, folder)}
    except (HintError, OSError, LookupError, ValueError) as error:
        result = {"result": "FAILED", "reason": f"{type(error).__name__}: {error}"}
    return result | {"seconds": round(time.monotonic() - began)}


@errors_in_one_line()
def main(argv: list[str] | None = None) -> int:
    """Run the parts one after the other; a part that fails hides no other."""
    parser = Parser(description=str(__doc__).splitlines()[0])
    default = Path(f"outputs/gpu-check-{datetime.now():%Y%m%d-%H%M%S}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=90, help="limit of all parts together")
    parser.add_argument("--out", type=Path, default=default, help="a new folder")
    given = parser.parse_args(argv)
    names = given.only.split(",")
    if unknown := sorted(set(names) - set(PARTS)):
        parser.error(f"--only: unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    is_possible = given.device == "cpu" or torch.cuda.is_available()
    check(is_possible, "this machine shows no GPU; --device cpu tries the parts anyway")
    folder, deadline, results = given.out.absolute(), time.monotonic() + 60 * given.minutes, {}
    folder.mkdir(parents=True)
    for name in names:
        print(f"{name} ...", end=" ", flush=True)
        results[name] = run_part(name, given.device, folder, deadline)
        print(results[name]["result"], flush=True)
        write_whole(folder / "gpu_check.json", json.dumps(results, indent=1))
    device = torch.cuda.get_device_name(0) if given.device == "cuda" else "CPU in a GPU's place"
    print(f"\n### GPU check, {datetime.now():%Y-%m-%d}, {device}\n")
    rows = []
    for name, each in results.items():
        shown = "; ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in each.get("numbers", {}).items()
        )
        rows.append([name, each["result"], str(each["seconds"]), shown or each["reason"]])
    print("\n".join(markdown(["part", "result", "seconds", "numbers"], rows)))
    print(f"\n{folder}")
    return int(any(each["result"] == "FAILED" for each in results.values()))
