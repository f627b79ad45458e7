"""Settings that samples depend on, and lines that are no samples."""

import json

import pytest

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.runtime.sample_files import (
    Clock,
    append_samples,
    check_settings_unchanged,
    resume_samples,
    write_settings,
)

SETTINGS = {"model": "a", "num_samples": 4, "files": {"x.parquet": "12ab"}}


def test_an_evaluation_goes_on_only_with_the_settings_it_began_with(tmp_path):
    check_settings_unchanged(tmp_path, SETTINGS)  # nothing is there yet
    write_settings(tmp_path, SETTINGS)
    check_settings_unchanged(tmp_path, SETTINGS)
    with pytest.raises(ConfigError, match="num_samples=4, now it is 8; give another"):
        check_settings_unchanged(tmp_path, SETTINGS | {"num_samples": 8})
    with pytest.raises(ConfigError, match="files="):
        check_settings_unchanged(tmp_path, SETTINGS | {"files": {"x.parquet": "34cd"}})


def test_samples_come_back_by_benchmark_and_id(tmp_path):
    write_settings(tmp_path, SETTINGS)
    rows = [{"benchmark": "a/b", "id": "1", "sample": k} for k in (0, 1)]
    append_samples(tmp_path, "a/b", rows)
    append_samples(tmp_path, "c", [{"benchmark": "c", "id": "1", "sample": 0}])
    assert resume_samples(tmp_path) == {
        ("a/b", "1"): frozenset({0, 1}),
        ("c", "1"): frozenset({0}),
    }


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    write_settings(tmp_path, SETTINGS)
    path = tmp_path / "samples" / "a.jsonl"
    good = json.dumps({"benchmark": "a", "id": "1", "sample": 0})
    path.write_text(f"{good}\nnot json\n{good}\n")
    with pytest.raises(DataError, match=r"a.jsonl: line 2 is not a sample .* take the line out"):
        resume_samples(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', "\x00"])
def test_a_damaged_file_of_an_evaluation_that_goes_on_is_named(tmp_path, text):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(DataError, match=r"settings\.json .*; start a new evaluation"):
        check_settings_unchanged(tmp_path, SETTINGS)
    (tmp_path / "clock.json").write_text(text)
    with pytest.raises(DataError, match=r"clock\.json .*; start a new evaluation"):
        Clock(tmp_path)
