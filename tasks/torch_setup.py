"""Set-up of PyTorch for a stage: threads, memory, reproducible arithmetic, and torchaudio with a CPU build.

Import this module before ``transformers``, ``peft`` or ``torchaudio`` are imported.
"""

import ctypes
import importlib.util
import os
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_LARGE = 1 << 30
_KERNELS_KEPT = "32"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def set_up_torch(threads: int) -> None:
    """Fix the number of threads, retain freed memory for the next step, and make results repeatable.

    Glibc returns large blocks to the system after each use, and a training step needs the same blocks again: retaining
    them makes a step up to 1.5 times faster, at the price of resident memory.
    """
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Both caches hold 1,024 compiled kernels by default, one for each shape of a bfloat16 product, 0.3 MB apiece. Text
    # comes in hundreds of shapes: a training process grew by a gigabyte, and was no faster for it.
    os.environ.setdefault("LRU_CACHE_CAPACITY", _KERNELS_KEPT)
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _KERNELS_KEPT)
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
            library.mallopt(_M_TRIM_THRESHOLD, _LARGE)
    import torch

    torch.set_num_threads(threads)
    # The effect of use_deterministic_algorithms(True, warn_only=True), without its import of the compiler (1.1 s).
    torch.set_deterministic_debug_mode("warn")
    # Filling every new tensor is for code that reads memory it has not written; it costs 6 % of a training step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    stand_in_for_torchaudio_extension()


def set_up_installed_torch(threads: int) -> None:
    """``set_up_torch`` where PyTorch is installed: for steps that need it only for some settings."""
    if importlib.util.find_spec("torch") is not None:
        set_up_torch(threads)


def stand_in_for_torchaudio_extension() -> None:
    """Make ``import torchaudio`` work with a CPU build of PyTorch.

    torchaudio's wheel is a CUDA build. With a CPU torch its extension raises ``OSError: libc10_cuda.so``, and then
    ``peft``, ``transformers.Trainer``, ``LlamaForCausalLM`` and ``pipeline`` cannot be imported. A stand-in for the
    module that loads the extension reports it as missing: ``rnnt_loss`` and ``forced_align`` are lost, all else works.
    """
    import torch

    name = "torchaudio._extension"
    if torch.version.cuda is not None or name in sys.modules or "torchaudio" in sys.modules:
        return

    def fail_if_no_align(function):  # type: ignore[no-untyped-def]
        def fail(*_arguments: object, **_options: object) -> None:
            raise RuntimeError(f"{function.__name__} needs torchaudio's compiled extension, a CUDA build of PyTorch")

        return fail

    module = types.ModuleType(name)
    module._IS_TORCHAUDIO_EXT_AVAILABLE = False  # type: ignore[attr-defined]
    module._IS_ALIGN_AVAILABLE = False  # type: ignore[attr-defined]
    module._check_cuda_version = lambda: None  # type: ignore[attr-defined]
    module.fail_if_no_align = fail_if_no_align  # type: ignore[attr-defined]
    sys.modules[name] = module


def set_dropout(model: "torch.nn.Module", share: float) -> None:
    """Set the dropout probability of every dropout layer of the model."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = share


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices in hardware (AVX-512 BF16 or AMX)."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
