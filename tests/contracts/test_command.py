"""Hydra's command line as people know it: multirun, --cfg, --info, completion, help."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from recipe import REPOSITORY
from recipe.hint.command.compose import flat_names, primary_config
from recipe.hint.methods import METHODS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("config_paths")]

LONG = pytest.mark.long
MAIN = REPOSITORY / "recipe/hint/main_hint.py"
# The real command with another program for each job: it notes what it was given, and ends.
COMMAND = """
from pathlib import Path
from recipe.hint import main_hint
run_sweep = main_hint.run_sweep
main_hint.run_sweep = lambda _, *given: run_sweep([str(Path(__file__).with_name("job.py"))], *given)
main_hint.main()
"""
JOB = """
import json, os, sys, time
given = dict(arg.lstrip("+").split("=", 1) for arg in sys.argv[1:] if "=" in arg)
with open("jobs.jsonl", "a") as file:
    file.write(json.dumps({"pid": os.getpid(), "parent": os.getppid()} | given) + "\\n")
method = given["trainer.method"]
if method == "fixed":
    open("started", "w").close()
    time.sleep(60)
sys.exit({"ghpo": 3}.get(method, 0))
"""


def run(folder: Path, *arguments: str, script: Path = MAIN, **environment: str):
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def sweep_script(folder: Path) -> Path:
    (folder / "job.py").write_text(JOB)
    path = folder / "command.py"
    path.write_text(COMMAND)
    return path


def jobs_of(folder: Path) -> list[dict]:
    path = folder / "jobs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_folders(jobs) -> list[Path]:
    return [Path(job["hint.run_dir"].strip("'")) for job in jobs]


def test_each_job_has_a_process_and_a_folder_and_a_failed_one_ends_no_other(tmp_path):
    # Settings before and after the option, as one types them.
    given = ["hint.seed=1,2", "-m", "trainer.method=grpo,ghpo", "trainer.total_epochs=2"]
    end = run(tmp_path, *given, script=sweep_script(tmp_path))
    jobs = jobs_of(tmp_path)
    expected = [(seed, method) for seed in "12" for method in ("grpo", "ghpo")]
    assert [(job["hint.seed"], job["trainer.method"]) for job in jobs] == expected
    assert {job["hardware"] for job in jobs} <= {"laptop"}  # where there is no GPU
    assert {job["trainer.total_epochs"] for job in jobs} == {"2"}
    assert len({job["pid"] for job in jobs}) == 4
    folders = run_folders(jobs)
    names = [f"{at}-seed-{seed}-method-{method}" for at, (seed, method) in enumerate(expected)]
    assert [folder.name for folder in folders] == names
    assert {folder.parent.parent for folder in folders} == {tmp_path / "outputs"}
    assert end.returncode == 2
    assert end.stderr.splitlines()[-1] == (
        "error: 2 of 4 jobs failed: 1-seed-1-method-ghpo (run: exit code 3), "
        "3-seed-2-method-ghpo (run: exit code 3)"
    )


@pytest.mark.parametrize(
    ("given", "folders"),
    [
        (["-m", "trainer.experiment_name=pair"], ["outputs/pair/0", "outputs/pair/1"]),
        (["--multirun", "hint.run_dir='runs/a b'"], ["runs/a b/0", "runs/a b/1"]),
        (["hydra.mode=MULTIRUN", "hydra.sweep.dir=mine"], ["mine/0", "mine/1"]),
    ],
    ids=lambda value: str(value[-1]),
)
def test_the_folders_of_the_jobs_are_where_the_command_says(given, folders, tmp_path):
    end = run(tmp_path, "trainer.method=grpo,sage", *given, script=sweep_script(tmp_path))
    assert (end.returncode, end.stderr) == (0, "")
    names = [f"{each}-method-{name}" for each, name in zip(folders, ("grpo", "sage"), strict=True)]
    assert run_folders(jobs_of(tmp_path)) == [tmp_path / each for each in names]


@pytest.mark.parametrize("place", ["hint.run_dir=runs/${trainer.method}", "hint.run_dir=a,b"])
def test_a_sweep_has_one_folder_in_which_each_job_gets_its_own(place, tmp_path):
    end = run(tmp_path, "-m", "trainer.method=grpo,sage", place, script=sweep_script(tmp_path))
    assert end.returncode == 2 and end.stderr.startswith("error: hint.run_dir is the folder of")
    assert jobs_of(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interruption_ends_the_job_and_starts_no_other(number, code, word, tmp_path):
    process = subprocess.Popen(
        [sys.executable, str(sweep_script(tmp_path)), "-m", "trainer.method=grpo,fixed,sage"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # A shell that starts the tests in its background has them ignore it, and so its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr.splitlines()[-1:]) == (code, [f"error: {word}"])
    assert [job["trainer.method"] for job in jobs_of(tmp_path)] == ["grpo", "fixed"]
    with pytest.raises(ProcessLookupError):
        os.kill(jobs_of(tmp_path)[1]["pid"], 0)


def test_the_settings_are_printed_as_yaml_and_nothing_else(tmp_path):
    end = run(tmp_path, "trainer.method=grpo", "--cfg", "job", "data.seed=5")
    assert (end.returncode, end.stderr) == (0, "")
    node = yaml.safe_load(end.stdout)
    assert (node["trainer"]["method"], node["data"]["seed"]) == ("grpo", 5)
    assert node["hint"]["seed"] == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hardware=gpu1", {"hardware=gpu1", "hardware=gpu1_tiny"}),
        ("-m hint.so", {"hint.source="}),
    ],
)
def test_the_shell_is_told_what_may_follow(line, expected, tmp_path):
    end = run(tmp_path, "-sc", "query=bash", COMP_LINE=f"python recipe/hint/main_hint.py {line}")
    assert (end.returncode, end.stderr) == (0, "")
    assert set(end.stdout.split()) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--info"], ["Installed Hydra Plugins", "Config search path"]),
        pytest.param(["--hydra-help"], ["--multirun", "--shell-completion"], marks=LONG),
    ],
    ids=lambda value: " ".join(value) if value[0][0] == "-" else "",
)
def test_hydras_own_options_work(arguments, words, tmp_path):
    end = run(tmp_path, *arguments)
    assert end.returncode == 0, end.stderr
    assert [word for word in words if word not in end.stdout] == []
    assert list(tmp_path.iterdir()) == []


def test_the_help_is_one_screen_with_methods_presets_and_twenty_settings(tmp_path):
    end = run(tmp_path, "--help")
    assert (end.returncode, end.stderr) == (0, "")
    lines = end.stdout.splitlines()
    assert len(lines) <= 45 and max(map(len, lines)) <= 100
    words = set(end.stdout.replace(",", " ").split())
    for group in ("hardware", "experiment"):
        assert {path.stem for path in (REPOSITORY / "configs" / group).glob("*.yaml")} <= words
    assert set(METHODS) <= words
    settings = [
        line.split()[0].split("=") for line in lines if line.startswith("  ") and "=" in line
    ]
    node = OmegaConf.to_container(primary_config(), resolve=False)
    assert len(settings) == 20
    assert {name for name, *_ in settings} <= set(flat_names(node))
    assert ["data.train_batch_size", str(node["data"]["train_batch_size"])] in settings
    assert ["hint.max_level", str(node["hint"]["max_level"])] in settings
