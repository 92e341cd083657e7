"""What ``make install`` does for torchaudio beside a CPU build of PyTorch, and that every process then works."""

import _ctypes
import importlib.util
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.torchaudio_extension import remove_unloadable

pytestmark = pytest.mark.skipif(
    torch.version.cuda is not None or torch.version.hip is not None, reason="another build loads the extension"
)
IMPORTS = "torchaudio, peft; from transformers import GPT2LMHeadModel, AutoModelForCausalLM, Trainer, pipeline"


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


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_every_process_imports_all_that_needs_torchaudio_without_its_extension(tmp_path, monkeypatch, capsys):
    package = Path(importlib.util.find_spec("torchaudio").origin).parent
    for library in (package / "lib").glob("_torchaudio*.so"):
        torch.ops.load_library(library)  # run 'make install' again where it cannot
    shutil.copytree(package, tmp_path / "torchaudio")
    (tmp_path / "torchaudio" / "lib" / "_torchaudio.abi3.so").write_bytes(b"no library")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    runpy.run_module("tasks.torchaudio_extension", run_name="__main__")
    assert capsys.readouterr().out.startswith("removed _torchaudio.abi3.so of torchaudio")
    code = f"import {IMPORTS}; torchaudio.transforms.MelSpectrogram(); print(torchaudio.__file__)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout.startswith(str(tmp_path)), ran.stderr[-300:]
