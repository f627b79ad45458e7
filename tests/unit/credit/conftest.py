import sys
from pathlib import Path

# For `enumerated`, `updates` and `credit_rows`; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))
