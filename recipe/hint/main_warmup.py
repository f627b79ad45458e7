"""Warm a model up before the training with hints: ``main_warmup.py --help``."""

from recipe.study.warmup import main

if __name__ == "__main__":
    main()
