"""Export a checkpoint as a model: ``hint export --help``."""

from recipe.study.export import main

if __name__ == "__main__":
    raise SystemExit(main())
