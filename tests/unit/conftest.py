import logging
import sys
from pathlib import Path

import pytest

# For `fakes`; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))  # for `attacks`


@pytest.fixture(autouse=True)
def loggers_as_in_a_new_process():
    """A command that ran in this process may have silenced them: Hydra does, main_prepare too."""
    logging.root.setLevel(logging.WARNING)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("recipe.") and isinstance(logger, logging.Logger):
            logger.disabled = False
            logger.setLevel(logging.NOTSET)
