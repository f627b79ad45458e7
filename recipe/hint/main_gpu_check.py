"""Check a machine with one GPU; see :mod:`recipe.study.gpu_check`."""

import sys

from recipe.study.gpu_check import main

if __name__ == "__main__":
    sys.exit(main())
