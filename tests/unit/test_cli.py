"""The command line before Hydra."""

import importlib

import pytest

from recipe.hint.command import choose_hardware, given_settings, translated
from recipe.run.ending import Parser, errors_in_one_line


def test_the_last_value_of_a_setting_wins():
    assert given_settings(["a.b=1", "+c=x=y", "a.b=2", "--help"]) == {"a.b": "2", "c": "x=y"}


def test_names_of_the_release_become_verls_and_a_home_is_found(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    rollout = "actor_rollout_ref.rollout"
    given = [f"{rollout}.num_generations_per_prompt=4", "data.val_files=[~/a,~/b]", "~data"]
    assert translated(given) == [
        f"{rollout}.n=4",
        "data.val_files=[/home/me/a,/home/me/b]",
        "~data",
    ]


def test_without_a_gpu_the_laptop_preset_is_chosen_and_said():
    argv, notice = choose_hardware(["trainer.method=sage"], has_gpu=False)
    assert argv == ["hardware=laptop", "trainer.method=sage"]
    assert "no GPU found" in notice and "where you name none" in notice


@pytest.mark.parametrize(("given", "has_gpu"), [(["hardware=gpu1"], False), ([], True)])
def test_a_chosen_preset_or_a_gpu_leaves_the_command_alone(given, has_gpu):
    assert choose_hardware(given, has_gpu) == (given, "")


def test_an_error_of_the_system_is_told_in_one_line_with_its_file(capsys):
    with pytest.raises(SystemExit) as end, errors_in_one_line():
        raise OSError(28, "No space left on device", "/runs/config.yaml")
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: /runs/config.yaml: No space left on device\n"


@pytest.mark.parametrize("program", ["campaign", "export", "grade", "prepare", "report", "tiny"])
def test_a_wrong_argument_is_told_in_one_line(program, capsys):
    main = importlib.import_module(f"recipe.hint.main_{program}").main
    for arguments in (["--no-such\noption"], ["a", "b", "-o", "c", "--no-such\noption"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("program", ["export", "grade", "prepare", "report", "tiny"])
def test_an_interrupted_command_ends_with_one_line(program, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "parse_args", interrupted)
    with pytest.raises((SystemExit, KeyboardInterrupt), match="130"):
        importlib.import_module(f"recipe.hint.main_{program}").main(["a", "b"])
    assert capsys.readouterr().err == "error: interrupted\n"
