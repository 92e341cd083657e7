"""What ``make install`` does for torchaudio beside a CPU build of PyTorch, and that every process then works."""

import _ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.torchaudio_extension import remove_unloadable

CPU_BUILD = torch.version.cuda is None and torch.version.hip is None


def test_every_process_of_the_environment_imports(tmp_path):
    names = "GPT2LMHeadModel, AutoModelForCausalLM, Trainer, pipeline"
    code = f"import torchaudio, peft; from transformers import {names}"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, f"run 'make install' again: {ran.stderr[-300:]}"


@pytest.mark.skipif(not CPU_BUILD, reason="a CUDA build loads the extension")
@pytest.mark.parametrize(
    ("name", "content", "gone"),
    [
        ("_torchaudio.abi3.so", b"no library", True),
        ("_torchaudio.cpython-311-x86_64-linux-gnu.so", b"", True),
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
    assert remove_unloadable(tmp_path) == []


@pytest.mark.skipif(not CPU_BUILD, reason="a CUDA build loads the extension")
def test_torchaudio_imports_without_its_extension(tmp_path):
    import importlib.util

    package = Path(importlib.util.find_spec("torchaudio").origin).parent
    shutil.copytree(package, tmp_path / "torchaudio")
    (tmp_path / "torchaudio" / "lib" / "_torchaudio.abi3.so").write_bytes(b"no library")
    root = Path(__file__).parents[1]
    run = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]\n"
    code = [
        "import runpy; runpy.run_module('tasks.torchaudio_extension', run_name='__main__')",
        "import torchaudio; torchaudio.transforms.MelSpectrogram(); print(torchaudio.__file__)",
    ]
    said = [
        subprocess.run([sys.executable, "-c", run + one], capture_output=True, text=True, check=True).stdout
        for one in code
    ]
    assert said[0].startswith("removed _torchaudio.abi3.so of torchaudio")
    assert str(tmp_path) in said[1]
