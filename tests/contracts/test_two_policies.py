"""The command of two policies: what it refuses in one line before anything starts."""

import json
import os
import sys

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from recipe.hint import main_alternate
from recipe.hint.command.compose import CONFIG_DIR, set_config_paths
from recipe.run.errors import ConfigError
from recipe.study.alternation import phases
from recipe.study.partner import ServerOptions, server_arguments
from recipe.study.two_policies import check_phases, check_roles, check_server_options

GOOD = [
    *("experiment=two_turn", "trainer.method=mlmt", "trainer.save_freq=2"),
    *("trainer.total_training_steps=6", "hint.mlmt.t_low=2", "hint.mlmt.t_high=1"),
    *("actor_rollout_ref.rollout.prompt_length=420", "hint.run_dir=two"),
]
WRONG = {
    "trainer.method=score": "trainer.method=score has no solver and guide .*give .*mlmt",
    "trainer.method=score-guided": "trainer.method=score-guided has no .*give mlmt",
    "hint.mlmt.t_low=0 hint.mlmt.t_high=0": "t_low=0 and t_high=0 must both be at least 1",
    "trainer.total_training_steps=2": "counts the steps of both roles .*guide never trains",
    "hint.mlmt.guide=teacher": "hint.mlmt.guide=teacher: this command sets it .*drop it",
    "hint.mlmt.train_solver=false": "hint.mlmt.train_solver=False: this command sets it",
    "hint.teacher.base_url=http://localhost:1/v1": "base_url=.*: this command sets it",
    "hint.teacher.timeout_s=5": "timeout_s=5.*: this command sets it",
    "hint.teacher.cache_dir=x": "cache_dir=x: this command sets it",
    "trainer.resume_mode=disable": "resume_mode=disable: this command sets it",
    "trainer.default_local_dir=x": "default_local_dir=x: this command sets it",
    "trainer.save_freq=-1": "save_freq=-1: give the steps of both roles",
    "trainer.total_training_steps=null": "total_training_steps=None, .*give the steps of both",
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine": "cosine follows the number of steps",
    "critic.optim.lr_warmup_steps_ratio=0.1": r"lr_warmup_steps_ratio=0\.1 follows .*give 0\.0",
    "critic.enable=true trainer.critic_warmup=2": r"critic_warmup=2 outlasts .*\(steps 1-1\)",
    "actor_rollout_ref.rollout.val_kwargs.top_k=20": "top_k=20 and .*top_k=-1: .* both the same",
    "actor_rollout_ref.model.lora_rank=8": "lora_rank=8: .* whole weights",
    "trainer.nnodes=2": r"--host 127\.0\.0\.1 cannot be reached from the other of .*nnodes=2",
    "trainer.device=cuda": "give --devices, the GPUs that serve the frozen role",
}
PLACES = {
    ServerOptions(devices="0"): "--devices 0: trainer.device=cpu has none; drop it",
    ServerOptions(host="192.0.2.1", port=1): r"--host 192\.0\.2\.1 --port 1 cannot be served at",
}


@pytest.fixture(scope="module")
def config():
    before = dict(os.environ)
    set_config_paths()
    with initialize_config_dir(config_dir=str(CONFIG_DIR), version_base=None):
        composed = compose("hint_trainer", GOOD)
    yield composed
    os.environ.clear()
    os.environ.update(before)


def check(config, server_options=None):
    method = check_roles(config)
    check_server_options(config, server_options or ServerOptions())
    check_phases(config, method)
    return phases(*method.role_steps, config.trainer.total_training_steps)


def test_the_settings_of_a_run_in_turns_pass(config):
    assert [each.role for each in check(config)] == ["solver", "guide"] * 2


@pytest.mark.parametrize("given", WRONG)
def test_what_cannot_be_trained_in_turns_is_refused_by_name(config, given):
    config = OmegaConf.merge(config, OmegaConf.from_dotlist(given.split()))
    with pytest.raises(ConfigError, match=WRONG[given]):
        check(config)


@pytest.mark.parametrize("server_options", PLACES, ids=str)
def test_a_place_that_cannot_serve_is_refused_by_name(config, server_options):
    with pytest.raises(ConfigError, match=PLACES[server_options]):
        check(config, server_options)


@pytest.fixture
def run(composed_once, tmp_path, monkeypatch, capsys):
    """The command in this process -> (exit code, stdout, stderr)."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)

    def start(*given: str) -> tuple[int, str, str]:
        argv = ["main_alternate.py", *GOOD, "preflight_only=true", *given]
        monkeypatch.setattr(sys, "argv", argv)
        code = 0
        try:
            main_alternate.main()
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        assert list(tmp_path.iterdir()) == []
        return code, captured.out, captured.err

    return start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("hint.mlmt.stage1_steps=3", "stage1_steps=3 is above t_low=2: stages count all steps"),
        ("hint.mlmt.t_high=0", "t_low=2 and t_high=0 take turns; give both above 0"),
        ("hint.mlmt.t_low=two", "hint.mlmt.t_low='two' must be a whole number"),
        ("hint.mlmt.t_lowe=2", "t_lowe is not a setting; did you mean hint.mlmt.t_low"),
        ("data.train_files=nowhere.parquet", "nowhere.parquet"),
        ("trainer.save_freq=-1", "save_freq=-1: give the steps of both roles"),
        ("--prot=1", "--prot=1 is not an option"),
    ],
)
def test_the_command_refuses_in_one_line_and_leaves_nothing(run, given, says):
    code, _, err = run(given)
    assert (code, err.count("\n"), err[:7]) == (2, 1, "error: "), err
    assert says in err


@pytest.mark.slow
def test_a_check_tells_the_phases(run):
    code, out, err = run("hint.teacher.num_parallel=4")
    assert (code, err) == (0, "")
    told = "phases    4: solver 1-2, guide 1-1, solver 3-4, guide 2-2"
    assert out.splitlines()[-1] == told


def test_the_partner_is_served_as_the_policys_own_replica():
    config = OmegaConf.create(
        {
            "data": {"apply_chat_template_kwargs": {"enable_thinking": False}},
            "actor_rollout_ref": {
                "model": {"trust_remote_code": True},
                "rollout": {
                    **{"dtype": "float32", "max_model_len": 1024, "enforce_eager": True},
                    **{"enable_chunked_prefill": False, "top_k": 20},
                    "engine_kwargs": {"vllm": {"distributed_executor_backend": "uni"}},
                },
            },
        }
    )
    given = server_arguments(config, ServerOptions(devices="6,7", serve_args="--seed 3"))
    assert given == [
        *("--dtype", "float32", "--max-model-len", "1024", "--enforce-eager"),
        *("--no-enable-chunked-prefill", "--trust-remote-code"),
        *("--default-chat-template-kwargs", json.dumps({"enable_thinking": False})),
        *("--generation-config", "vllm"),
        *("--override-generation-config", json.dumps({"top_k": 20})),
        *("--uvicorn-log-level", "warning", "--tensor-parallel-size", "2"),
        *("--distributed-executor-backend", "uni", "--seed", "3"),
    ]
