"""What is checked before Ray starts; ``run.py`` calls the checks from top to bottom.

Nothing is started and nothing written. A check refuses what fails or spoils a run after minutes,
with a :class:`ConfigError` (or :class:`DataError` for a file of problems) that says what was given,
what was expected and what to do. What merely has no effect is named in one warning. What verl
refuses itself within a minute, in a sentence, is left to verl.
"""
