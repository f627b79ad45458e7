import logging

import pytest


@pytest.fixture(autouse=True)
def loggers_as_in_a_new_process():
    """A command that ran in this process may have silenced them: Hydra does, main_prepare too."""
    logging.root.setLevel(logging.WARNING)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("recipe.") and isinstance(logger, logging.Logger):
            logger.disabled = False
            logger.setLevel(logging.NOTSET)
