"""Commands and Python of README.md run as they stand, in order; what does not has a reason."""

import os
import re
import subprocess
import sys

import pytest
from page_runs import metrics, record, write_run

from recipe import REPOSITORY

TEXT = (REPOSITORY / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
[OWN_DATA] = [block for block in BLOCKS if "hint prepare" in block]
LEFT = {  # what begins so
    "bash scripts/quickstart.sh": "trains for minutes: tests/smoke/test_training.py",
    "bash scripts/real.sh": "half an hour: tests/smoke/test_real.py",
    "bash scripts/setup.sh": "downloads gigabytes: CI begins with it",
    "pip install": "downloads gigabytes: tests/architecture/test_packaging.py",
    "bash scripts/gpu_check.sh": "needs a GPU: tests/contracts/test_gpu_check.py",
    "bash scripts/test.sh": "runs this test",
    "hint train experiment=": "needs eight GPUs: tests/contracts/test_experiments.py",
}
RUN = ("hint --help", "hint report")  # and OWN_DATA, whose training is only checked
SHELL = """set -euo pipefail; source() { :; }
hint() { [ "$1" != train ] || set -- check "${@:2}"; "$PYTHON" -c "$MAIN" "$@"; }
"""
MAIN = "import sys; from recipe.hint.main import main; sys.exit(main())"


def test_each_command_is_run_or_has_a_reason():
    told = re.findall(r"`((?:bash|hint|pip) [^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.S))
    told += [block for block in BLOCKS if block != OWN_DATA]
    assert [each for each in told if not each.startswith((*LEFT, *RUN))] == []
    assert [left for left in LEFT if not any(each.startswith(left) for each in told)] == []


def test_the_python_gives_what_its_comments_say():
    [block] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    values = {}
    exec(re.sub(r"(?m)^(grade|compute_score|reward_function)\(", r"\1_ = \1(", block), values)
    assert values["grade_"].score == values["compute_score_"] == 1.0
    assert values["reward_function_"] == [1.0]


@pytest.mark.slow
def test_a_table_passes_the_checks_and_a_run_becomes_a_page(tmp_path):
    (tmp_path / "data").symlink_to(REPOSITORY / "data")
    write_run(tmp_path / "other/mine", [record(1, "a", "01")], rows=[metrics(1, 0.5)])
    given = {"PYTHONPATH": str(REPOSITORY), "PYTHON": sys.executable, "MAIN": MAIN}
    own = OWN_DATA.replace("hint report", "mv other outputs\nhint report")
    script = f"{SHELL}hint --help\n{own}"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=os.environ | given, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "mine.parquet: 60 problems, 60 with a solution" in ended.stdout
    assert ended.stdout.count("folder    outputs/mine (new)") == 2
    assert "<html" in (tmp_path / "mine.html").read_text("utf-8")
