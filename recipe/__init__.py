"""Hint-guided RL for language models, in packages whose imports point one way."""

from pathlib import Path

# What holds configs/ and data/: the clone, where recipe/configs and recipe/data are links to its
# folders, or the installed package, which has copies of them.
REPOSITORY = (Path(__file__).parent / "configs").resolve().parent
PROGRAMS = Path(__file__).resolve().parent / "hint"  # where main_*.py are
