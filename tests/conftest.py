"""What all tests share.

Property tests draw the same cases everywhere; HINT_PROPERTIES=anew draws others, and more.
"""

import copy
import os
import tempfile
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.plugins import Plugins
from hypothesis import HealthCheck, settings

# No limit of time in either: a busy machine must not change what a test says.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "anew",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HINT_PROPERTIES", "same"))


def read_each_file_once():
    """Keep Hydra from parsing verl's forty files again for every command in this process."""
    Plugins.instance()  # registers the sources
    source = SourcesRegistry.instance().resolve("file")
    read, known = source.load_config, {}

    def load_config(self, config_path):
        file = Path(self.path, config_path)
        if file.is_relative_to(tempfile.gettempdir()):
            return read(self, config_path)  # a test may write it anew
        if file not in known:
            known[file] = read(self, config_path)
        return copy.deepcopy(known[file])

    source.load_config = load_config


read_each_file_once()


@pytest.fixture(autouse=True)
def environment_of_its_own():
    """Give the next test the environment that this one found: commands set some of it."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def config_paths():
    """Tell Hydra where the parts of the configuration are, until the file's tests are done."""
    from recipe.hint.command import set_config_paths

    before = dict(os.environ)
    set_config_paths()
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def composed(config_paths):
    """Compose the settings of a command line: ``composed("hardware=laptop", ...)``."""
    from recipe.hint.command import CONFIG_DIR

    def composed(*overrides):
        with initialize_config_dir(str(CONFIG_DIR), version_base=None):
            return compose("hint_trainer", overrides=list(overrides))

    return composed


@pytest.fixture
def composed_once(monkeypatch):
    """Keep a command in this process from composing its settings twice.

    Hydra does so to read ``hydra.mode``, which no test here sets; tests that start a process run
    the command as it is.
    """
    from hydra._internal.hydra import Hydra

    monkeypatch.setattr(Hydra, "get_mode", lambda *_, **__: None)
