"""Exports a checkpoint as a model: ``main_export.py CHECKPOINT OUT [--dtype bf16|fp32]``.

OUT holds safetensors, tokenizer, chat template and a model card; transformers and vLLM load it, and
``hf upload NAME OUT`` publishes it. If the export fails, the exit code is 2, with one line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recipe.hint.command.arguments import Parser, interruptible
from recipe.hint.errors import ConfigError, HintError, one_line


@interruptible()
def main(argv: list[str] | None = None) -> int:
    """Write the folder."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="RUN/checkpoints/global_step_N")
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    given = parser.parse_args(argv)
    try:
        check_folders(given.checkpoint, given.out)
        print("reading the checkpoint ...", file=sys.stderr, flush=True)
        from recipe.hint.runtime.export import export_model

        export_model(given.checkpoint, given.out, given.dtype)
    except (HintError, OSError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 2
    print(f"{given.out}: {given.dtype} weights, tokenizer and model card")
    return 0


def check_folders(checkpoint: Path, out: Path) -> None:
    """Check what needs none of the libraries, which take long to load.

    Raises:
        ConfigError: If there is no checkpoint, or ``out`` is there.
    """
    if not checkpoint.exists():
        from recipe.hint.runtime.merging import known_checkpoints

        known = known_checkpoints(checkpoint)
        raise ConfigError(
            f"{checkpoint}: no such folder; give a folder checkpoints/global_step_N of a run"
            + (f": {known}" if known else "")
        )
    if out.exists():
        raise ConfigError(f"{out} is there already; give a folder that is not")


if __name__ == "__main__":
    sys.exit(main())
