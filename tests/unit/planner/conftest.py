"""Makes the stand-ins beside the tests importable; pytest's importlib mode leaves `sys.path` alone."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
