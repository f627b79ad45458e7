"""Hint-guided RL for language models, in packages whose imports point one way."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAMS = REPOSITORY / "recipe" / "hint"  # where main_*.py are
