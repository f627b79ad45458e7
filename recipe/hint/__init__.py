"""Hint-guided RL for language models: SAGE, SAGE-LIGHT and their baselines on verl."""

from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent  # where main_*.py are
REPOSITORY = PROGRAMS.parents[1]
