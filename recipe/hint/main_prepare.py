"""Turn a file or a named public data set into a data file; `--help` and docs/data.md say how."""

import sys
from collections.abc import Sequence

from recipe.problems import prepare_command
from recipe.run.ending import errors_in_one_line
from recipe.study import gguf_model, offline_hints

COMMANDS = {"hints": offline_hints.main, "model": gguf_model.main}


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command that the first word names, or make a data file."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in COMMANDS:
        COMMANDS[words[0]](words[1:])
    else:
        prepare_command.main(words)


if __name__ == "__main__":
    main()
