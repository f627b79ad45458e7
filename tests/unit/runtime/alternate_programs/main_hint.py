"""Writes what a run leaves, without training, and asks its partner at every step."""

import contextlib
import json
import os
import sys
import time
import urllib.request
from pathlib import Path

given = {name: value.strip("'") for name, value in (each.split("=", 1) for each in sys.argv[1:])}
folder = Path(given["hint.run_dir"])
folder.mkdir(exist_ok=True)
(folder / "pid").write_text(str(os.getpid()))


def partner() -> str:
    body = json.dumps({"model": given["hint.teacher.model"]}).encode()
    request = urllib.request.Request(
        given["hint.teacher.base_url"] + "/chat/completions",
        data=body,
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["choices"][0]["message"]["content"]


if given.get("trainer.eval_only") == "true":
    weights = Path(given["actor_rollout_ref.model.path"], "model.safetensors").read_text()
    (folder / "pair.json").write_text(json.dumps([weights, partner()]))
    sys.exit()
done = len(list(folder.glob("checkpoints/*/COMPLETE")))
for step in range(done + 1, int(given["trainer.total_training_steps"]) + 1):
    if given.get("hang") == f"{folder.name}-{step}":
        (folder / "hangs").touch()
        with contextlib.suppress(OSError):
            partner()
        time.sleep(600)
    asked = partner()
    with open(folder / "metrics.jsonl", "a") as metrics:
        metrics.write(
            json.dumps({"step": step, "hint/prompts": 1, "partner": asked, "given": given}) + "\n"
        )
    if given.get("fail") == f"{folder.name}-{step}":
        sys.exit(3)
    if given.get("save") != "never":
        checkpoint = folder / f"checkpoints/global_step_{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "COMPLETE").write_text("{}")
