"""The arguments of main_tiny.py."""

import pytest

from recipe.hint import main_tiny


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "-1"], "--steps -1: it must be at least 1"),
        (["--threads", "0"], "--threads 0: it must be at least 1"),
        (["--seed", "-1"], "--seed -1: it must be at least 0"),
        (["--tables", "2"], "--tables 2: name its folder with --out; data/ is the world's own"),
        (
            ["--tables", "2", "--out", "other", "--world", "two_turn"],
            "--tables with --world two_turn: only one_turn has secret tables",
        ),
        (["--only", "problems,bass"], "unknown part bass; choose from problems, tokenizer, base"),
        (["--only", "tokenizer", "--out", "file"], "file/base: Not a directory; name another"),
    ],
)
def test_an_argument_that_cannot_be_used_is_told_in_one_line(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("here already")
    with pytest.raises(SystemExit, match="2"):
        main_tiny.main(arguments)
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1
    assert (tmp_path / "file").read_text() == "here already"
