"""Every run of configs/experiment composes and passes the checks before the start.

CI tries each file and each kind of settings once, `long` all of them.
"""

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.hint import main_hint
from recipe.hint.adapter import models
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.teacher import ResponseCache
from recipe.run import devices
from recipe.study.campaign import read_campaign

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem: path for path in (ROOT / "configs/experiment").glob("*.yaml")}
# Of our own, not of a paper: on an embedded world, and two whose models have to be made first.
WORLDS = {"two_turn", "three_turn"}
MADE_FIRST = {"real", "foreign"}
OWN = WORLDS | MADE_FIRST
RUNS = list(csv.DictReader((ROOT / "configs/experiment/reported.csv").open(encoding="utf-8")))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """The embedded model with the positions of a large one."""
    folder = tmp_path_factory.mktemp("model") / "base"
    shutil.copytree(ROOT / "data/tiny/base", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32768}))
    return folder


@pytest.fixture(scope="module")
def train_file(tmp_path_factory):
    """The embedded problems, with hints in columns."""
    path = tmp_path_factory.mktemp("data") / "train.parquet"
    table = pq.read_table(ROOT / "data/tiny/train.parquet")
    for level in (1, 2, 3):
        table = table.append_column(f"hint_level_{level}", pa.array(["a hint."] * len(table)))
    pq.write_table(table, path)
    return path


def asked(run):
    """A run's settings without a level's number: they repeat over files and levels."""
    return re.sub(r"level=\d", "level", run["settings"])


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(
            run,
            id=f"{run['experiment']} {run['settings']}",
            marks=pytest.mark.long
            if asked(run) in map(asked, RUNS[:number])
            and run["experiment"] in [each["experiment"] for each in RUNS[:number]]
            else [],
        )
        for number, run in enumerate(RUNS)
    ],
)
def test_an_experiment_says_what_it_would_run(
    run, stand_in, train_file, composed_once, tmp_path, monkeypatch, capsys
):
    for module in (main_hint, devices):
        monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(models, "flash_attn_missing", lambda: None)
    argv = [
        "main_hint.py",
        f"experiment={run['experiment']}",
        *run["settings"].split(),
        "preflight_only=true",
        "trainer.total_epochs=100",  # the embedded problems are few
        f"actor_rollout_ref.model.path={stand_in}",
        f"data.train_files={train_file}",
        f"data.val_files={ROOT / 'data/tiny/val_easy.parquet'}",
        f"hint.run_dir={tmp_path}",
    ]
    if run["experiment"] == "archer_math":  # the embedded problems are fewer than its 256
        argv += ["data.train_batch_size=128", "actor_rollout_ref.actor.ppo_mini_batch_size=128"]
    if "hint.source=teacher" in run["settings"]:
        # With an answer in the cache, nobody has to be there.
        ResponseCache(tmp_path / "answers").add("key", WrittenText("text", 1))
        argv += ["hint.teacher.base_url=http://localhost:8000/v1", "hint.teacher.model=any"]
        argv += [f"hint.teacher.cache_dir={tmp_path}/answers"]
    monkeypatch.setattr(sys, "argv", argv)
    main_hint.main()
    lines = capsys.readouterr().out.splitlines()
    for start, words in says(run, lines[0].split()[1].strip(",")).items():
        line = next(line for line in lines if line.startswith(start))
        assert [word for word in words if word not in line] == [], line


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_an_experiment_of_the_embedded_worlds_runs_as_it_is(name, tmp_path, monkeypatch, capsys):
    argv = ["main_hint.py", f"experiment={name}", f"hint.run_dir={tmp_path}", "preflight_only=true"]
    monkeypatch.setattr(sys, "argv", argv)
    main_hint.main()
    said = capsys.readouterr().out
    assert f"data/{name}/base, context" in said
    assert "16 prompts x 8 rollouts" in said


ARMS = [
    pytest.param(run, id=f"{path.stem} {run.arm}")
    for path in sorted((ROOT / "configs/campaign").glob("*.yaml"))
    for run in read_campaign(path).plans()
    if run.name.endswith("seed-1")
    and not {*run.settings} & {f"experiment={each}" for each in MADE_FIRST}
]


@pytest.mark.long
@pytest.mark.parametrize("run", ARMS)
def test_an_arm_of_a_campaign_passes_the_checks(run, tmp_path, monkeypatch, capsys):
    # The second world is built by main_tiny.py in minutes; it has the first one's files.
    settings = [setting.replace("outputs/tiny_2", "data/tiny") for setting in run.settings]
    argv = ["main_hint.py", *settings, f"hint.run_dir={tmp_path}", "preflight_only=true"]
    if "hint.source=teacher" in settings:
        ResponseCache(tmp_path / "answers").add("key", WrittenText("text", 1))
        argv += [f"hint.teacher.cache_dir={tmp_path}/answers"]
    monkeypatch.setattr(sys, "argv", argv)
    main_hint.main()
    assert "batch     16 prompts x 8 rollouts" in capsys.readouterr().out


def says(run, method):
    """What the summary must hold: method, source and batch follow from the run."""
    name, settings = run["experiment"], dict(each.split("=") for each in run["settings"].split())
    group = {"fig3": 32, "fig5": 32, "table1_qwen3_4b": 4, "table1_luffy": 7}.get(name, 8)
    group = int(settings.get("actor_rollout_ref.rollout.n", group))
    small = {"ghpo": 112, "table1_sft": 64, "archer_math": 128}
    is_turns = re.fullmatch(r"(\w+_)?(score|archer)_\w+", name)
    batch = small.get(name, 32 if is_turns else 128)
    own = {"ghpo": "solution_prefix", "scaf": "dataset", "archer": "several turns"}
    own |= dict.fromkeys(("grpo", "luffy", "sft"), "without hints")
    own |= dict.fromkeys(("score", "score-guided", "mlmt"), "several turns")
    hints = own.get(method, "self_generated")
    return {
        "method": [settings.get("hint.source", hints)],
        "batch": [f"{batch} prompts x {group} rollouts"],
        "devices": ["8 cuda"],
    }


def test_every_file_has_runs_and_says_where_it_comes_from():
    assert set(FILES) - OWN == {run["experiment"] for run in RUNS}
    for name in set(FILES) - OWN:
        path = FILES[name]
        header = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))
        for word in ("arXiv:", "Hardware:", "reported.csv"):
            assert word in header, (name, word)
        for run in RUNS:
            assert run["experiment"] != name or run["paper"] in header


def test_every_run_has_a_number_or_says_why_not():
    assert [run for run in RUNS if not (run["paper"] and run["place"] and run["hardware"])] == []
    assert [run for run in RUNS if not (run["average"] or run["note"])] == []
    numbers = [run["average"] for run in RUNS if run["average"]]
    assert len(numbers) == 35 and all(0 < float(number) < 100 for number in numbers)
