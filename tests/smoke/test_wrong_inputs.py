"""Every wrong input ends the real command with one line, exit code 2, and nothing left behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from recipe.hint import main_hint
from recipe.problems.columns import make_row
from recipe.run.devices import has_gpu

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "data" / "tiny" / "base"
MODEL = "actor_rollout_ref.model.path"
ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
CPUS = "ray_kwargs.ray_init.num_cpus"

# A batch for files of a few problems.
SMALL = [
    "data.train_batch_size=2",
    f"{ACTOR}.ppo_mini_batch_size=2",
    f"{ACTOR}.use_dynamic_bsz=true",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz=true",
]
FOLDER = Path(__file__).parent
CASES, HARMLESS = (
    yaml.safe_load((FOLDER / f"{name}_inputs.yaml").read_text("utf-8"))
    for name in ("wrong", "harmless")
)
# The real command, in a process of its own; the others share this one's imports.
IN_A_PROCESS = "typo in a setting"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A folder of files that are each wrong in one way."""
    folder = tmp_path_factory.mktemp("wrong")
    write_data(folder)
    write_models(folder)
    (folder / "reward.py").write_text("def compute_score(**_):\n    return 1.0\n")
    (folder / "unknown.yaml").write_text("hint_sytem: x")
    return folder


def rows_of(ids: str) -> list[dict]:
    return [
        make_row(f"Problem {n}: 1+{n}?", str(n + 1), solution=f"1+{n}={n + 1}", row_id=name)
        for n, name in enumerate(ids)
    ]


def write_data(folder: Path) -> None:
    def save(name: str, rows: list[dict]) -> None:
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")

    save("good", rows_of("abcd"))
    save("also", rows_of("def"))
    truthless = rows_of("ab")
    truthless[1] |= {"answer": None, "reward_model": {"style": "rule", "ground_truth": None}}
    save("no_truth", truthless)
    long = rows_of("abcd")
    long[2]["prompt"][-1]["content"] = "1 + 2 " * 200
    save("long", long)
    long_solution = rows_of("abcd")
    long_solution[1]["solution"] = "1 + 2 " * 300
    save("long_solution", long_solution)
    save("no_solution", [row | {"solution": ""} for row in rows_of("ab")])


def write_models(folder: Path) -> None:
    def copy(name: str) -> Path:
        return Path(shutil.copytree(BASE, folder / name))

    (copy("no_config") / "config.json").unlink()
    (copy("no_weights") / "model.safetensors").unlink()
    (copy("no_template") / "chat_template.jinja").unlink()
    (copy("no_tokenizer") / "tokenizer.json").write_text('{"version": "1.0"}')
    refusal = "{% if messages[-1].role == 'user' %}{{ raise_exception('No user role here') }}"
    users = "{% for turn in messages if turn.role == 'user' %}{{ turn.content }}{% endfor %}"
    (copy("refuses") / "chat_template.jinja").write_text(f"{refusal}{{% endif %}}{users}")
    (copy("drops") / "chat_template.jinja").write_text(users)


@pytest.fixture
def command(composed_once, tmp_path, monkeypatch, capsys):
    """Run ``main_hint.py`` in this process -> (exit code, stdout, stderr)."""
    before = dict(os.environ)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(
        *overrides: str, preset: str = "hardware=laptop", environment: dict | None = None
    ) -> tuple[int, str, str]:
        for name, value in (environment or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["main_hint.py", *full(overrides, preset)])
        code = 0
        try:
            main_hint.main()
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield run
    os.environ.clear()
    os.environ.update(before)


def full(overrides: tuple[str, ...], preset: str = "hardware=laptop") -> list[str]:
    defaults = [preset] * bool(preset) + ["trainer.method=sage", "preflight_only=true"]
    given = {override.split("=")[0] for override in overrides}
    return [each for each in defaults if each.split("=")[0] not in given] + list(overrides)


def filled(case: dict, folder: Path) -> tuple[list[str], list[str], dict[str, str]]:
    given, says = (
        [text.replace("{d}", str(folder)) for text in case.get(key, ())]
        for key in ("given", "says")
    )
    environment = {
        name: text.replace("{d}", str(folder)) for name, text in case.get("environment", {}).items()
    }
    given = [each for text in given for each in (SMALL if text == "SMALL" else [text])]
    return given, says, environment


def everything_in(*folders: Path) -> list[tuple[str, int, int]]:
    """Path, size and time of every file and folder; a folder's own time tells nothing."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        state = path.stat()
        size_and_time = (0, 0) if path.is_dir() else (state.st_size, state.st_mtime_ns)
        found.append((str(path), *size_and_time))
    return found


def check_message(code: int, stderr: str, words: list[str]) -> None:
    assert code == 2
    assert "Traceback" not in stderr
    lines = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, stderr
    assert [word for word in words if word not in lines[0]] == [], lines[0]


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_input_is_told_in_one_line_and_leaves_nothing(name, wrong, command, tmp_path):
    overrides, words, environment = filled(CASES[name], wrong)
    before = everything_in(tmp_path, wrong)
    code, _, stderr = command(*overrides, environment=environment)
    check_message(code, stderr, words)
    assert everything_in(tmp_path, wrong) == before


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_nothing_is_named_in_one_warning_and_starts(name, wrong, command, tmp_path):
    overrides, words, environment = filled(HARMLESS[name], wrong)
    code, stdout, stderr = command(*overrides, environment=environment)
    assert (code, stderr) == (0, ""), stderr
    warnings = [line for line in stdout.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == bool(words), warnings
    assert [word for word in words if word not in warnings[0]] == [], warnings
    assert everything_in(tmp_path) == []


def test_the_real_command_ends_the_same_way(wrong, tmp_path):
    overrides, words, _ = filled(CASES[IN_A_PROCESS], wrong)
    end = run_process(overrides, tmp_path)
    check_message(end.returncode, end.stderr, words)
    assert everything_in(tmp_path) == []


def test_a_hub_name_without_the_network_is_an_error_at_once(tmp_path):
    # In a process of its own: the hub's client reads the environment when it is imported.
    end = run_process([f"{MODEL}=nobody/no-model"], tmp_path, HF_HUB_OFFLINE="1", HF_HOME=tmp_path)
    check_message(end.returncode, end.stderr, [f"{MODEL}=nobody/no-model is no folder here"])


def run_process(overrides: list[str], folder: Path, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "recipe" / "hint" / "main_hint.py"), *full(tuple(overrides))],
        cwd=folder,
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.skipif(has_gpu(), reason="needs a machine without a GPU")
def test_cuda_without_a_gpu_is_an_error(command):
    code, _, stderr = command("trainer.device=cuda", "preflight_only=false")
    check_message(code, stderr, ["trainer.device=cuda", "no NVIDIA GPU", "hardware=laptop"])


def test_without_a_preset_the_missing_files_and_model_are_named_together(command):
    code, _, stderr = command("trainer.device=cpu", preset="")
    check_message(code, stderr, ["data.train_files, data.val_files", MODEL, "hardware=laptop"])


def test_a_right_input_is_summed_up_in_about_ten_lines_and_leaves_nothing(command, tmp_path):
    # 6 slots are enough: one fewer is the case above
    code, stdout, stderr = command(f"{CPUS}=6", f"hint.run_dir={tmp_path}/run")
    assert (code, stderr) == (0, "")
    lines = stdout.splitlines()
    titles = (
        "method model train validate validate batch lengths tokens memory memory devices folder"
    )
    assert [line.split()[0] for line in lines] == titles.split()
    # 160 problems / 16 = 10 steps per epoch; 120 steps = 12 epochs
    assert "16 prompts x 8 rollouts" in lines[5] and "120 steps (12.0 epochs)" in lines[5]
    # prompts x rollouts x tokens of a response
    assert "16 x 8 x 48 = 6,144" in lines[7]
    assert f"{tmp_path}/run (new)" in lines[11]
    assert everything_in(tmp_path) == []
