"""The report's errors, and samples on a terminal."""

from ends import code_of
from page_runs import metrics, sample, write_run

from recipe.study.report_command import main


def test_a_folder_that_is_no_run_and_a_command_that_is_none_are_one_line(tmp_path, capsys):
    page = ["-o", str(tmp_path / "page.html")]
    for arguments, said in (
        (["html", str(tmp_path), *page], "error: "),
        (["sample", str(tmp_path)], "invalid choice: 'sample'"),
        (["samples", str(tmp_path)], "is not the folder of a run"),
    ):
        assert code_of(main, arguments) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]


def test_samples_are_the_newest_last_and_escaped(tmp_path, capsys):
    rows = [
        sample(step, "p", (1, "correct", "so\n\x1b[2J\u202e 5"), why=["leaked"])
        for step in range(30)
    ]
    rows += [sample(31, "q", (0, "wrong", "6"))]
    folder = str(write_run(tmp_path / "run", samples=rows, rows=[metrics(1)]))
    assert main(["samples", folder, "--why", "leaked", "--limit", "2"]) == 0
    said = capsys.readouterr().out
    steps = [line for line in said.splitlines() if line.startswith("step")]
    assert steps == ["step: 28", "step: 29"] and said.endswith("2 samples shown\n")
    assert "\x1b" not in said and "\u202e" not in said
    assert main(["samples", folder, "--step", "77"]) == 0
    assert capsys.readouterr().out == "0 samples shown\n"
