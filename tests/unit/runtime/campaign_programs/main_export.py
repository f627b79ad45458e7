"""Makes the folder of the weights."""

import sys
from pathlib import Path

checkpoint, target = map(Path, sys.argv[1:3])
assert (checkpoint / "COMPLETE").exists()
target.mkdir()
with open(target.parent / "calls.txt", "a") as calls:
    calls.write("export\n")
