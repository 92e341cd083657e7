"""Remove torchaudio's compiled extension from an environment whose PyTorch cannot load it; ``make install`` runs it.

torchaudio's wheel is a CUDA build. Its extension does not load with a CPU build of PyTorch, and ``import torchaudio``,
``peft`` and most models of ``transformers`` then raise ``OSError: libc10_cuda.so``. torchaudio works without the file:
only ``forced_align`` and ``rnnt_loss`` are lost.

``python -m tasks.torchaudio_extension`` does it for the environment of this Python; it can be repeated.
"""

import importlib.util
from pathlib import Path


def remove_unloadable(package: Path) -> list[Path]:
    """Remove the extension from torchaudio's folder if a CPU build cannot load it; return the removed files."""
    import torch

    gone = []
    if torch.version.cuda is None and torch.version.hip is None:
        for library in (package / "lib").glob("_torchaudio*.so"):
            try:
                torch.ops.load_library(library)
            except OSError:
                library.unlink()
                gone.append(library)
    return gone


if __name__ == "__main__":
    found = importlib.util.find_spec("torchaudio")
    if found is not None and found.origin is not None:
        for path in remove_unloadable(Path(found.origin).parent):
            print(f"removed {path.name} of torchaudio: a CPU build of PyTorch cannot load it")
