"""Start, watch and end a run: launching, waiting, folders, console. Knows nothing of the recipe."""
