"""The warm-up's command on the embedded model: rows, a kill, the end, and the folder kept."""

import json
import subprocess
import sys

import pytest
from runs import ROOT, assert_nothing_is_left, environment, processes_of, wait_for
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.study.warmup import token_rows

pytestmark = pytest.mark.slow
BASE = ROOT / "data/tiny/base"
MAIN = ROOT / "recipe/hint/main_warmup.py"
SMALL = (
    *("warmup.data.train_batch_size=16", "warmup.data.max_length=400", "warmup.optim.lr=3e-4"),
    *("warmup.trainer.total_training_steps=12", "warmup.trainer.save_freq=2"),
)


def warmup(folder, *overrides):
    command = [sys.executable, str(MAIN), "hardware=laptop", f"warmup.output={folder}", *SMALL]
    return subprocess.Popen(
        [*command, *overrides],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
        start_new_session=True,
    )


def to_its_end(folder, *overrides):
    process = warmup(folder, *overrides)
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def test_a_killed_warm_up_goes_on_and_its_model_is_kept(tmp_path):
    folder = tmp_path / "warm"
    saved = folder / "checkpoints/latest_checkpointed_iteration.txt"
    process = warmup(folder)
    wait_for(lambda: saved.exists() and saved.read_text() == "2", "a checkpoint", process)
    for each in processes_of(folder):  # at once: a trainer whose parent is late to die goes on
        each.kill()
    process.communicate()
    assert_nothing_is_left(folder)

    code, out, err = to_its_end(folder)
    assert code == 0, err
    assert "160 solve" in out and out.endswith(f"done: {folder / 'model'}\n")
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(1, 13)]
    assert "step 2/12" not in out and "step 12/12" in out
    assert "Found latest checkpoint" in (folder / "logs/verl.log").read_text()
    check_rows(folder)

    base, model = (AutoModelForCausalLM.from_pretrained(each) for each in (BASE, folder / "model"))
    assert not (model.lm_head.weight == base.lm_head.weight).all()
    assert not (folder / "checkpoints").exists()

    made_at = (folder / "model/model.safetensors").stat().st_mtime_ns
    code, out, err = to_its_end(folder)
    assert (code, (folder / "model/model.safetensors").stat().st_mtime_ns) == (0, made_at), err
    code, _, err = to_its_end(folder, "warmup.optim.lr=1e-3")
    assert code == 2 and "give those, or another warmup.output" in err


def check_rows(folder):
    """The loss is on the response and the token that ends its turn, under the chat template."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    rows = token_rows(str(folder / "rows.parquet"))
    row = rows[0]
    prompt, response = (row["input_ids"][row["loss_mask"] == each] for each in (0, 1))
    user = [{"role": "user", "content": "Begin"}]
    begun = tokenizer.apply_chat_template(user, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(prompt).endswith(begun.rpartition("Begin")[2])
    assert response[-1] == tokenizer.eos_token_id
    assert "\\boxed{" in tokenizer.decode(response)
    assert row["position_ids"].tolist() == list(range(len(row["input_ids"])))
    assert len(rows) > 160
