"""A checkpoint of several ranks becomes one model folder with the same weights."""

import base64
import copy
import http.server
import json
import shutil
import threading
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


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers as the hub does to a client that creates a repository and commits small files."""

    def log_message(self, *args):
        """Say nothing."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        called = self.path.rsplit("/", 2 if self.path.endswith("/main") else 1)[1]
        lines = [json.loads(line) for line in body.splitlines()]
        self.server.calls.append((called, self.headers["Authorization"], lines))
        files = [
            each | {"uploadMode": "regular", "shouldIgnore": False}
            for each in lines[0].get("files", [])
        ]
        url = f"{self.server.url}/me/model"
        answer = {"url": url, "commitUrl": f"{url}/commit/1", "commitOid": "1"}
        answer |= {"files": files, "errors": [], "warnings": []}
        self.send_response(200 if self.headers["Authorization"] == "Bearer good" else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


@pytest.fixture
def hub(monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.calls, server.url = [], f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "good")
        yield server
        server.shutdown()


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


def test_an_export_is_uploaded_whole_to_a_private_repository(tmp_path, trained, hub):
    checkpoint, out = tmp_path / "run/checkpoints/global_step_7", tmp_path / "out"
    write_checkpoint(checkpoint, trained, 1)
    assert main([str(checkpoint), str(out), "--push-to-hub", "me/model"]) == 0
    made = [lines[0] for called, _, lines in hub.calls if called == "create"]
    assert [(each["organization"], each["name"], each["visibility"]) for each in made] == [
        ("me", "model", "private")
    ]
    [lines] = [lines for called, _, lines in hub.calls if called == "commit"]
    sent = {each["value"]["path"]: each["value"]["content"] for each in lines[1:]}
    assert sent.keys() == {path.name for path in out.iterdir()}
    assert all(base64.b64decode(sent[path.name]) == path.read_bytes() for path in out.iterdir())


def test_a_token_that_the_hub_refuses_is_told_before_anything_is_written(
    tmp_path, trained, hub, monkeypatch, capsys
):
    monkeypatch.setenv("HF_TOKEN", "wrong")
    checkpoint, out = tmp_path / "run/checkpoints/global_step_7", tmp_path / "out"
    write_checkpoint(checkpoint, trained, 1)
    assert code_of(main, [str(checkpoint), str(out), "--push-to-hub", "me/model"]) == 2
    assert "the hub did not do create_repo for me/model: " in capsys.readouterr().err
    assert not out.exists()


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
    assert torch.equal(merged[name], exported[name].to(torch.bfloat16))
    assert merge(checkpoint) == f"{checkpoint}/merged"  # which is there
    assert {path.name for path in checkpoint.iterdir()} == {"actor", "COMPLETE", "merged"}
