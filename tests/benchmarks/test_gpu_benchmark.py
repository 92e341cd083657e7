"""The GPU benchmark's code, on a processor: its numbers mean nothing there, its path and its arithmetic do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import main

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_part_runs_on_a_processor(tmp_path):
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--tiny", "--output", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    (path,) = tmp_path.glob("gpu-*.json")
    parts = json.loads(path.read_text())["parts"]
    assert [name for name, part in parts.items() if "error" in part] == []
    # The same shape, but for one position more.
    assert parts["trainer"]["parameters"] - parts["ours"]["parameters"] == 32
    assert abs(parts["ours"]["loss"] - parts["trainer"]["loss"]) < 0.5


def test_without_a_gpu_it_says_so_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--output", str(tmp_path)])
    assert main() == 1
    assert capsys.readouterr().err == "benchmarks.gpu: there is no GPU that PyTorch can use here\n"
    assert not list(tmp_path.iterdir())
