"""PyTorch as a stage sets it up, before any test module imports transformers."""

from tasks.torch_setup import set_up_torch

set_up_torch(1)
