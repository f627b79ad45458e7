import sys
from pathlib import Path

# For `page_runs` and `response_rows`; --import-mode=importlib adds no folder by itself.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "evaluation")]
