"""PyTorch as a stage sets it up, before any test module imports transformers; and the tiny models of other tests."""

import sys
from pathlib import Path

from tasks.torch_setup import set_up_torch

sys.path.append(str(Path(__file__).parents[1] / "filling"))
set_up_torch(1)
