"""The arguments of main_tiny.py."""

import pytest

from recipe.worlds import build


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tables", "2"], "--tables needs --world one_turn, and --out"),
        (["--only", "problems,bass"], "unknown part bass; choose from problems, tokenizer, base"),
        (["--only", "measurement"], "build the base first"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_in_one_line(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        build.main(arguments)
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in printed and printed.count("\n") == 1
