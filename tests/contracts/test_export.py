"""A checkpoint of several ranks becomes one model folder with the same weights."""

import copy
import shutil
from pathlib import Path

import pytest
import torch
from ends import code_of
from huggingface_hub import ModelCard
from omegaconf import OmegaConf
from peft import LoraConfig, get_peft_model
from torch import distributed
from torch.distributed.tensor import DTensor, Shard, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.study.export import main, merge_model

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
    (folder / "COMPLETE").write_text('{"bytes": {}}')


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


def test_an_export_in_bf16_rounds_each_weight_once(tmp_path, trained):
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, trained, 2)
    settings = checkpoint / "actor/huggingface/generation_config.json"
    settings.write_text('{"eos_token_id": [1, 2, 3]}')  # more stops than config.json has
    left = tmp_path / ".out.draft"  # by a command that was killed
    left.mkdir(parents=True)
    assert main([str(checkpoint), str(tmp_path / "out")]) == 0
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight.to(torch.bfloat16), exported.state_dict()[name]), name
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]
    assert settings.read_text() == (tmp_path / "out/generation_config.json").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "out"}


def test_an_export_has_a_model_card(tmp_path, trained):
    run = tmp_path / "run"
    write_checkpoint(run / "checkpoints/global_step_7", trained, 1)
    (run / "config.yaml").write_text(
        "trainer: {method: sage}\ndata: {train_files: [/home/me/mine.parquet]}\n"
        "actor_rollout_ref: {model: {path: owner/base}}\n"
    )
    (run / "metrics.jsonl").write_text('{"step": 7, "val-core/mine/acc/mean@4": 0.25}\n')
    assert main([str(run / "checkpoints/global_step_7"), str(tmp_path / "out")]) == 0
    card = ModelCard.load(tmp_path / "out/README.md")
    assert (card.data.base_model, card.data.license) == ("owner/base", "unknown")
    assert {"sage", "verl"} <= {*card.data.tags}
    assert "| accuracy on mine, no hints | 25.0% |" in card.text
    assert "| ['mine.parquet'] |" in card.text and "| steps | 7 |" in card.text


def merge(checkpoint):
    config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": str(checkpoint)}}})
    merge_model(config)
    return config.actor_rollout_ref.model.path


def test_an_adapter_is_added_to_the_weights_of_an_export_and_of_a_merge(tmp_path, trained, capsys):
    """W + alpha / r * B A: verl's merger leaves the second term out."""
    torch.manual_seed(2)
    adapter = LoraConfig(r=4, lora_alpha=12, target_modules=["q_proj", "down_proj"])
    model = get_peft_model(copy.deepcopy(trained), adapter)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.1 * torch.randn_like(weight)
    checkpoint = tmp_path / "run/checkpoints/global_step_7"
    write_checkpoint(checkpoint, model, 3)
    assert code_of(main, [str(checkpoint), str(tmp_path / "out")]) == 2  # alpha and r are missing
    assert "lora_train_meta.json" in capsys.readouterr().err
    (checkpoint / "actor/lora_train_meta.json").write_text('{"r": 4, "lora_alpha": 12}')
    assert main([str(checkpoint), str(tmp_path / "out"), "--dtype", "fp32"]) == 0
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    expected = model.merge_and_unload().state_dict()
    assert expected.keys() == exported.keys()
    for name, weight in expected.items():
        assert torch.allclose(weight, exported[name], atol=1e-6), name
    name = "model.layers.1.self_attn.q_proj.weight"
    assert (exported[name] - trained.state_dict()[name]).abs().max() > 0.1

    assert merge(checkpoint) == f"{checkpoint}/merged"
    merged = AutoModelForCausalLM.from_pretrained(checkpoint / "merged").state_dict()
    assert torch.equal(merged[name], exported[name])  # vLLM rounds it where it is told to
    assert merge(checkpoint) == f"{checkpoint}/merged"  # which is there
    assert {path.name for path in checkpoint.iterdir()} == {"actor", "COMPLETE", "merged"}
