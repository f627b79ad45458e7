"""What is checked before Ray starts; ``run.py`` calls the checks from top to bottom.

Nothing is started and nothing written. A check raises :class:`ConfigError`, or :class:`DataError`
for a file of problems, on the first thing that cannot work, and its message says what was given,
what was expected and what to do. A config is resolved before it comes here.
"""
