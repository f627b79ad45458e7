"""Make a model in bf16 of what a trainer saved: arguments ``ACTOR TARGET``."""

import sys
from pathlib import Path

from recipe.study.export import write_model

if __name__ == "__main__":
    write_model(Path(sys.argv[1]), Path(sys.argv[2]), "bf16")
