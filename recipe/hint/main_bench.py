"""Measure what a step costs; see :mod:`recipe.study.bench`."""

from recipe.study.bench import main

if __name__ == "__main__":
    main()
