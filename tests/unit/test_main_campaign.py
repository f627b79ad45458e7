"""The campaign command."""

from pathlib import Path

import pytest
import yaml
from ends import code_of

from recipe.hint import main_campaign
from recipe.hint.main_campaign import main
from recipe.run.whole_file import claimed

PROGRAMS = Path(__file__).parent / "runtime" / "campaign_programs"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(main_campaign, "PROGRAMS", PROGRAMS)
    path = tmp_path / "some.yaml"
    node = {"title": "t", "arms": {"a": {}, "b": {"settings": ["fails=2"]}}, "seeds": [1]}
    path.write_text(yaml.safe_dump(node))
    return path


def test_a_dry_run_lists_every_run_with_what_comes_next_and_writes_nothing(file, tmp_path, capsys):
    assert main([str(file), "-o", str(tmp_path / "runs"), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a/seed-1: train: hint.seed=1 data.seed=1",
        "b/seed-1: train: fails=2 hint.seed=1 data.seed=1",
    ]
    assert not (tmp_path / "runs").exists()


def test_a_failed_run_gives_exit_code_2_and_the_same_command_ends_well(file, tmp_path, capsys):
    command = [str(file), "-o", str(tmp_path / "runs")]
    assert code_of(main, command) == 2
    assert capsys.readouterr().err.startswith("error: 1 of 2 runs failed: b/seed-1 (train: ")
    assert main(command) == 0
    assert (tmp_path / "runs/campaign.yaml").read_text() == file.read_text()
    assert main([*command, "--dry-run", "--only", "b"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("b/seed-1: done: ")


def test_a_changed_file_is_refused_and_the_one_of_the_runs_stays(file, tmp_path, capsys):
    command = [str(file), "-o", str(tmp_path / "runs"), "--only", "b"]
    assert [code_of(main, command), main(command)] == [2, 0]
    before = file.read_text()
    file.write_text(before.replace("title: t", "title: other").replace("fails=2", "x=2"))
    # Whichever arm is asked for: the page would print the new settings for the old run.
    assert code_of(main, [*command[:-1], "a"]) == 2
    assert "b/seed-1 was made with" in capsys.readouterr().err
    assert (tmp_path / "runs/campaign.yaml").read_text() == before


def test_a_command_that_finds_the_folder_in_use_changes_nothing(file, tmp_path, capsys):
    command = [str(file), "-o", str(tmp_path / "runs"), "--only", "a"]
    assert main(command) == 0
    before = file.read_text()
    file.write_text(before.replace("title: t", "title: other"))
    with claimed(tmp_path / "runs/.lock"):
        assert code_of(main, command) == 2
    assert "in use by another run" in capsys.readouterr().err
    assert (tmp_path / "runs/campaign.yaml").read_text() == before


def test_a_check_that_does_not_end_is_named(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(main_campaign, "_CHECK_S", 1.0)
    file.write_text(file.read_text().replace("fails=2", "hang=1"))
    assert code_of(main, [str(file), "-o", str(tmp_path / "runs"), "--check", "--only", "b"]) == 2
    assert capsys.readouterr().out == "b: its check did not end within 1 s\n"


def test_checks_name_each_arm_that_cannot_start(file, tmp_path, capsys):
    assert code_of(main, [str(file), "-o", str(tmp_path / "runs"), "--check"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines() == ["a: ok", "b: nothing"]
    assert said.err == "error: 1 of 2 arms cannot start\n"
    assert not (tmp_path / "runs").exists()


def claimed_of(file, source, **arms):
    """The file with a claim that arm a is better than arm b, which are given."""
    node = {"title": "t", "seeds": [1], "arms": arms, "settings": ["hardware=laptop"]}
    claim = {"arm": "a", "source": source, "measure": "accuracy", "more_than": "b"}
    file.write_text(yaml.safe_dump(node | {"claims": [claim]}))
    return file


@pytest.mark.parametrize("mode", [[], ["--check"]])
def test_a_claim_about_problems_that_an_arm_will_not_see_ends_before_any_run(
    file, tmp_path, capsys, mode
):
    easy = ["data.val_files=${oc.env:HINT_REPO}/data/tiny/val_easy.parquet"]
    claimed_of(file, "tiny/hard", a={}, b={"evaluation": easy})
    assert code_of(main, [str(file), "-o", str(tmp_path / "runs"), *mode]) == 2
    assert capsys.readouterr().err == (
        f"error: {file}: claims[0]: b will not be evaluated on tiny/hard; choose from tiny/easy, "
        "or change its data.val_files\n"
    )
    assert not (tmp_path / "runs").exists()


def test_a_claim_about_problems_that_both_arms_see_or_that_nobody_can_read_here_may_run(
    file, tmp_path
):
    gone = {"evaluation": ["data.val_files=gone.parquet"]}
    command = [str(claimed_of(file, "tiny/hard", a={}, b=gone)), "-o", str(tmp_path / "runs")]
    assert main(command) == 0
    claimed_of(file, "tiny/hrad", a={}, b=gone)
    assert main(command) == 0  # all is done: the page will tell it


def test_a_setting_of_an_arm_that_there_is_none_of_is_told_with_the_file_and_the_arm(
    file, tmp_path, capsys
):
    claimed_of(file, "tiny/hard", a={"settings": ["trainer.metho=sage"]}, b={})
    assert code_of(main, [str(file), "-o", str(tmp_path / "runs")]) == 2
    told = f"error: {file}: arms.a: trainer.metho is not a setting; did you mean trainer.method?"
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("mode", [[], ["--check"], ["--dry-run"]])
def test_a_file_in_place_of_the_folder_is_refused(file, tmp_path, capsys, mode):
    (tmp_path / "taken").write_text("notes")
    assert code_of(main, [str(file), "-o", str(tmp_path / "taken"), *mode]) == 2
    assert f"-o {tmp_path}/taken is a file; give a folder" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "notes"


def test_a_file_that_is_not_there_is_one_line(tmp_path, capsys):
    assert code_of(main, [str(tmp_path / "no.yaml"), "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
