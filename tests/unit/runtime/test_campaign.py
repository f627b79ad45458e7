"""A campaign: its file, and what its command makes, makes again, and does not make again."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from ends import code_of

from recipe.run.errors import ConfigError, HintError
from recipe.run.whole_file import claimed
from recipe.study import campaign
from recipe.study.campaign import main, make, read_campaign, state_of

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).parent / "campaign_programs"
DONE = ["train", "evaluate"]


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.setattr(campaign, "PROGRAMS", PROGRAMS)


def write(folder, seeds=(1, 2), evaluation=(), **arms):
    """``arms``: name -> settings."""
    arms = {name: {"settings": each} for name, each in arms.items()}
    node = {"title": "t", "arms": arms, "seeds": [*seeds], "evaluation": [*evaluation]}
    path = folder / "some.yaml"
    path.write_text(yaml.safe_dump(node))
    return path


def calls(root, name):
    return (root / name / "calls.txt").read_text().split()


def test_every_run_trains_and_evaluates_in_a_folder_of_its_own(tmp_path):
    root = tmp_path / "jörg's [runs], a=b"
    make(write(tmp_path, a=[], b=["+x=1"]), root)
    assert calls(root, "b/seed-2") == calls(root, "a/seed-1") == DONE
    evaluated = json.loads((root / "b/seed-2/evaluation/results.json").read_text())
    assert (evaluated["x"], evaluated["hint.seed"], evaluated["data.seed"]) == ("1", "2", "2")
    weights = str(root / "b/seed-2/checkpoints/global_step_4")
    assert evaluated["actor_rollout_ref.model.path"] == weights
    assert (root / "campaign.yaml").read_text() == (tmp_path / "some.yaml").read_text()


def test_the_same_command_makes_again_only_what_was_deleted(tmp_path, capsys):
    file, root = write(tmp_path, a=[], b=[]), tmp_path / "runs"
    make(file, root)
    shutil.rmtree(root / "b/seed-1")
    shutil.rmtree(root / "b/seed-2/evaluation")
    capsys.readouterr()
    make(file, root)
    said = [line.split("  ")[1] for line in capsys.readouterr().out.splitlines()]
    assert said[0] == "4 runs, 2 of them done"
    assert {line.split(":")[0] for line in said[1:]} == {"b/seed-1", "b/seed-2"}
    assert calls(root, "a/seed-1") == calls(root, "b/seed-1") == DONE
    assert calls(root, "b/seed-2") == [*DONE, "evaluate"]


def test_a_run_goes_on_from_what_its_folder_has(tmp_path):
    file, root = write(tmp_path, seeds=[1], a=[]), tmp_path / "runs"
    [plan], folder = read_campaign(file).plans(), root / "a/seed-1"
    for step in (2, 3):
        (folder / f"checkpoints/global_step_{step}").mkdir(parents=True)
    (folder / "checkpoints/global_step_2/COMPLETE").touch()
    (folder / "config.yaml").write_text("trainer: {total_training_steps: 4}\n")
    assert state_of(plan, root) == "train after step 2"
    make(file, root)
    # Killed after its last checkpoint, before that step's line.
    shutil.rmtree(folder / "evaluation")
    (folder / "metrics.jsonl").write_text('{"step": 3}\n')
    (folder / "checkpoints/global_step_4/hint_metrics.json").write_text('{"hint/prompts": 8}')
    make(file, root)
    assert calls(root, "a/seed-1") == [*DONE, "evaluate"]
    assert json.loads((folder / "metrics.jsonl").read_text().splitlines()[1])["hint/prompts"] == 8
    # Weights and samples of an earlier training are not evaluated.
    shutil.rmtree(folder / "checkpoints")
    (folder / "evaluation/results.json").rename(folder / "evaluation/some_samples")
    make(file, root)
    assert calls(root, "a/seed-1")[3:] == DONE
    assert not (folder / "evaluation/some_samples").exists()


def test_a_run_that_was_kept_is_not_made_again(tmp_path):
    file, root = write(tmp_path, seeds=[1], a=[]), tmp_path / "runs"
    (root / "a").mkdir(parents=True)
    made = read_campaign(file).plans()[0].as_json()
    (root / "a/seed-1.json").write_text(json.dumps({"made": made}))
    make(file, root)
    assert not (root / "a/seed-1").exists()


def test_a_run_that_fails_ends_no_other_and_is_tried_by_the_same_command(tmp_path, capsys):
    file, root = write(tmp_path, a=["+fails=1"], b=[], c=["+fails_late=1"]), tmp_path / "runs"
    assert code_of(main, [str(file), "-o", str(root)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: 4 of 6 runs failed: a/seed-1 (train: exit code 3), ")
    assert calls(root, "b/seed-2") == DONE
    main([str(file), "-o", str(root), "--only", "a", "--only", "c"])
    assert calls(root, "a/seed-2") == ["train", *DONE]
    assert calls(root, "c/seed-1") == DONE  # it failed after its work was done


def test_a_run_that_another_command_works_at_is_left_to_it(tmp_path):
    file, root = write(tmp_path, a=[]), tmp_path / "runs"
    (root / "a/seed-1").mkdir(parents=True)
    with (
        claimed(root / "a/seed-1/.campaign.lock"),
        pytest.raises(HintError, match="1 of 2 runs failed: a/seed-1 .*in use by another"),
    ):
        make(file, root)
    assert calls(root, "a/seed-2") == DONE
    make(file, root)
    assert calls(root, "a/seed-1") == DONE


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        (["trainer.save_freq=-1"], "arm b: trainer.save_freq must be above 0"),
        (["trainer.save_freqs=4"], "arm b: trainer.save_freqs is not a setting; did you mean"),
    ],
)
def test_no_run_begins_where_an_arm_could_not_be_run_to_its_end(tmp_path, arm, told):
    file, root = write(tmp_path, a=[], b=arm), tmp_path / "runs"
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        make(file, root)
    assert not root.exists()


def test_a_run_that_leaves_no_checkpoint_of_its_last_step_is_not_tried_for_ever(tmp_path):
    file, root = write(tmp_path, seeds=[1], a=["+leaves_nothing=1"]), tmp_path / "runs"
    with pytest.raises(HintError, match=r"a/seed-1 \(train: it left nothing\)"):
        make(file, root)
    assert calls(root, "a/seed-1") == ["train"]


def test_a_run_that_was_made_with_other_settings_is_not_taken_for_done(tmp_path):
    root = tmp_path / "runs"
    make(write(tmp_path, seeds=[1], evaluation=["+k=1"], a=["+x=1"], b=[]), root)
    before = (root / "campaign.yaml").read_text()
    with pytest.raises(
        ConfigError, match="a/seed-1 was made with .*x=1.*, now it is .*x=2.*: delete"
    ):
        # Whichever arm is asked for: the page would print the new settings for the old run.
        make(write(tmp_path, seeds=[1], evaluation=["+k=1"], a=["+x=2"], b=[]), root, only=["b"])
    assert (root / "campaign.yaml").read_text() == before
    # Days of training do not depend on an evaluation's settings; the responses that are there do.
    file = write(tmp_path, seeds=[1], evaluation=["+k=2"], a=["+x=1"])
    with pytest.raises(ConfigError, match="was made with .*k=1.*, now it is .*k=2"):
        make(file, root)
    shutil.rmtree(root / "a/seed-1/evaluation")
    make(file, root)
    assert calls(root, "a/seed-1") == [*DONE, "evaluate"]


def test_a_dry_run_starts_nothing(tmp_path, capsys):
    command = [str(write(tmp_path, a=[], b=["+fails=2"])), "-o", str(tmp_path / "runs")]
    main([*command, "--dry-run", "--only", "b"])
    assert capsys.readouterr().out.splitlines() == [
        "b/seed-1: train: +fails=2 hint.seed=1 data.seed=1",
        "b/seed-2: train: +fails=2 hint.seed=2 data.seed=2",
    ]
    assert code_of(main, [*command, "--only", "c"]) == 2
    assert "--only c: the arms are a, b" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_runs_are_arms_times_seeds_with_an_arms_settings_after_the_campaigns(tmp_path):
    arms = {"a": {}, "b": {"seeds": [5], "settings": ["+n=2"], "evaluation": ["+k=2"]}}
    node = {"title": "t", "settings": ["+n=1"], "evaluation": ["+k=1"], "seeds": [1, 2]}
    (tmp_path / "some.yaml").write_text(yaml.safe_dump(node | {"arms": arms}))
    plans = read_campaign(tmp_path / "some.yaml").plans()
    assert [plan.name for plan in plans] == ["a/seed-1", "b/seed-5", "a/seed-2"]
    assert plans[1].settings == ("+n=1", "+n=2", "hint.seed=5", "data.seed=5")
    assert plans[1].evaluation == ("+k=1", "+k=2")


def test_a_grid_makes_of_each_arm_one_with_each_of_its_settings(tmp_path):
    node = {"title": "t", "seeds": [1], "reference": "b-high", "grid": {"low": ["+r=1"]}}
    node["grid"]["high"] = ["+r=2"]
    (tmp_path / "some.yaml").write_text(yaml.safe_dump(node | {"arms": {"a": {}, "b": {}}}))
    plans = {each.arm: each for each in read_campaign(tmp_path / "some.yaml").plans()}
    assert {*plans} == {"a-low", "a-high", "b-low", "b-high"}  # 2 arms x 2 settings
    assert plans["b-high"].settings[0] == "+r=2"


CLAIM = {"arm": "a", "source": "s", "measure": "delta"}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"arms": {"../a": {}}}, "../a"),
        ({"arms": {"..": {}}}, "'..'"),
        ({"arms": {}}, "campaign.arms has no arm"),
        ({"arms": {"a-b": {}, "a": {}}, "grid": {"c": [], "b-c": []}}, "2 x 2 arms"),
        ({"seeds": []}, "campaign.seeds=[]: Tuple should have at least 1 item"),
        ({"seeds": [1, 1]}, "arm a: seeds=(1, 1) must differ"),
        ({"title": None}, "campaign.title"),
        ({"arms": {"a": {"setting": []}}}, "setting is not a setting"),
        ({"reference": "c"}, "c"),
        ({"claims": [CLAIM]}, "at_least"),
        ({"claims": [CLAIM | {"more_than": "c"}]}, "c"),
        ({"claims": [CLAIM | {"below": 9.0}]}, "less than or equal to 1"),
        ({"claims": [CLAIM | {"below": 0.1, "measure": "acc2"}]}, "acc_t1"),
    ],
)
def test_a_file_that_is_no_campaign_is_told_with_what_is_wrong(tmp_path, changes, word):
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump({"title": "t", "arms": {"a": {}, "b": {}}} | changes))
    with pytest.raises(ConfigError) as error:
        read_campaign(path)
    assert str(error.value).startswith(f"{path}: ") and word in str(error.value)
