"""The GPU benchmark's code, on a processor: its numbers mean nothing there, its path and its arithmetic do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import comparison, main, matrix, workload

ROOT = Path(__file__).parents[2]


def side(tokens_per_second, gigabytes, operations):
    rates = {"tokens_per_second": tokens_per_second, "operations_per_second": operations}
    return rates | {"peak_memory_bytes": gigabytes * 10**9}


def test_the_faster_of_our_sides_is_compared_with_the_trainer():
    training = {"ours": side(150, 4, 3.0), "ours_compiled": side(200, 6, 4.0), "trainer": side(100, 10, 2.0)}
    rows = comparison({**training, "matrix": {"operations_per_second": 10.0}})
    assert {row["name"]: (row["ratio"], row["holds"]) for row in rows} == {
        "training against Trainer": (2.0, True),
        "training, memory": (0.6, True),
        "utilisation": (0.4, False),
    }


def test_a_part_that_failed_is_not_compared():
    fills = {"markers_per_second": 30.0, "pipeline_markers_per_second": 10.0}
    found = {"ours": side(150, 4, 0.6), "trainer": {"error": "y"}, "matrix": {"error": "z"}}
    (row,) = comparison({**found, "ours_compiled": {"error": "x"}, "roberta_base_shape": fills})
    assert (row["name"], row["ratio"]) == ("fills", 3.0)


def test_the_full_workload_is_the_papers():
    size, batch_tokens, steps, warm = workload(tiny=False)
    assert (size.layers, size.heads, size.width, size.words) == (6, 12, 768, 85_000)
    assert batch_tokens * steps > 10**6
    assert warm < steps


def test_the_matrix_rate_is_one_of_this_earth():
    assert 1e8 < matrix(tiny=True)["operations_per_second"] < 1e14


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
