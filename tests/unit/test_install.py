"""For which GPUs scripts/_install.sh builds flash-attn."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = "FLASH_ATTN_CUDA_ARCHS"


@pytest.mark.parametrize(
    ("capabilities", "given", "expected"),
    [
        (["9.0"] * 8, None, "90"),
        (["[N/A]"], None, "unset"),
        (["8.6", "8.0"], None, "80"),
        (["12.1", "10.3", "8.9", "9.0"], None, "100;120;80;90"),
        (["9.0"], "80;90", "80;90"),
        (None, None, "unset"),
    ],
)
def test_flash_attn_is_built_for_the_generations_of_this_machines_gpus(
    tmp_path, capabilities, given, expected
):
    smi = tmp_path / "nvidia-smi"
    if capabilities is None:
        smi.write_text("#!/bin/sh\nexit 9\n")
    else:
        smi.write_text("#!/bin/sh\nprintf '%s\\n' " + " ".join(capabilities) + "\n")
    smi.chmod(0o755)
    script = (
        "set -euo pipefail; source scripts/_install.sh; "
        f'pip_install() {{ echo "${{{LISTED}-unset}} $3"; }}; install_flash_attn'
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"} | ({LISTED: given} if given else {})
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lock = (ROOT / "requirements/gpu.lock").read_text().splitlines()
    (pin,) = [line for line in lock if line.startswith("flash-attn==")]
    assert done.stdout.split() == [expected, pin]
