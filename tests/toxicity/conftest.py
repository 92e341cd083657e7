"""PyTorch as a stage sets it up."""

from tasks.torch_setup import set_up_torch

set_up_torch(1)
