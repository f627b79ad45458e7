"""The two-turn world: a first response guesses its result, a revision can read it off the work."""
