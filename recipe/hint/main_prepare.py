"""Turn a file or a named public data set into a data file; `--help` and docs/data.md say how."""

from functools import partial

from recipe.problems import prepare_command
from recipe.study import offline_hints

main = partial(prepare_command.main, commands={"hints": offline_hints.main})
if __name__ == "__main__":
    main()
