"""Writes what a run leaves, without training: the driver's tests look at processes and files."""

import json
import re
import sys
from pathlib import Path


def read(overrides):
    """As Hydra reads them; its import, longer than all else here, only where quotes need it."""
    pairs = [each.lstrip("+").split("=", 1) for each in overrides]
    values = [re.sub(r"\A'([^'\\]*)'\Z", r"\1", value) for _, value in pairs]
    if not any(sign in value for value in values for sign in "'\"\\[{"):
        return {name: value for (name, _), value in zip(pairs, values, strict=True)}
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(overrides)
    return {each.key_or_group: str(each.value()) for each in parsed}


given = read(sys.argv[1:])
folder = Path(given["hint.run_dir"])
with open(folder / "calls.txt", "a") as calls:
    calls.write("evaluate\n" if "trainer.eval_only" in given else "train\n")
if len((folder / "calls.txt").read_text().split()) <= int(given.get("fails", 0)):
    sys.exit(3)
if "trainer.eval_only" in given:
    (folder / "evaluation").mkdir()
    (folder / "evaluation/results.json").write_text(json.dumps(given))
    sys.exit(5 if "fails_late" in given else 0)
else:
    steps = given.get("steps", "4")
    (folder / "config.yaml").write_text(f"trainer:\n  total_training_steps: {steps}\n")
    (folder / "metrics.jsonl").write_text(json.dumps({"step": int(steps)}) + "\n")
    if "leaves_nothing" not in given:
        (folder / f"checkpoints/global_step_{steps}").mkdir(parents=True)
        (folder / f"checkpoints/global_step_{steps}/COMPLETE").touch()
