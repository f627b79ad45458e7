"""Arms timed side by side in one run; production code knows nothing of it."""
