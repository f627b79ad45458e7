import sys
from pathlib import Path

# For `enumerated` and `updates`; --import-mode=importlib adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))
