"""A damaged run folder ends each report in one line, never in a traceback."""

import contextlib
import io
import json
import random
import shutil

import pytest
import yaml
from ends import code_of
from hypothesis import given
from hypothesis import strategies as st
from response_rows import rows, write_rows

from recipe.hint.main_report import main
from recipe.study.results import write_results

VERDICT = {"level": 1, "rows": [0, 3], "trains": True, "reward": 1.0, "reason": "correct"} | {
    "basis": "number", "extracted": "5", "ignored": "",
    "why": [], "response": "it is 5",
}  # fmt: skip
SAMPLES = [
    {"step": step, "why": ["random"], "problem_id": "p7", "problem": "How many?", "answer": "5"}
    | {"rounds": [{"level": 1, "hint_status": "ok", "hint": "think", "leaks": False}]}
    | {"responses": [VERDICT], "left_out": 0}
    for step in (1, 2)
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder that is both a training run and an evaluation."""
    folder = tmp_path_factory.mktemp("run")
    config = {"trainer": {"method": "sage"}, "data": {"val_files": [], "val_max_samples": -1}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    steps = [
        {"step": n, "timing_s/step": 3.0, "hint/rollout_tokens": 900.0, "hint/tokens": 100.0}
        | {"hint/zero_signal_after": 0.25, "val-core/tiny/hard/acc/mean@4": 0.5, "actor/lr": 1e-6}
        for n in (1, 2)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SAMPLES))
    write_rows(folder / "evaluation", "aime24", rows("aime24", a="+-", b="--"))
    write_rows(folder / "evaluation", "math500", rows("math500", a="++", b="-t", c="nc"))
    write_results(
        folder / "evaluation",
        {"aime24": ["a", "b"], "math500": ["a", "b", "c"]},
        model="outputs/base",
        sampling={"temperature": 0.6},
        num_responses=2,
        wall_s={"aime24": 90.0, "math500": 90.0},
    )
    return folder


@pytest.fixture
def folder(sound, tmp_path):
    """A copy, for damage."""
    return shutil.copytree(sound, tmp_path / "run")


FILES = ["config.yaml", "metrics.jsonl", "evaluation/results.json", "evaluation/table.md"] + [
    "samples.jsonl",
    "evaluation/samples/aime24.jsonl",
    "evaluation/samples/math500.jsonl",
]
# What a text of JSON or YAML may turn into, beside being cut, emptied or shuffled.
TOKENS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "null",
    "[]",
    "{}",
    "[1]",
    '"x"',
    "-1",
    "true",
    "0",
] + [
    "1" + 400 * "0",
    "1.5",
    "\x00",
    "\ufeff",
    "{",
    "}",
    ":",
    "- ",
    "\t",
    "!!python/object:x",
    "&a *a",
    "\n",
]


def damaged(data: bytes, number: int) -> bytes:
    """The content of a file with one or two faults, which follow from the number."""
    draw = random.Random(number)
    for _ in range(draw.randint(1, 2)):
        at, to = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        kind = draw.randrange(6)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + bytes(draw.randrange(256) for _ in range(4)) + data[at:]
        elif kind == 2:
            lines = data.splitlines(keepends=True)
            draw.shuffle(lines)
            data = b"".join(lines[draw.randint(0, 1) :])
        elif kind == 3:
            data = data[:at] + data[to:]
        else:
            data = with_token(data, draw)
    return data


def with_token(data: bytes, draw: random.Random) -> bytes:
    """Another token in the place of a value, a key or a whole file."""
    parts = data.decode("utf-8", "replace").replace(",", "\0,\0").replace(":", "\0:\0").split("\0")
    parts[draw.randrange(len(parts))] = draw.choice(TOKENS)
    return "".join(parts).encode()


@given(
    st.sampled_from(FILES),
    st.integers(0, 2**32),
    st.sampled_from(["", "evaluation", "compare", "samples"]),
)
def test_any_damage_is_told_in_one_line(sound, tmp_path_factory, file, number, command):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(sound, folder)
    path = folder / file
    path.write_bytes(damaged(path.read_bytes(), number))
    commands = {
        "": ["--problems=9", f"--figure={folder}/a.svg", str(folder), str(sound)],
        "evaluation": ["evaluation", str(folder)],
        "compare": ["compare", "--common", str(folder), str(sound)],
        "samples": ["samples", str(folder)],
    }
    out, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = code_of(main, commands[command])
    err = told.getvalue()
    assert code in (0, 1, 2)
    assert (err.count("\n"), err[:7]) == ((1, "error: ") if code == 2 else (0, "")), err


@pytest.mark.parametrize("file", FILES[:3] + ["evaluation/samples/aime24.jsonl"])
@pytest.mark.parametrize("spoil", ["a folder", "nobody may read it", "empty"])
def test_a_file_that_is_none_is_told_in_one_line(sound, folder, capsys, file, spoil):
    path = folder / file
    path.unlink()
    if spoil == "a folder":
        path.mkdir()
    elif spoil == "nobody may read it":
        path.symlink_to("/proc/self/mem")  # opens, and cannot be read
    else:
        path.write_text("")
    for arguments in ([], ["evaluation"], ["compare", str(sound)]):
        code = code_of(main, [*arguments, *([] if arguments else ["--problems=9"]), str(folder)])
        err = capsys.readouterr().err
        assert (err.count("\n"), err[:7]) == ((1, "error: ") if code == 2 else (0, "")), err


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "null", '"0.5"'])
@pytest.mark.parametrize(
    "name", ["step", "hint/tokens", "timing_s/step", "val-core/tiny/hard/acc/mean@4"]
)
def test_a_number_of_a_report_that_is_none_is_named(folder, capsys, name, word):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    row = json.loads(lines[1])
    lines[1] = json.dumps(row | {name: "HERE"}).replace('"HERE"', word)
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert code_of(main, ["--problems=9", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "metrics.jsonl: line 2" in err and name in err and err.count("\n") == 1


def test_another_metric_of_a_run_that_diverged_is_no_hindrance(folder):
    text = (folder / "metrics.jsonl").read_text().replace("1e-06", "NaN")
    (folder / "metrics.jsonl").write_text(text)
    assert "NaN" in text
    assert main(["--problems=9", str(folder)]) == 0


@pytest.mark.parametrize("figure", [True, False])
def test_a_source_that_no_run_has_is_told_with_those_there_are(sound, tmp_path, capsys, figure):
    more = [f"--figure={tmp_path}/a.svg"] if figure else []
    assert code_of(main, [str(sound), "--source=gsm8k", *more]) == 2
    told = "error: no run validated on 'gsm8k'; give --source with one of tiny/hard\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("command", "option"),
    [("", "--figure=a.svg"), ("html", "-o=a.html"), ("campaign", "-o=a.md")]
    + [("campaign", "-o=b.md --figure=a.svg")],
)
@pytest.mark.parametrize(
    ("place", "told"),
    [("none", "none: no such folder; make it"), (".", "is a folder; name a file")],
)
def test_a_file_that_cannot_be_written_is_told_before_anything_is_read(
    tmp_path, monkeypatch, capsys, command, option, place, told
):
    monkeypatch.chdir(tmp_path)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in ("a.svg", "a.html", "a.md"):
        (tmp_path / name).mkdir()
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), "damaged", *option.replace("=a", f"={place}/a").split()])
    out, err = capsys.readouterr()
    assert told in err and (out, err.count("\n")) == ("", 1)


def test_a_file_in_place_of_the_kept_folder_is_told_before_anything_is_read(tmp_path, capsys):
    (tmp_path / "taken").write_text("notes")
    assert code_of(main, ["keep", str(tmp_path), "-o", str(tmp_path / "taken")]) == 2
    assert f"--output {tmp_path}/taken is a file; give a folder" in capsys.readouterr().err
