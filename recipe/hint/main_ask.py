"""Ask a model or a checkpoint one problem: ``main_ask.py --help``."""

from recipe.study.ask import main

if __name__ == "__main__":
    main()
