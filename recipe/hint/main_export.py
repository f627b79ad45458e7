"""Export a checkpoint as a model: ``main_export.py --help``."""

import sys

from recipe.study.export import main

if __name__ == "__main__":
    sys.exit(main())
