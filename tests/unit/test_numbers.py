"""``nan`` and ``inf`` are refused wherever a number is read, by name."""

import json
from dataclasses import fields, is_dataclass

import pytest
from omegaconf import OmegaConf

from recipe.hint import main_grade, main_prepare
from recipe.hint.adapter.preflight.settings import check_sections
from recipe.hint.settings import HintSettings, read_settings
from recipe.problems.prepare import read_local
from recipe.run.errors import ConfigError, DataError
from recipe.run.typed import check_finite, finite, read_json

NOT_FINITE = ["nan", "inf", "-inf", "NaN", "1e999"]
IN_JSON = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"]


def float_settings(value, path=()):
    """Path of every setting that holds a number, by the defaults."""
    for item in fields(value):
        found = getattr(value, item.name)
        if is_dataclass(found):
            yield from float_settings(found, (*path, item.name))
        elif isinstance(found, float) or item.type in ("float", "float | None"):
            yield (*path, item.name)


FLOATS = sorted(float_settings(HintSettings()))


@pytest.mark.parametrize("path", FLOATS, ids=".".join)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_every_setting_of_a_number_refuses_it(path, value):
    node = value
    for name in reversed(path):
        node = {name: node}
    with pytest.raises(ConfigError, match=rf"hint\.{'.'.join(path)}={value} must be a finite"):
        read_settings(node)


def test_there_are_such_settings():
    assert len(FLOATS) >= 10


def test_a_number_deep_in_a_setting_that_is_a_mapping_is_refused_too():
    with pytest.raises(ConfigError, match=r"hint\.teacher\.body\.a\[1\]=inf must be a finite"):
        read_settings({"teacher": {"body": {"a": [1, float("inf")]}}})


def test_verl_settings_are_looked_at_before_anything_else():
    sections = ("trainer", "hint", "data", "actor_rollout_ref", "algorithm", "reward", "ray_kwargs")
    config = OmegaConf.create({name: {} for name in sections})
    check_sections(config)
    config.actor_rollout_ref = {"actor": {"optim": {"lr": float("nan")}}}
    with pytest.raises(ConfigError, match=r"actor_rollout_ref\.actor\.optim\.lr=nan must be a fin"):
        check_sections(config)


@pytest.mark.parametrize("word", NOT_FINITE)
@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (main_grade.main, ["in.jsonl", "out.jsonl", "--timeout-s"]),
        (main_prepare.main, ["in.jsonl", "out.parquet", "--overlap-share"]),
        *(
            (main_prepare.main, ["hints", "in.parquet", "out.parquet", "--model=m", name])
            for name in ("--temperature", "--top-p", "--timeout-s")
        ),
    ],
    ids=lambda given: given[-1] if isinstance(given, list) else "",
)
def test_every_number_of_a_command_line_refuses_it(main, arguments, word, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*arguments[:-1], f"{arguments[-1]}={word}"])
    assert f"argument {arguments[-1]}: '{word}' is not a finite number" in capsys.readouterr().err


@pytest.mark.parametrize("word", IN_JSON)
def test_json_that_holds_it_is_no_json(word):
    for text in (word, f"[{word}]", f'{{"a": {{"b": {word}}}}}'):
        with pytest.raises(ValueError, match="is not a finite number"):
            read_json(text)


def test_json_without_it_is_read():
    assert read_json(b'{"a": [1, -2.5e3, "NaN", null]}') == {"a": [1, -2500.0, "NaN", None]}
    with pytest.raises(ValueError, match="nested too deep"):
        read_json("[" * 100_000)
    assert finite("1e3") == 1000.0
    check_finite({"a": [1, 2.0, "inf", None]}, "")


@pytest.mark.parametrize("word", IN_JSON)
@pytest.mark.parametrize("name", ["answer", "id", "score_before"])
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_row_of_a_file_of_problems_refuses_it(tmp_path, word, name, form):
    row = json.dumps({"problem": "x", "answer": "1"} | {name: 0}).replace("0", word)
    (tmp_path / f"a.{form}").write_text(f"[{row}]" if form == "json" else row + "\n")
    with pytest.raises(DataError, match=rf"a\.{form}:.* is not JSON: .*is not a finite number"):
        read_local(tmp_path / f"a.{form}")


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "-inf", " Inf "])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_an_answer_that_a_program_wrote_for_no_number_is_refused(tmp_path, word, form):
    mark = "\t" if form == "tsv" else ","
    (tmp_path / f"a.{form}").write_text(f"problem{mark}answer\nx{mark}{word}\n")
    with pytest.raises(DataError, match="line 2, column `answer`: .* is not a finite number"):
        read_local(tmp_path / f"a.{form}")


@pytest.mark.parametrize("word", [r"\infty", r"-\infty", "infinity", "information", "n a n"])
def test_an_answer_in_words_or_latex_is_none_of_them(tmp_path, word):
    (tmp_path / "a.jsonl").write_text(json.dumps({"problem": "x", "answer": word}))
    assert read_local(tmp_path / "a.jsonl").rows[0]["answer"] == word


@pytest.mark.parametrize("word", IN_JSON)
def test_a_row_to_grade_refuses_it(tmp_path, word):
    row = {"id": "a", "kind": "maths", "response": r"\boxed{1}", "answer": 0}
    rows = [json.dumps(row).replace("0", word), json.dumps(row | {"id": "b"})]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    with pytest.raises(SystemExit, match="1"):
        main_grade.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")])
    told, _ = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert told["reason"] == "error"
    assert "is not a finite number" in told["message"]
