"""Makes the folder of the weights; they are the checkpoint's name."""

import sys
from pathlib import Path

checkpoint, target = map(Path, sys.argv[1:3])
assert (checkpoint / "COMPLETE").exists()
target.mkdir()
(target / "model.safetensors").write_text(f"{checkpoint.parents[1].name} {checkpoint.name}")
