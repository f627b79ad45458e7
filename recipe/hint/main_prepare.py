"""Turn a file or a named public data set into a data file; `--help` and docs/data.md say how."""

from functools import partial

from recipe.problems import prepare_command
from recipe.study import gguf_model, offline_hints

COMMANDS = {"hints": offline_hints.main, "model": gguf_model.main}
main = partial(prepare_command.main, commands=COMMANDS)
if __name__ == "__main__":
    main()
