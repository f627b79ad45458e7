"""What is given twice, to nobody, or to an evaluation that does not read it."""

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight import machine
from recipe.hint.adapter.preflight.data import read_files
from recipe.hint.adapter.preflight.evaluation import preflight_evaluation
from recipe.hint.adapter.preflight.folder import check_run_folder
from recipe.hint.adapter.preflight.given import (
    check_given_to_evaluation,
    check_given_to_question,
)
from recipe.hint.adapter.preflight.machine import check_machine
from recipe.hint.adapter.preflight.settings import check_settings
from recipe.hint.adapter.preflight.teacher import check_teacher
from recipe.hint.settings import build_method, settings_of
from recipe.problems.columns import make_row, write_rows
from recipe.run.errors import ConfigError, DataError
from recipe.study.evaluation.draw import apply_evaluation_mode

ROLLOUT = "actor_rollout_ref.rollout"
WRONG_FOR_EVALUATION = {
    f"{ROLLOUT}.temperature=0.1": r"rollout\.temperature .*samples with .*val_kwargs\.temperature",
    f"{ROLLOUT}.top_p=0.9": r"an evaluation samples with .*val_kwargs\.top_p; give that",
    "hint.source=teacher hint.max_level=2": "hint.source is not read by trainer.eval_only=true",
    "trainer.method=grpo hint.max_tokens=3": "hint.max_tokens is not read by trainer.method=grpo",
    "trainer.method=SAGE": "trainer.method='SAGE'",
}
EVALUATED = [
    f"hint.seed=2 {ROLLOUT}.val_kwargs.temperature=0.1 data.max_response_length=40",
    f"{ROLLOUT}.temperature=0.1 {ROLLOUT}.val_kwargs.temperature=0.1",
    # The command lines of runs.
    f"trainer.method=sage hint.search.probe_n=2 {ROLLOUT}.temperature=0.8",
    "hint.seed=1 data.seed=1 hint.max_level=3",
    "trainer.method=score hint.score.alpha=0",
]
WRONG_FOR_A_QUESTION = {
    "trainer.method=grpo hint.source=teacher": "hint.source is not read by trainer.method=grpo",
    f"{ROLLOUT}.val_kwargs.temperature=0.1": "main_ask.py samples with .*rollout.temperature",
}


def given(composed, text):
    argv = text.split()
    return composed("hardware=laptop", "hint.run_dir=x", *argv), argv


@pytest.mark.parametrize("text", WRONG_FOR_EVALUATION)
def test_an_evaluation_refuses_what_it_does_not_read(composed, text):
    with pytest.raises(ConfigError, match=WRONG_FOR_EVALUATION[text]):
        check_given_to_evaluation(*given(composed, text))


@pytest.mark.parametrize("text", EVALUATED)
def test_an_evaluation_takes_its_own_settings_and_those_of_a_run(composed, text):
    check_given_to_evaluation(*given(composed, text))


@pytest.mark.parametrize("text", WRONG_FOR_A_QUESTION)
def test_a_question_refuses_what_it_does_not_read(composed, text):
    with pytest.raises(ConfigError, match=WRONG_FOR_A_QUESTION[text]):
        check_given_to_question(*given(composed, text))


def test_a_file_is_read_once_however_its_path_is_spelt(tmp_path):
    path = tmp_path / "a.parquet"
    write_rows([make_row("1 + 1?", "2", row_id="a")], path)
    (tmp_path / "b.parquet").symlink_to(path)
    (tmp_path / "sub").mkdir()
    for again in (path, tmp_path / "b.parquet", tmp_path / "sub/../a.parquet"):
        config = OmegaConf.create({"data": {"val_files": [str(path), str(again)]}})
        with pytest.raises(DataError, match=r"data\.val_files has the file .*a\.parquet twice"):
            read_files(config, "data.val_files")


@pytest.mark.parametrize("mode", ["auto", "disable"])
def test_a_place_to_resume_from_that_the_mode_does_not_read_is_refused(composed, tmp_path, mode):
    config = composed(
        "hardware=laptop",
        *(f"hint.run_dir={tmp_path}", "trainer.experiment_name=one"),
        *(f"trainer.resume_from_path={tmp_path}", f"trainer.resume_mode={mode}"),
    )
    with pytest.raises(ConfigError, match=f"would not be read with trainer.resume_mode={mode}"):
        check_run_folder(config)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (r"trainer.experiment_name='a\b'", r"experiment_name='a\\\\b' is a path, not a name"),
        ("trainer.experiment_name=", "experiment_name='' is no name"),
        ("trainer.experiment_name=..", r"experiment_name='\.\.' is no name"),
        ("trainer.experiment_name=null", "experiment_name=None must be a name"),
        ("trainer.project_name=a/b", "project_name='a/b' is a path, not a name"),
        ("hint.run_dir=''", "hint.run_dir='' must be the path of a folder"),
        ("hint.run_dir='~/a'", "hint.run_dir=~/a: no shell has replaced the ~"),
        ("trainer.rollout_data_dir=FILE/a", "rollout_data_dir=.* is a file, not a folder"),
    ],
)
def test_a_name_or_a_folder_that_is_none_is_refused(composed, tmp_path, given, says):
    (tmp_path / "file").touch()
    given = given.replace("FILE", str(tmp_path / "file"))
    run = (f"hint.run_dir={tmp_path}", "trainer.experiment_name=one")
    with pytest.raises(ConfigError, match=says):
        check_run_folder(composed("hardware=laptop", *run, given))


def test_prompts_that_were_just_sampled_are_not_thrown_away(composed):
    ahead = "trainer.v1.colocate_async.num_warmup_batches=2"
    modes = ("hardware=laptop", "trainer.v1.trainer_mode=colocate_async", ahead)
    oldest = "trainer.v1.sampler.max_off_policy_threshold"
    says = (
        "threshold=2 would throw away finished prompts at every step: .* span 3 .* give 3 or more"
    )
    with pytest.raises(ConfigError, match=says):
        check_settings(composed(*modes, f"{oldest}=2"))
    check_settings(composed(*modes, f"{oldest}=3"))
    # verl sends whole chunks: 1.5 batches of 16 prompts in chunks of 8 are 24 prompts, of 2 steps.
    ahead = "trainer.v1.colocate_async.num_warmup_batches=1.5"
    half = (*modes[:2], ahead, "data.train_batch_size=16")
    with pytest.raises(ConfigError, match="threshold=2 would throw away .* give 3 or more"):
        check_settings(composed(*half, f"{oldest}=2", "+data.gen_batch_size=8"))
    check_settings(composed(*half, f"{oldest}=2"))  # one whole chunk of 16


def test_several_nodes_need_a_cluster(composed, tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(machine, "_NEWEST_CLUSTER", tmp_path / "ray_current_cluster")
    config = composed("hardware=laptop", "trainer.nnodes=2", "hint.run_dir=x")
    with pytest.raises(ConfigError, match=r"nnodes=2 needs a cluster.*RAY_ADDRESS"):
        check_machine(config)
    (tmp_path / "ray_current_cluster").write_text("127.0.0.1:6379")
    check_machine(config)
    monkeypatch.setattr(machine, "_NEWEST_CLUSTER", tmp_path / "none")
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    check_machine(config)


@pytest.mark.parametrize(("quota", "is_enough"), [(5, False), (6, True), (0, False)])
def test_the_cores_of_a_container_are_counted_as_ray_counts_them(
    composed, monkeypatch, quota, is_enough
):
    # One device on the CPU: 2 + 3 and one storage unit are 6 slots.
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray._private.utils.multiprocessing.cpu_count", lambda: 64)
    monkeypatch.setattr("ray._private.utils._get_docker_cpus", lambda: quota + 0.5)
    config = composed("hardware=laptop", "ray_kwargs.ray_init.num_cpus=null", "hint.run_dir=x")
    if is_enough:
        assert check_machine(config) == []
        return
    with pytest.raises(ConfigError, match=f"null, for which Ray counts {quota} cores .* 6 are nee"):
        check_machine(config)


@pytest.mark.parametrize(
    ("given", "is_asked"),
    [
        ("trainer.method=grpo", False),
        ("trainer.method=sage", False),
        ("trainer.method=sage hint.source=teacher", True),
        ("trainer.method=mlmt hint.mlmt.guide=teacher hint.mlmt.train_guide=false", True),
    ],
)
def test_a_teachers_cache_must_be_writable_only_where_one_is_asked(
    composed, tmp_path, given, is_asked
):
    (tmp_path / "file").touch()
    teacher = "hint.teacher.base_url=http://127.0.0.1:9/v1 hint.teacher.model=m"
    config = composed(
        *("hardware=laptop", f"hint.run_dir={tmp_path}/run", "trainer.experiment_name=one"),
        *(f"hint.teacher.cache_dir={tmp_path}/file/cache", *teacher.split(), *given.split()),
    )
    settings = settings_of(config)
    method = build_method(config.trainer, settings)
    assert check_run_folder(config) == "new"
    if not is_asked:
        assert check_teacher(config, method, settings) == []
        return
    with pytest.raises(ConfigError, match=r"cache_dir=.* is a file, not a folder"):
        check_teacher(config, method, settings)


@pytest.mark.parametrize(
    "text",
    [
        "trainer.method=sage hint.source=teacher",
        "trainer.method=mlmt hint.mlmt.guide=teacher hint.mlmt.train_guide=false",
    ],
)
def test_a_question_to_a_teacher_without_an_address_is_refused_before_the_start(composed, text):
    config, argv = given(composed, text)
    check_given_to_question(config, argv)
    apply_evaluation_mode(config, config.trainer.method, "ask")
    with pytest.raises(ConfigError, match=r"the teacher needs hint\.teacher\.base_url"):
        preflight_evaluation(config)
