"""Warm a model up before the training with hints: ``hint warmup --help``."""

from recipe.study.warmup import main

if __name__ == "__main__":
    main()
