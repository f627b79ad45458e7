"""What a wheel holds, and that its extras name the versions of the locks."""

import tomllib
from pathlib import Path

import pytest

from recipe import PROGRAMS, REPOSITORY

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.mark.parametrize("folder", ["configs", "data"])
def test_a_wheel_holds_every_preset_and_all_embedded_data(folder):
    package = ROOT / "recipe"
    globs = PYPROJECT["tool"]["setuptools"]["package-data"]["recipe"]
    packaged = {path for pattern in globs for path in package.glob(pattern) if path.is_file()}
    real = {package / path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.*")}
    assert {path for path in real if path.is_file()} <= packaged


def test_presets_and_data_are_found_through_the_package_alone():
    assert REPOSITORY == ROOT and PROGRAMS == ROOT / "recipe/hint"
    assert (ROOT / "recipe/configs").resolve() == ROOT / "configs"
    assert (ROOT / "recipe/data").resolve() == ROOT / "data"


@pytest.mark.parametrize("extra", ["cpu", "gpu", "inspect", "real", "dev", "docs"])
def test_an_extra_names_the_versions_of_its_lock(extra):
    locked = (ROOT / f"requirements/{extra}.lock").read_text("utf-8").splitlines()
    assert set(PYPROJECT["project"]["optional-dependencies"][extra]) <= set(locked)
