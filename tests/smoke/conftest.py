import sys
from pathlib import Path

import pytest
import yaml
from hydra._internal.hydra import Hydra

# For `runs`; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def quick_composing(monkeypatch):
    """Half the work of a command in this process: its settings are composed once, parsed in C.

    Hydra composes all of verl's files a first time only to read ``hydra.mode``, which no test here
    sets; the tests that start a process run the command as it is.
    """
    monkeypatch.setattr(Hydra, "get_mode", lambda *_, **__: None)
    monkeypatch.setattr(yaml, "SafeLoader", yaml.CSafeLoader)
