"""Ask a model or a checkpoint one problem: ``hint ask --help``."""

from recipe.study.ask import main

if __name__ == "__main__":
    main()
