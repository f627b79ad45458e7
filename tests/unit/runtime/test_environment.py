"""What a CPU run takes of its machine."""

import os

import pytest
from omegaconf import OmegaConf

from recipe.hint.settings import settings_of
from recipe.run import environment


def config_of(path):
    trainer = {"device": "cpu"}
    node = {"trainer": trainer, "actor_rollout_ref": {"model": {"path": str(path)}}}
    return OmegaConf.create(node | {"hint": {"run_dir": "."}})


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setenv("HINT_REPO", ".")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    monkeypatch.setattr(environment, "_LARGE_BYTES", 1000)


def model_of(folder, size):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"0" * size)
    return folder


@pytest.mark.parametrize("size, threads", [(900, None), (1100, "3")])
def test_a_large_model_takes_the_threads_of_the_machine(tmp_path, size, threads):
    values = environment.environment_of(config_of(model_of(tmp_path / "m", size)))
    assert values.get("OMP_NUM_THREADS") == threads
    assert values["HF_HUB_OFFLINE"] == "1"


def test_a_model_that_is_not_here_may_come_from_the_hub():
    values = environment.environment_of(config_of("owner/model"))
    assert (values["HF_HUB_OFFLINE"], values["OMP_NUM_THREADS"]) == ("0", "3")


@pytest.mark.parametrize(
    "tokens, hint_tokens, rollout_s",
    [(48, 64, 245.76), (256, 341, 1310.72), (4096, 1024, 20971.52)],
)
def test_limits_of_the_laptop_follow_from_the_longest_response(tokens, hint_tokens, rollout_s):
    limits = {"rollout_s": f"${{sampling_s:120,2,256,{tokens}}}", "progress_s": 1e6}
    node = {"hint": {"max_tokens": f"${{hint_tokens:{tokens}}}", "watchdog": limits}}
    settings = settings_of(OmegaConf.create(node))
    assert (settings.max_tokens, settings.watchdog.rollout_s) == (hint_tokens, rollout_s)
