"""Compiling a model before it is trained (torch.compile)."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tasks.errors import ResourceError

_COMPILERS = ("g++", "clang++", "c++")


def check_compiler() -> None:
    """``ResourceError`` where this machine has nothing to compile with."""
    wanted = (os.environ["CXX"],) if os.environ.get("CXX") else _COMPILERS
    if not any(shutil.which(name) for name in wanted):
        raise ResourceError(
            f"compile is on and there is no C++ compiler ({', '.join(wanted)}); install one, name it in the "
            "environment variable CXX, or switch compile off"
        )
    if torch.cuda.is_available():
        from torch.utils._triton import has_triton

        if not has_triton():
            raise ResourceError(
                "compile is on and PyTorch finds no Triton, which it compiles for a GPU with; install "
                "triton, or switch compile off"
            )


@contextmanager
def compile_model(model: nn.Module, compiled: bool) -> Iterator[None]:
    """Have ``model`` run compiled inside the block; rows of any number and length are compiled once."""
    if not compiled:
        yield
        return
    check_compiler()
    model.compile(dynamic=True)
    try:
        yield
    finally:
        model._compiled_call_impl = None
