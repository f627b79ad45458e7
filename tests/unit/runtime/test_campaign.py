"""The driver of a campaign: what is made, again, and not again."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HEARS_SIGINT, is_alive, wait_for

from recipe.run.errors import ConfigError, HintError
from recipe.study import campaign_runs as campaign_module
from recipe.study.campaign import Arm, Campaign
from recipe.study.campaign_runs import Driver, environment, jobs_of

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).parent / "campaign_programs"


def campaign(**arms):
    return Campaign(
        "a title", {name: Arm(tuple(each)) for name, each in arms.items()}, seeds=(1, 2)
    )


def make(root, asked, num_at_once=1):
    said = []
    jobs = jobs_of(asked, root, PROGRAMS)
    try:
        Driver(root, num_at_once, said.append).make(jobs)
    finally:
        states = {job.run.name: job.state() for job in jobs}
    return states, said


def calls(root, name):
    return (root / name / "calls.txt").read_text().split()


def test_every_run_trains_exports_and_evaluates_in_a_folder_of_its_own(tmp_path):
    states, _ = make(tmp_path, campaign(a=[], b=["x=1"]), num_at_once=2)
    assert states == dict.fromkeys(("a/seed-1", "b/seed-1", "a/seed-2", "b/seed-2"), "done")
    assert calls(tmp_path, "b/seed-2") == ["train", "export", "evaluate"]
    evaluated = json.loads((tmp_path / "b/seed-2/evaluation/results.json").read_text())
    assert (evaluated["x"], evaluated["hint.seed"], evaluated["data.seed"]) == ("1", "2", "2")
    assert evaluated["actor_rollout_ref.model.path"] == str(tmp_path / "b/seed-2/model")


def test_the_same_command_makes_again_only_what_was_deleted(tmp_path):
    make(tmp_path, campaign(a=[], b=[]))
    shutil.rmtree(tmp_path / "b/seed-1")
    before = (tmp_path / "a/seed-1/evaluation/results.json").stat().st_mtime_ns
    _, said = make(tmp_path, campaign(a=[], b=[]))
    assert said[0] == "4 runs, 3 of them done"
    assert [line.split(":")[0] for line in said[1:]] == ["b/seed-1", "b/seed-1"]
    assert (tmp_path / "a/seed-1/evaluation/results.json").stat().st_mtime_ns == before
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate"]


def test_a_run_whose_evaluation_is_missing_does_not_train_again(tmp_path):
    make(tmp_path, campaign(a=[]))
    shutil.rmtree(tmp_path / "a/seed-1/evaluation")
    make(tmp_path, campaign(a=[]))
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate", "evaluate"]


def test_the_last_line_of_a_run_that_was_killed_after_its_last_save_comes_back(tmp_path):
    make(tmp_path, campaign(a=[]))
    folder = tmp_path / "a/seed-1"
    shutil.rmtree(folder / "evaluation")
    shutil.rmtree(folder / "model")
    (folder / "metrics.jsonl").write_text('{"step": 3}\n')
    (folder / "checkpoints/global_step_4/hint_metrics.json").write_text('{"hint/prompts": 8}')
    make(tmp_path, campaign(a=[]))
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate", "export", "evaluate"]
    assert (folder / "metrics.jsonl").read_text() == (
        '{"step": 3}\n{"step": 4, "hint/prompts": 8}\n'
    )


def test_a_run_that_was_kept_is_not_made_again(tmp_path):
    asked = campaign(a=[])
    first, _ = asked.runs()
    (tmp_path / "a").mkdir()
    (tmp_path / "a/seed-1.json").write_text(json.dumps({"made": first.as_json()}))
    states, said = make(tmp_path, asked)
    assert states == {"a/seed-1": "done", "a/seed-2": "done"}
    assert said[0] == "2 runs, 1 of them done" and not (tmp_path / "a/seed-1").exists()


def test_weights_and_samples_of_an_earlier_training_are_not_evaluated(tmp_path):
    make(tmp_path, campaign(a=[]))
    folder = tmp_path / "a/seed-1"
    shutil.rmtree(folder / "checkpoints")
    (folder / "evaluation/results.json").rename(folder / "evaluation/some_samples")
    make(tmp_path, campaign(a=[]))
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate"] * 2
    assert not (folder / "evaluation/some_samples").exists()


def test_a_job_that_fails_is_tried_again_from_the_same_state_once(tmp_path):
    states, said = make(tmp_path, campaign(a=["fails=1"]))
    assert set(states.values()) == {"done"}
    assert calls(tmp_path, "a/seed-2") == ["train", "train", "export", "evaluate"]
    assert "a/seed-1: train: exit code 3; trying again, from: train" in said


def test_a_run_that_fails_again_ends_no_other_and_is_made_by_the_same_command(tmp_path):
    asked = campaign(a=["fails=2"], b=[])
    with pytest.raises(HintError, match=r"2 of 4 runs failed: a/seed-1 \(train: exit code 3\)"):
        make(tmp_path, asked)
    assert calls(tmp_path, "b/seed-2") == ["train", "export", "evaluate"]
    states, _ = make(tmp_path, asked)
    assert set(states.values()) == {"done"}
    assert calls(tmp_path, "a/seed-2") == ["train", "train", "train", "export", "evaluate"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hint_metrics.json", "null"),
        ("metrics.jsonl", '\0\0\n{"step": 3}\n'),
        ("hint_metrics.json", ""),
    ],
)
def test_a_run_whose_next_step_cannot_start_ends_no_other(tmp_path, name, content):
    asked = campaign(a=[], b=["wait=1"])
    make(tmp_path, campaign(a=[]))
    for seed in (1, 2):  # ready to be exported
        folder = tmp_path / f"a/seed-{seed}"
        shutil.rmtree(folder / "evaluation")
        shutil.rmtree(folder / "model")
        metrics = {"metrics.jsonl": '{"step": 3}\n', "hint_metrics.json": '{"a": 1}'}
        metrics[name] = content
        (folder / "metrics.jsonl").write_text(metrics["metrics.jsonl"])
        place = folder / "checkpoints/global_step_4/hint_metrics.json"
        place.write_text(metrics["hint_metrics.json"])
    with pytest.raises(HintError, match="2 of 4 runs failed: a/seed-1 "):
        make(tmp_path, asked, num_at_once=2)
    for seed in (1, 2):
        assert calls(tmp_path, f"b/seed-{seed}") == ["train", "export", "evaluate"]


def test_a_job_that_fails_after_its_work_is_done_is_not_made_again(tmp_path):
    states, said = make(tmp_path, campaign(a=["fails_late=1"]))
    assert set(states.values()) == {"done"}
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate"]
    assert "a/seed-1: done, though evaluate: exit code 5" in said


def test_a_checkpoint_that_was_moved_aside_is_none(tmp_path):
    asked = campaign(a=[])
    make(tmp_path, asked)
    place = tmp_path / "a/seed-1/checkpoints/global_step_4"
    place.rename(place.with_name("global_step_4.bad"))
    shutil.rmtree(tmp_path / "a/seed-1/evaluation")
    make(tmp_path, asked)
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate"] * 2


def test_weights_of_an_export_that_was_killed_are_removed(tmp_path):
    make(tmp_path, campaign(a=[]))
    folder = tmp_path / "a/seed-1"
    shutil.rmtree(folder / "evaluation")
    (folder / "model").rename(folder / ".model.77")
    make(tmp_path, campaign(a=[]))
    assert not (folder / ".model.77").exists()


def test_a_run_without_a_checkpoint_of_its_last_step_fails_with_what_to_set(tmp_path):
    with pytest.raises(HintError, match=r"trainer\.save_freq must be above 0"):
        make(tmp_path, campaign(a=["trainer.save_freq=-1"]))
    assert calls(tmp_path, "a/seed-1") == ["train"]  # chance cannot mend it


def test_a_run_that_was_made_with_other_settings_is_not_taken_for_done(tmp_path):
    make(tmp_path, campaign(a=["x=1"]))
    with pytest.raises(ConfigError, match="was made with x=1, now it is x=2: delete"):
        make(tmp_path, campaign(a=["x=2"]))


def test_evaluation_settings_may_be_corrected_until_something_is_drawn(tmp_path):
    """Days of training do not depend on them; the responses that are there do."""

    def asked(k):
        arms = {"a": Arm(())}
        return Campaign("a title", arms, seeds=(1,), evaluation=(f"k={k}",))

    make(tmp_path, asked(1))
    drawn = tmp_path / "a/seed-1/evaluation"
    told = f"was made with k=1, now it is k=2: delete {drawn} to evaluate again"
    with pytest.raises(ConfigError, match=told):
        make(tmp_path, asked(2))
    shutil.rmtree(drawn)
    make(tmp_path, asked(2))
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate", "evaluate"]


def test_both_the_training_and_the_evaluation_are_checked(tmp_path):
    arms = {"a": Arm(("x=1",))}
    [job] = jobs_of(Campaign("t", arms, seeds=(1,), evaluation=("k=1",)), tmp_path, PROGRAMS)
    train, evaluation = job.checks()
    assert "k=1" not in train and "trainer.eval_only=true" not in train
    assert {"x=1", "k=1", "trainer.eval_only=true", "preflight_only=true"} <= {*evaluation}
    (tmp_path / "a/seed-1/evaluation").mkdir(parents=True)  # of other weights
    assert job.checks() == [train]


def test_a_run_goes_on_after_its_newest_whole_checkpoint(tmp_path):
    asked = campaign(a=[])
    folder = tmp_path / "a/seed-1"
    for step in (2, 3):
        (folder / f"checkpoints/global_step_{step}").mkdir(parents=True)
    (folder / "checkpoints/global_step_2/COMPLETE").touch()
    (folder / "config.yaml").write_text("trainer: {total_training_steps: 4}\n")
    first = jobs_of(asked, tmp_path, PROGRAMS)[0]
    assert first.state() == "train after step 2"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_campaign_that_is_ended_leaves_no_run_behind(tmp_path, number):
    code = (
        "import sys; from pathlib import Path\n"
        "from recipe.study.campaign import Arm, Campaign\n"
        "from recipe.study.campaign_runs import Driver, jobs_of\n"
        "asked = Campaign('t', {'a': Arm(('hang=1',))}, seeds=(1, 2))\n"
        "root = Path(sys.argv[1])\n"
        "Driver(root, 2, print).make(jobs_of(asked, root, Path(sys.argv[2])))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(PROGRAMS)]
    pids = [tmp_path / f"a/seed-{seed}/pid" for seed in (1, 2)]
    place = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=place, preexec_fn=HEARS_SIGINT) as process:
        wait_for(lambda: all(path.is_file() and path.read_text() for path in pids))
        process.send_signal(number)
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()
    wait_for(lambda: not any(is_alive(int(path.read_text())) for path in pids))


@pytest.mark.parametrize("name", ["jörg", "lr=1e-6", "a,b", "it's", "two words", "[x](y)#&;!"])
def test_a_folder_may_have_any_name(tmp_path, name):
    states, said = make(tmp_path / name, campaign(a=[]))
    assert set(states.values()) == {"done"}, said


def test_a_job_that_was_just_begun_ends_with_the_campaign(tmp_path, monkeypatch):
    """The first run's export begins; then the signal comes, while the second run is looked at."""
    ended, real, begun = [], Driver._look_at, {}

    def look_at(driver, running):
        if begun and running.job.run.name == "b/seed-1":
            raise KeyboardInterrupt
        now = real(driver, running)
        if now is not running:
            begun[running.job.run.name] = now.process
        return now

    monkeypatch.setattr(Driver, "_look_at", look_at)
    end = campaign_module.end_children
    monkeypatch.setattr(
        campaign_module, "end_children", lambda each: (ended.extend(each), end(each))
    )
    asked = Campaign("t", {"a": Arm(()), "b": Arm(("hang=1",))}, seeds=(1,))
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, asked, num_at_once=2)
    assert set(begun.values()) <= set(ended)


def test_weights_behind_a_link_are_not_taken_for_those_of_a_new_training(tmp_path):
    make(tmp_path, campaign(a=[]))
    folder, moved = tmp_path / "a/seed-1", tmp_path / "elsewhere"
    (folder / "model").rename(moved)
    (folder / "model").symlink_to(moved)
    for name in ("checkpoints", "evaluation"):
        shutil.rmtree(folder / name)
    make(tmp_path, campaign(a=[]))
    assert calls(tmp_path, "a/seed-1") == ["train", "export", "evaluate"] * 2
    assert moved.is_dir()


def test_one_campaign_at_a_time_writes_in_a_folder(tmp_path):
    from recipe.run.whole_file import claimed

    with claimed(tmp_path / ".lock"), pytest.raises(ConfigError, match="in use by another"):
        make(tmp_path, campaign(a=[]))


def test_an_unknown_arm_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(ConfigError, match="the arms are a, b"):
        jobs_of(campaign(a=[], b=[]), tmp_path, PROGRAMS, ["c"])


def test_runs_side_by_side_share_the_processors_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment(os.cpu_count() or 1)["OMP_NUM_THREADS"] in {"1", str(os.cpu_count())}
    assert "OMP_NUM_THREADS" not in environment(1)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert environment(2)["OMP_NUM_THREADS"] == "7"
