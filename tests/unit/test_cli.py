"""The command line before Hydra."""

import importlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recipe import PROGRAMS
from recipe.hint.command.aliases import NO_COUNTERPART, given_settings, resolve_aliases
from recipe.hint.command.compose import choose_hardware, nearest
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError
from recipe.run.whole_file import whole_file


def test_the_last_value_of_a_setting_wins():
    assert given_settings(["a.b=1", "+c=x=y", "a.b=2", "--help"]) == {"a.b": "2", "c": "x=y"}


def test_second_names_become_verls_names():
    argv = [
        "actor_rollout_ref.model.pretrained_model_name_or_path=/m",
        "actor_rollout_ref.rollout.num_generations_per_prompt=4",
    ]
    assert resolve_aliases(argv) == [
        "actor_rollout_ref.model.path=/m",
        "actor_rollout_ref.rollout.n=4",
    ]


def test_response_length_sets_both_of_verls_lengths():
    argv = resolve_aliases(["actor_rollout_ref.rollout.response_length=99"])
    assert argv == [
        "actor_rollout_ref.rollout.response_length=99",
        "data.max_response_length=99",
    ]


@pytest.mark.parametrize(
    "pair",
    [
        ("actor_rollout_ref.rollout.num_generations_per_prompt", "actor_rollout_ref.rollout.n"),
        ("actor_rollout_ref.rollout.response_length", "data.max_response_length"),
    ],
)
def test_two_names_with_two_values_are_refused(pair):
    with pytest.raises(ConfigError, match="are two names of one setting"):
        resolve_aliases([f"{pair[0]}=4", f"{pair[1]}=8"])


def test_two_names_with_one_value_are_taken():
    resolve_aliases(["data.max_response_length=5", "actor_rollout_ref.rollout.response_length=5"])


def test_without_a_gpu_the_laptop_preset_is_chosen_and_said():
    argv, notice = choose_hardware(["trainer.method=sage"], has_gpu=False)
    assert argv == ["hardware=laptop", "trainer.method=sage"]
    assert "no GPU found" in notice and "where you name none" in notice


@pytest.mark.parametrize(("given", "has_gpu"), [(["hardware=gpu1"], False), ([], True)])
def test_a_chosen_preset_or_a_gpu_leaves_the_command_alone(given, has_gpu):
    assert choose_hardware(given, has_gpu) == (given, "")


def test_the_nearest_name_is_found_by_its_path_or_by_its_last_part():
    names = ["trainer.method", "trainer.test_freq", "actor_rollout_ref.actor.optim.lr"]
    assert nearest("trainer.mehtodd", names) == "trainer.method"
    assert nearest("optim.lr", names) == "actor_rollout_ref.actor.optim.lr"
    assert nearest("qqqqqqqq", names) is None


def test_the_names_of_the_multi_turn_reference_are_taken():
    argv = ["trainer.method=score-guided", "policy_lm=/m", "rollout_size=32", "lm_lr=5e-6"]
    argv += ["max_new_tokens=512", "temperature=0.7", "max_grad_norm=1.0", "eval_freq=25"]
    argv += ["save_freq=23", "stage1_steps=138", "alpha=5", "beta1=0.01", "beta2=0.25"]
    argv += ["train_guidance_model=false", "guidance_kl_coef=0.05"]
    assert resolve_aliases(argv) == [
        "trainer.method=score-guided",
        "actor_rollout_ref.model.path=/m",
        "data.train_batch_size=32",
        "actor_rollout_ref.actor.optim.lr=5e-6",
        "data.max_response_length=512",
        "actor_rollout_ref.rollout.temperature=0.7",
        "actor_rollout_ref.actor.optim.clip_grad=1.0",
        "trainer.test_freq=25",
        "trainer.save_freq=23",
        "hint.score_guided.stage1_steps=138",
        "hint.score_guided.alpha=5",
        "hint.score_guided.beta1=0.01",
        "hint.score_guided.beta2=0.25",
        "hint.score_guided.train_guide=false",
        "hint.score_guided.guide_kl_coef=0.05",
    ]


@pytest.mark.parametrize(
    ("given", "total"),
    [
        (["stage1_steps=138", "stage2_steps=142"], 280),
        (["stage2_steps=142", "hint.score.stage1_steps=8"], 150),
        (["stage2_steps=50"], 250 + 50),  # the default of stage I
        (["stage2_steps=1", "stage1_steps=1", "iterations=2"], 2),
    ],
)
def test_steps_of_stage_two_are_those_of_the_run_less_stage_one(given, total):
    argv = resolve_aliases(["trainer.method=score", *given])
    assert given_settings(argv)["trainer.total_training_steps"] == str(total)
    assert not [each for each in argv if "stage2" in each]


@pytest.mark.parametrize(
    ("given", "total"),
    [
        (["experiment=score_math", "stage2_steps=142"], 138 + 142),
        (["experiment=two_turn", "stage2_steps=24"], 16 + 24),
        (["experiment=score_math", "trainer.method=score-guided", "stage2_steps=2"], 138 + 2),
        (["experiment=score_math", "stage1_steps=8", "stage2_steps=142"], 8 + 142),
        # The file says nothing of mlmt's stage I, which has no steps by default.
        (["experiment=score_math", "trainer.method=mlmt", "stage2_steps=5"], 5),
    ],
)
def test_stage_one_is_as_long_as_the_experiments_file_says(given, total):
    argv = resolve_aliases(given)
    assert given_settings(argv)["trainer.total_training_steps"] == str(total)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["stage2_steps=9", "stage1_steps=1", "iterations=9"],
            "steps=10 and iterations=9 are two",
        ),
        (["stage2_steps=x"], "stage2_steps=x after stage1_steps=250: both must be whole numbers"),
        (["stage1_steps=1", "hint.score.stage1_steps=2"], "are two names of one setting"),
    ],
)
def test_steps_of_stages_that_do_not_add_up_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        resolve_aliases(["trainer.method=score", *given])


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        (
            "mlmt",
            ["value_coef=0.1", "stop_value_gradients=false", "value_lr=1e-5"],
            ["hint.mlmt.value_bonus=0.1", "hint.mlmt.value_grad=full", "critic.optim.lr=1e-5"],
        ),
        ("mlmt", ["stop_value_gradients=True"], ["hint.mlmt.value_grad=stop"]),
        (
            "archer",
            ["epochs=50", "batch_size=64", "critic_lr=2e-5", "tau=0.1", "gamma=0.95"],
            ["hint.archer.updates=50", "hint.archer.batch_size=64", "critic.optim.lr=2e-5"]
            + ["hint.archer.tau=0.1", "hint.archer.gamma=0.95"],
        ),
        (
            "score",
            ["max_tokens=512", "eval_size=8", "save_path=out", "run_name=one"],
            ["data.max_response_length=512", "data.val_max_samples=8", "hint.run_dir=out"]
            + ["trainer.experiment_name=one"],
        ),
    ],
)
def test_names_of_the_reference_are_those_of_the_methods_settings(method, given, expected):
    assert resolve_aliases([f"trainer.method={method}", *given])[1:] == expected


def test_an_experiment_names_the_method_whose_names_are_meant():
    assert resolve_aliases(["experiment=score_math", "alpha=5"])[1] == "hint.score.alpha=5"
    argv = ["experiment=score_math", "trainer.method=mlmt", "value_coef=0.1"]
    assert resolve_aliases(argv)[2] == "hint.mlmt.value_bonus=0.1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("stop_value_gradients=maybe", "stop_value_gradients=maybe must be true or false"),
        ("guidance_lr=1e-6", "guidance_lr=1e-6 is not read by trainer.method=mlmt: .*one policy"),
        ("capacity=100000", "one pass over the rows that it sampled; drop it"),
        ("agent_type=score", "trainer.method names the method"),
        ("warmup_iter=28", "critic_warmup=N\\+1, .*, for a method with a critic; drop it"),
    ],
)
def test_a_name_of_the_reference_that_means_nothing_is_refused_with_the_reason(given, message):
    with pytest.raises(ConfigError, match=message):
        resolve_aliases(["trainer.method=mlmt", given])


def test_no_name_without_a_counterpart_is_a_setting_of_every_method():
    for name in NO_COUNTERPART:
        with pytest.raises(ConfigError, match="is not read by trainer.method=score"):
            resolve_aliases(["trainer.method=score", f"{name}=1"])
    # ArCHer has some of them.
    assert resolve_aliases(["trainer.method=archer", "capacity=9"])[1] == "hint.archer.capacity=9"
    # To a method without credit of its own they are names like any other.
    assert resolve_aliases(["trainer.method=grpo", "capacity=9"])[1] == "capacity=9"


def test_two_words_for_one_value_agree():
    argv = ["trainer.method=mlmt", "stop_value_gradients=true", "hint.mlmt.value_grad=stop"]
    assert resolve_aliases(argv)[1:] == ["hint.mlmt.value_grad=stop"] * 2
    with pytest.raises(ConfigError, match="stop_value_gradients=false and .*=stop are two names"):
        resolve_aliases([*argv[:1], "stop_value_gradients=false", argv[2]])


def test_a_bare_name_means_nothing_to_a_method_without_it():
    argv = ["trainer.method=grpo", "alpha=5", "stage2_steps=3"]
    assert resolve_aliases(argv) == argv


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
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "unrecognized arguments: " in told or "required: " in told


@pytest.mark.parametrize("program", ["export", "gpu_check", "grade", "prepare", "report", "tiny"])
def test_an_interrupted_command_ends_with_one_line(program, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "parse_args", interrupted)
    with pytest.raises((SystemExit, KeyboardInterrupt), match="130"):
        importlib.import_module(f"recipe.hint.main_{program}").main(["a", "b"])
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize(
    ("program", "is_ours"), [(PROGRAMS / "main_grade.py", True), (Path("another.py"), False)]
)
def test_an_interrupt_of_the_imports_shows_no_traceback_of_our_programs(program, is_ours):
    code = f"import sys; sys.argv = [{str(program)!r}]; import recipe.run.ending; "
    code += "raise KeyboardInterrupt"
    end = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert end.returncode == -signal.SIGINT
    assert (end.stderr == "error: interrupted\n") == is_ours
    assert end.stderr.startswith("Traceback") != is_ours


def test_sigterm_ends_a_command_with_one_line_and_removes_what_it_was_writing(tmp_path, capsys):
    with (
        pytest.raises(SystemExit, match="143"),
        errors_in_one_line(hears_sigterm=True),
        whole_file(tmp_path / "out.jsonl"),
    ):
        assert len(list(tmp_path.iterdir())) == 1
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)  # the handler raises in it
    assert capsys.readouterr().err == "error: terminated\n"
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("prepare", ["in.jsonl", "out.parquet", option]) for option in ("--source", "--split")]
    + [("prepare", ["in.jsonl", "out.parquet", "--system-prompt"])]
    + [("ask", ["--answer", "2", "--problem"]), ("ask", ["--problem", "1+1?", "--answer"])],
)
def test_a_text_whose_bytes_are_no_utf8_is_told_in_one_line(program, arguments, monkeypatch):
    main = importlib.import_module(f"recipe.hint.main_{program}").main
    monkeypatch.setattr(sys, "stderr", told := io.StringIO())
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "a\udcff"])
    assert f"argument {arguments[-1]}: 'a\\udcff' is not UTF-8; give it in UTF-8" in told.getvalue()
    assert told.getvalue().count("\n") == 1
