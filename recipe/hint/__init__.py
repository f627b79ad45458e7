"""The recipe: methods, loop, hints, credit and the adapter to verl."""
