"""The report's errors."""

from ends import code_of

from recipe.study.report_command import main


def test_a_folder_that_is_no_run_and_a_command_that_is_none_are_one_line(tmp_path, capsys):
    page = ["-o", str(tmp_path / "page.html")]
    for arguments, said in (
        (["html", str(tmp_path), *page], "error: "),
        (["sample", str(tmp_path)], "invalid choice: 'sample'"),
    ):
        assert code_of(main, arguments) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
