"""Export a checkpoint as a model: ``main_export.py CHECKPOINT OUT [--dtype bf16|fp32]``.

OUT holds safetensors, tokenizer, chat template and a model card; transformers and vLLM load it, and
``hf upload NAME OUT`` publishes it. If the export fails, the exit code is 2, with one line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line


@errors_in_one_line(hears_sigterm=True)
def main(argv: list[str] | None = None) -> int:
    """Write the folder."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="RUN/checkpoints/global_step_N")
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    given = parser.parse_args(argv)
    from recipe.study.merging import check_export

    check_export(given.checkpoint, given.out)
    print("reading the checkpoint ...", file=sys.stderr, flush=True)
    from recipe.study.export import export_model

    export_model(given.checkpoint, given.out, given.dtype)
    print(f"{given.out}: {given.dtype} weights, tokenizer and model card")
    return 0


if __name__ == "__main__":
    sys.exit(main())
