"""The command of two policies: what it refuses in one line before anything starts."""

import json
import sys

import pytest
from omegaconf import OmegaConf

from recipe.hint import main_alternate
from recipe.run.errors import ConfigError
from recipe.study.alternate import phases, server_arguments

GOOD = [
    *("experiment=two_turn", "trainer.method=mlmt", "trainer.save_freq=2"),
    *("trainer.total_training_steps=6", "hint.mlmt.t_low=2", "hint.mlmt.t_high=1"),
    *("actor_rollout_ref.rollout.prompt_length=420", "hint.run_dir=two"),
]


def test_a_run_in_turns_begins_with_the_solver_and_ends_with_the_run():
    assert phases(2, 1, 6) == [
        *(("solver", 1, 2), ("guide", 1, 1), ("solver", 3, 4), ("guide", 2, 2)),
    ]
    assert phases(4, 3, 5) == [("solver", 1, 4), ("guide", 1, 1)]
    for t_low, t_high, num_steps in ((0, 0, 6), (2, 1, 2)):
        with pytest.raises(ConfigError, match="must be at least 1"):
            phases(t_low, t_high, num_steps)


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
        ("trainer.method=score", "has no solver and guide that take turns"),
        ("hint.mlmt.guide=teacher hint.mlmt.train_guide=false", "hint.mlmt.guide=teacher does not"),
        ("trainer.save_freq=-1", "trainer.save_freq=-1 does not work with two policies"),
        ("--devices=0", "--devices '0' with trainer.device=cpu"),
        ("hint.mlmt.t_lowe=2", "did you mean hint.mlmt.t_low"),
        ("--prot=1", "--prot=1"),
    ],
)
def test_the_command_refuses_in_one_line_and_leaves_nothing(run, given, says):
    code, _, err = run(*given.split())
    assert (code, err.count("\n"), err[:7]) == (2, 1, "error: "), err
    assert says in err


@pytest.mark.slow
def test_a_check_names_the_phases(run):
    code, out, err = run("hint.teacher.num_parallel=4")
    assert (code, err) == (0, "")
    expected = "phases    4: solver 1-2, guide 1-1, solver 3-4, guide 2-2"
    assert out.splitlines()[-1] == expected


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
    given = server_arguments(config, "6,7")
    assert given == [
        *("--dtype", "float32", "--max-model-len", "1024", "--enforce-eager"),
        *("--no-enable-chunked-prefill", "--trust-remote-code"),
        *("--default-chat-template-kwargs", json.dumps({"enable_thinking": False})),
        *("--generation-config", "vllm"),
        *("--override-generation-config", json.dumps({"top_k": 20})),
        *("--uvicorn-log-level", "warning", "--tensor-parallel-size", "2"),
        *("--distributed-executor-backend", "uni"),
    ]
