"""Tables, samples and figures of training runs on a terminal."""

import pyarrow as pa
import pyarrow.parquet as pq
from ends import code_of
from page_runs import metrics, sample, write_run

from recipe.study.report_command import main, training_table
from recipe.study.runs import read_run


def run_with(folder, **given):
    return write_run(folder, rows=[metrics(0, 0.0), metrics(1), metrics(2, 0.5)][1:], **given)


def test_the_table_shows_the_last_validation_the_tokens_and_the_minutes(tmp_path, capsys):
    folders = [run_with(tmp_path / place / "run") for place in ("x", "y")]
    problems = tmp_path / "problems.parquet"
    pq.write_table(pa.table({"data_source": ["tiny/hard"] * 200}), problems)
    config = folders[0] / "config.yaml"
    config.write_text(config.read_text().replace("val_files: []", f"val_files: {problems}"))
    assert main([*map(str, folders)]) == 0
    lines = capsys.readouterr().out.splitlines()
    # 2 x (900 + 100) tokens, 2 x 3 s; Wilson for 0.5 of 200: 0.5 +- 0.0686
    cells = [each.strip() for each in lines[2].split("|")[1:-1]]
    assert cells == [str(folders[0]), "sage", "2", "50.0 %", "43.1 - 56.9", "2k", "0.1"]
    table = training_table([read_run(folders[1])], "tiny/hard")  # its problems cannot be counted
    assert "|   50.0 % |    - |" in table[2]


def test_a_folder_or_a_source_that_is_not_there_is_one_line(tmp_path, capsys):
    folder = str(run_with(tmp_path / "run"))
    for arguments, said in (
        ([str(tmp_path)], "is not the folder of a run"),
        ([folder, "--source", "tiny/hrad"], "no run validated on 'tiny/hrad'; give --source tiny/"),
        (["html", str(tmp_path), "-o", str(tmp_path / "page.html")], "is not the folder of a run"),
        (["smaples", folder], "smaples is not the folder of a run"),
    ):
        assert code_of(main, arguments) == 2
        error = capsys.readouterr().err.splitlines()
        assert error[-1].startswith("error: ") and said in error[-1]


def test_samples_are_a_few_lines_each_the_newest_last_and_escaped(tmp_path, capsys):
    rows = [
        sample(step, "p", (1, "correct", "so\n\x1b[2J 5"), why=["leaked"]) for step in range(30)
    ]
    rows += [sample(31, "q", (0, "wrong", "6"))]
    rows[-2]["responses"][0]["ignored"] = "apples"
    folder = str(write_run(tmp_path / "run", samples=rows))
    assert main(["samples", folder, "--why", "leaked", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("step")] == ["28", "29"]
    assert "  level 1, 1 x correct, by number, reward 1.0, trains, ignored: apples" in lines
    assert r"    response: so \x1b[2J 5" in lines
    assert lines[-1] == "2 samples shown; by reason there are: leaked 30, random 1"
    assert main(["samples", folder, "--step", "77"]) == 0
    assert capsys.readouterr().out == "0 samples shown; by reason there are: none\n"
