"""The three-turn world: a guide can name the step that slipped, and a refinement does it again."""
