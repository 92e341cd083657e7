"""Comparisons with other programs, and measurements of the project's own steps; all on one thread."""

from tasks import process_environment
from tasks.torch_setup import set_up_torch

process_environment.set_variables()
set_up_torch(1)
