"""The three-turn world: a guide says what to do with the box, and a refinement does it."""
