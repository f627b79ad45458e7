"""The untried cluster files parse, say that they are untried, and give settings that compose."""

import re
import shlex
import subprocess

import pytest
import yaml

from recipe import REPOSITORY
from recipe.hint.command import choose_hardware, translated

FILES = sorted((REPOSITORY / "configs/clusters").iterdir())


def scripts_of(path):
    """The shell text of a file."""
    text = path.read_text("utf-8")
    if path.suffix == ".sh":
        return text
    node = yaml.safe_load(text)
    return node["run"] if "run" in node else node["spec"]["entrypoint"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_cluster_file_is_short_and_its_shell_parses(path):
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= 40 and any(line.startswith("# Untried.") for line in lines[:2])
    subprocess.run(["bash", "-n"], input=scripts_of(path), text=True, check=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_settings_of_a_cluster_file_compose(path, composed):
    [command] = re.findall(r"hint train (.*)", scripts_of(path).replace("\\\n", " "))
    words = [re.sub(r"=\$\w+$", "=2", word) for word in shlex.split(command) if "=" in word]
    settings, _ = choose_hardware(translated(words), has_gpu=False)
    assert composed(*settings).trainer.nnodes == 2


def test_all_pods_of_kuberay_have_the_same_gpus():
    spec = yaml.safe_load((REPOSITORY / "configs/clusters/kuberay.yaml").read_text("utf-8"))["spec"]
    cluster = spec["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    pods = [group["template"]["spec"]["containers"][0] for group in groups]
    assert [pod["resources"]["limits"]["nvidia.com/gpu"] for pod in pods] == [8, 8]
