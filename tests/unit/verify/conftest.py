import pytest


@pytest.fixture
def grade_path(request, tmp_path, monkeypatch):
    """The path of the test file's own ``GRADE_MODULE``, where the processes of a pool find it."""
    (tmp_path / "own_grades.py").write_text(request.module.GRADE_MODULE)
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "own_grades:grade"
