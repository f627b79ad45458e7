import pytest

from recipe.verify import rewards


@pytest.fixture
def grade_path(request, tmp_path, monkeypatch):
    """The path of the test file's own ``GRADE_MODULE``, where the processes of a pool find it."""
    (tmp_path / "own_grades.py").write_text(request.module.GRADE_MODULE)
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "own_grades:grade"


@pytest.fixture(autouse=True, scope="module")
def closed_pool():
    """Leave no process of the pool that verl's and TRL's interfaces share to the next file."""
    yield
    if rewards._pool.cache_info().currsize:
        rewards._pool().close()
        rewards._pool.cache_clear()
