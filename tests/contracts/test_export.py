"""A checkpoint of several ranks becomes one model folder with the same weights."""

import contextlib
import copy
import os
import re
import resource
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import torch
from ends import code_of
from engines import prompts, run_process
from omegaconf import OmegaConf
from peft import LoraConfig, get_peft_model
from torch import distributed
from torch.distributed.tensor import DTensor, Shard, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.hint.main_export import main
from recipe.run.checkpoints import mark_complete
from recipe.study import merging
from recipe.study.merging import merge_model

BASE = Path(__file__).parents[2] / "data/tiny/base"


def write_checkpoint(folder, model, num_ranks):
    """Write what each rank of FSDP2 saves: its rows of every weight, and their place."""
    actor = folder / "actor"
    keep = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(BASE, actor / "huggingface", ignore=keep)
    (actor / "fsdp_config.json").write_text("{}")
    for rank in range(num_ranks):
        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=num_ranks)
        mesh = init_device_mesh("cpu", (num_ranks,), mesh_dim_names=("fsdp",))
        parts = {}
        for name, whole in model.state_dict().items():
            chunks = whole.chunk(num_ranks)  # fewer than ranks where there are fewer rows
            local = chunks[rank] if rank < len(chunks) else whole[:0]
            parts[name] = DTensor.from_local(
                local.clone(), mesh, [Shard(0)], shape=whole.shape, stride=whole.stride()
            )
        torch.save(parts, actor / f"model_world_size_{num_ranks}_rank_{rank}.pt")
        distributed.destroy_process_group()
    (folder / "COMPLETE").write_text("2\n")
    (folder.parents[1] / "metrics.jsonl").write_text("")


@pytest.fixture(scope="module")
def trained():
    """Weights that bf16 would round: the base's, moved a little."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 1e-4 * torch.randn_like(weight)
    return model


def greedy(model, tokenizer):
    tokens = tokenizer("Begin with 8.", return_tensors="pt")
    return model.generate(**tokens, do_sample=False, max_new_tokens=24).tolist()


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_an_export_in_fp32_has_the_trainers_weights_and_greedy_answers(
    tmp_path, trained, num_ranks
):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, num_ranks)
    assert main([str(checkpoint), str(tmp_path / "out"), "--dtype", "fp32"]) == 0
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert exported.dtype == torch.float32
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight, exported.state_dict()[name]), name
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert greedy(exported, tokenizer) == greedy(trained, tokenizer)


@pytest.mark.long
def test_vllm_gives_the_greedy_answers_of_the_trainers_weights_from_an_export(tmp_path, trained):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 2)
    assert main([str(checkpoint), str(tmp_path / "out"), "--dtype", "fp32"]) == 0
    expected = []
    for ids in prompts(8):
        whole = trained.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=64)
        expected.append(whole[0, len(ids) :].tolist())
    assert len({tuple(answer) for answer in expected}) > 4  # answers, not one for all
    assert run_process("export_process.py", str(tmp_path / "out"), "8") == expected


def test_an_export_in_bf16_rounds_each_weight_once(tmp_path, trained):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 2)
    settings = checkpoint / "actor/huggingface/generation_config.json"
    settings.write_text('{"eos_token_id": [1, 2, 3]}')  # more stops than config.json has
    assert main([str(checkpoint), str(tmp_path / "out")]) == 0
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight.to(torch.bfloat16), exported.state_dict()[name]), name
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]
    assert settings.read_text() == (tmp_path / "out/generation_config.json").read_text()


@pytest.mark.parametrize("num_ranks", [pytest.param(1, marks=pytest.mark.long), 3])
def test_an_adapter_is_added_to_the_weights(tmp_path, trained, num_ranks):
    """W + alpha / r * B A: verl's merger leaves the second term out."""
    torch.manual_seed(2)
    adapter = LoraConfig(r=4, lora_alpha=12, target_modules=["q_proj", "down_proj"])
    model = get_peft_model(copy.deepcopy(trained), adapter)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.1 * torch.randn_like(weight)
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, model, num_ranks)
    (checkpoint / "actor/lora_train_meta.json").write_text('{"r": 4, "lora_alpha": 12}')
    assert main([str(checkpoint), str(tmp_path / "out"), "--dtype", "fp32"]) == 0
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    expected = model.merge_and_unload().state_dict()
    assert expected.keys() == exported.keys()
    for name, weight in expected.items():
        assert torch.allclose(weight, exported[name], atol=1e-6), name
    name = "model.layers.1.self_attn.q_proj.weight"
    assert (exported[name] - trained.state_dict()[name]).abs().max() > 0.1

    config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": str(checkpoint)}}})
    said = []
    (checkpoint / "merged/lora_adapter").mkdir(parents=True)  # of an earlier version: not taken
    merge_model(config, said.append)
    assert config.actor_rollout_ref.model.path == f"{checkpoint}/merged"
    merged = AutoModelForCausalLM.from_pretrained(checkpoint / "merged").state_dict()
    assert torch.equal(merged[name], exported[name].to(torch.bfloat16))
    assert said == [f"merging the parts of {checkpoint} ..."]


def test_a_model_that_another_command_has_merged_meanwhile_stays(tmp_path, monkeypatch):
    checkpoint = tmp_path / "global_step_7"
    (checkpoint / "actor").mkdir(parents=True)
    (checkpoint / "actor/fsdp_config.json").write_text("{}")
    (checkpoint / "COMPLETE").write_text("2\n")

    def write(_checkpoint, draft, _limit_s):
        draft.mkdir()
        (checkpoint / "merged").mkdir()
        (checkpoint / "merged/config.json").write_text("the other's")

    monkeypatch.setattr(merging, "_write_merged", write)
    config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": str(checkpoint)}}})
    merge_model(config, lambda line: None)
    assert (checkpoint / "merged/config.json").read_text() == "the other's"
    assert {path.name for path in checkpoint.iterdir()} == {"actor", "COMPLETE", "merged"}


def test_an_adapter_without_its_rank_and_alpha_is_refused(tmp_path, trained, capsys):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    model = get_peft_model(copy.deepcopy(trained), LoraConfig(r=4, target_modules=["q_proj"]))
    write_checkpoint(checkpoint, model, 1)
    for content in (None, "{}", "x", '{"r": 0, "lora_alpha": 1}'):
        if content is not None:
            (checkpoint / "actor/lora_train_meta.json").write_text(content)
        assert code_of(main, [str(checkpoint), str(tmp_path / "out")]) == 2
        assert "does not say the adapter's r and lora_alpha" in capsys.readouterr().err


def test_an_adapter_that_is_not_of_two_matrices_is_refused(tmp_path, trained, capsys):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    model = get_peft_model(copy.deepcopy(trained), LoraConfig(r=4, target_modules=["embed_tokens"]))
    write_checkpoint(checkpoint, model, 1)
    (checkpoint / "actor/lora_train_meta.json").write_text('{"r": 4, "lora_alpha": 12}')
    assert code_of(main, [str(checkpoint), str(tmp_path / "out")]) == 2
    assert "adapter that is no product of two matrices: " in capsys.readouterr().err


def test_what_cannot_be_exported_ends_in_one_line(tmp_path, trained, capsys):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 2)
    out = tmp_path / "out"
    (checkpoint / "actor/model_world_size_2_rank_1.pt").unlink()
    assert code_of(main, [str(checkpoint), str(out)]) == 2
    assert "rank_1.pt is missing: copy the files of all ranks" in capsys.readouterr().err
    (checkpoint / "COMPLETE").unlink()
    assert code_of(main, [str(checkpoint), str(out)]) == 2
    assert "is not whole" in capsys.readouterr().err
    assert code_of(main, [str(tmp_path), str(out)]) == 2
    assert "is not a checkpoint" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def mark(folder):
    """Mark as the trainer does, with every file's size."""
    mark_complete(folder.parent, int(folder.name.rpartition("_")[2]))


def cut_a_weight_file(folder):
    path = folder / "actor/model_world_size_1_rank_0.pt"
    path.write_bytes(path.read_bytes()[:-2000])
    return folder


def spoil_a_weight_file(folder):
    (folder / "actor/model_world_size_1_rank_0.pt").write_bytes(b"no weights")
    return folder


def lose_the_configuration(folder):
    (folder / "actor/huggingface/config.json").unlink()
    return folder


def rename(folder):
    return folder.rename(folder.with_name("step40"))


def move_out_of_the_run(folder):
    target = folder.parents[2] / "elsewhere/checkpoints" / folder.name
    target.parent.mkdir(parents=True)
    return folder.rename(target)


@pytest.mark.parametrize("is_marked", [True, False], ids=["with sizes", "of an earlier version"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut_a_weight_file, "is damaged: "),
        (spoil_a_weight_file, "is damaged: "),
        (lose_the_configuration, "config.json|holds no model's configuration"),
        (rename, "step40 is not a checkpoint; give a folder checkpoints/global_step_N of a run"),
        (move_out_of_the_run, "elsewhere is not the folder of a run"),
    ],
)
def test_a_damaged_or_moved_checkpoint_ends_in_one_line_before_a_weight_is_written(
    tmp_path, trained, capsys, monkeypatch, spoil, message, is_marked
):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 1)
    if is_marked:
        mark(checkpoint)
    checkpoint = spoil(checkpoint)
    written = []
    monkeypatch.setattr(shutil, "copytree", lambda *folders: written.append(folders))
    assert code_of(main, [str(checkpoint), str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert re.search(message, err) and err.splitlines()[-1].startswith("error: ")
    assert not written and not (tmp_path / "out").exists()


@contextlib.contextmanager
def no_file_above(size):
    """A disk that is full: a file that grows beyond this size is an error of the system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_without_room_for_the_weights_is_told_in_one_line(tmp_path, trained, capsys):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 1)
    out = tmp_path / "models/out"
    with no_file_above(200_000):
        assert code_of(main, [str(checkpoint), str(out)]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"error: {out.parent}: the weights cannot be written there: ")
    assert [*out.parent.iterdir()] == []


def test_the_draft_of_a_killed_export_is_removed_by_the_next_one(tmp_path, trained):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 1)
    with subprocess.Popen(["true"]) as ended:
        pass
    here = socket.gethostname()
    drafts = [f".out.{here}.{ended.pid}", f".out.{here}.{os.getppid()}", f".other.{here}.1"]
    for name in drafts:
        (tmp_path / name).mkdir()
    assert main([str(checkpoint), str(tmp_path / "out")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"run", "out", *drafts[1:]}
