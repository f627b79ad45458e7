"""Paths that Ray's workers must find from another working directory."""

import pytest
from omegaconf import OmegaConf

from recipe.run.paths import DATA_FILES, FOLDERS, SOURCES, make_absolute


def with_setting(name, value):
    config = OmegaConf.create({"data": {"train_files": [], "val_files": []}})
    OmegaConf.update(config, name, value, force_add=True)
    return config


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", [*FOLDERS, *SOURCES, "trainer.resume_from_path"])
def test_what_is_here_becomes_absolute_and_a_name_of_elsewhere_stays(here, name):
    config = with_setting(name, "mine")
    make_absolute(config)
    assert OmegaConf.select(config, name) == str(here / "mine")
    for value in ("Qwen/Qwen2.5-7B", "pkg://a.b", "hdfs://host/a", None) * (name in SOURCES):
        config = with_setting(name, value)
        make_absolute(config)
        assert OmegaConf.select(config, name) == value


@pytest.mark.parametrize("files", ["mine", ["mine", "/other"]])
def test_data_files_are_a_list(here, files):
    config = with_setting("data.val_files", files)
    make_absolute(config)
    rest = [] if isinstance(files, str) else ["/other"]
    assert config.data.val_files == [str(here / "mine"), *rest]


def test_verls_settings_are_there(composed):
    config = composed("hardware=laptop")
    for name in (*FOLDERS, *SOURCES, *DATA_FILES):
        section, _, key = name.rpartition(".")
        assert key in OmegaConf.select(config, section), name
