import sys
from pathlib import Path

import pytest

# For `runs`; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("runs")
