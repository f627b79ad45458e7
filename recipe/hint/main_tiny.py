"""Rebuild an embedded world; see :mod:`recipe.worlds.build`."""

import os

# Read when torch loads. Threads that spin while they wait for each other lose most of their
# time as soon as another process wants a core: measured 3.5 s instead of 0.4 s per update.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from recipe.worlds.build import main  # noqa: E402

if __name__ == "__main__":
    main()
