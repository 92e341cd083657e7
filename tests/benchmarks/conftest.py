"""Benchmarks are no part of the installed package: they are run from the checkout, and so are their tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
