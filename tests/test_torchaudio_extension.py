"""``make install`` removes the extension of torchaudio that a CPU build of PyTorch cannot load, and nothing else."""

import _ctypes
from pathlib import Path

import pytest
import torch

from tasks.torchaudio_extension import remove_unloadable

pytestmark = pytest.mark.skipif(
    torch.version.cuda is not None or torch.version.hip is not None, reason="another build loads the extension"
)


@pytest.mark.parametrize(
    ("name", "content", "gone"),
    [
        ("_torchaudio.abi3.so", b"no library", True),
        ("_torchaudio.abi3.so", Path(_ctypes.__file__).read_bytes(), False),
        ("libtorchaudio.abi3.so", b"no library", False),
    ],
)
def test_only_an_extension_that_cannot_be_loaded_is_removed(tmp_path, name, content, gone):
    library = tmp_path / "lib" / name
    library.parent.mkdir()
    library.write_bytes(content)
    assert remove_unloadable(tmp_path) == ([library] if gone else [])
    assert library.exists() is not gone
