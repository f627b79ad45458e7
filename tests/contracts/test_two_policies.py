"""The command of two policies: what it refuses in one line before anything starts."""

import json
import re
import shlex
import sys

import pytest

from recipe.hint import main_alternate
from recipe.hint.runtime.partner import Place, server_arguments
from recipe.hint.runtime.preflight.machine import has_gpu

pytestmark = pytest.mark.slow
GOOD = {
    "experiment": "two_turn",
    "trainer.method": "mlmt",
    "trainer.save_freq": "2",
    "trainer.total_training_steps": "6",
    "hint.mlmt.t_low": "2",
    "hint.mlmt.t_high": "1",
    "actor_rollout_ref.rollout.prompt_length": "420",
    "hint.run_dir": "two",
    "preflight_only": "true",
}
WRONG = {
    "trainer.method=score": ["trainer.method=score has no solver and guide", "give .*mlmt"],
    "trainer.method=score-guided": ["trainer.method=score-guided has no", "solver_credit=score"],
    "hint.mlmt.t_low=0 hint.mlmt.t_high=0": ["t_low=0 and t_high=0 must both be at least 1"],
    "hint.mlmt.t_high=0": ["t_low=2 and t_high=0 take turns; give both above 0"],
    "trainer.total_training_steps=2": ["counts the steps of both roles", "guide never trains"],
    "hint.mlmt.guide=teacher": ["hint.mlmt.guide=teacher: this command sets it", "drop it"],
    "hint.mlmt.train_solver=false": ["hint.mlmt.train_solver=False: this command sets it"],
    "hint.teacher.base_url=http://localhost:1/v1": ["base_url=.*: this command sets it"],
    "hint.teacher.cache_dir=x": ["cache_dir=x: this command sets it"],
    "trainer.resume_mode=disable": ["resume_mode=disable: this command sets it"],
    "trainer.default_local_dir=x": ["default_local_dir=x: this command sets it"],
    "trainer.save_freq=-1": ["save_freq=-1: a phase goes on from the checkpoint"],
    "hint.mlmt.stage1_steps=3": ["stage1_steps=3 is above hint.mlmt.t_low=2: stage I must end"],
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine": ["cosine follows the number of"],
    "critic.optim.lr_warmup_steps_ratio=0.1": ["lr_warmup_steps_ratio=0.1 follows", "give 0.0"],
    "actor_rollout_ref.model.lora_rank=8": ["lora_rank=8: .* whole weights"],
    "hint.mlmt.t_low=two": ["hint.mlmt.t_low='two' must be int"],
    "hint.mlmt.t_lowe=2": ["t_lowe is not a setting", "did you mean hint.mlmt.t_low"],
    "--devices 0": ["--devices 0: trainer.device=cpu has none; drop it"],
    "--port 1 --host 192.0.2.1": ["--host 192.0.2.1 --port 1 cannot be served at"],
    "--prot 1": ["--prot is not an option"],
    "trainer.nnodes=2": ["--host 127.0.0.1 cannot be reached from the other of trainer.nnodes=2"],
    "data.train_files=nowhere.parquet": ["nowhere.parquet"],
}


@pytest.fixture
def run(composed_once, tmp_path, monkeypatch, capsys):
    """The command in this process -> (exit code, stdout, stderr)."""
    if has_gpu():
        pytest.skip("asks for --devices first")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)

    def start(*given: str) -> tuple[int, str, str]:
        kept = [
            f"{name}={value}" for name, value in GOOD.items() if f"{name}=" not in " ".join(given)
        ]
        monkeypatch.setattr(sys, "argv", ["main_alternate.py", *kept, *given])
        code = 0
        try:
            main_alternate.main()
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        assert list(tmp_path.iterdir()) == []
        return code, captured.out, captured.err

    return start


@pytest.mark.parametrize("given", WRONG)
def test_what_cannot_be_trained_in_turns_is_one_line_before_anything_starts(run, given):
    code, _, err = run(*shlex.split(given))
    assert (code, err.count("\n"), err[:7]) == (2, 1, "error: "), err
    for words in WRONG[given]:
        assert re.search(words, err), err


def test_a_check_tells_the_phases(run):
    code, out, err = run("hint.teacher.num_parallel=4")
    assert (code, err) == (0, "")
    told = "phases    4: solver 1-2, guide 1-1, solver 3-4, guide 2-2"
    assert out.splitlines()[-1] == told


def test_the_partner_is_served_as_the_policys_own_replica():
    from omegaconf import OmegaConf

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
    given = server_arguments(config, Place(devices="6,7", serve_args="--seed 3"))
    assert given == [
        *("--dtype", "float32", "--max-model-len", "1024", "--enforce-eager"),
        *("--no-enable-chunked-prefill", "--trust-remote-code"),
        *("--default-chat-template-kwargs", json.dumps({"enable_thinking": False})),
        *("--generation-config", "vllm"),
        *("--override-generation-config", json.dumps({"top_k": 20})),
        *("--uvicorn-log-level", "warning", "--tensor-parallel-size", "2"),
        *("--distributed-executor-backend", "uni", "--seed", "3"),
    ]
