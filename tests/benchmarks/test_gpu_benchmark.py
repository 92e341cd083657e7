"""The GPU benchmark's code, on a processor: its numbers mean nothing there, its path and its arithmetic do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import comparison, summary_lines
from benchmarks.gpu.device import matrix_rate
from benchmarks.gpu.workload import masked_lines, training_workload, zipf_text

ROOT = Path(__file__).parents[2]


def side(tokens_per_second, gigabytes, utilisation):
    return {
        "tokens_per_second": tokens_per_second,
        "peak_memory_bytes": gigabytes * 10**9,
        "utilisation": utilisation,
        "operations_per_second": 1.0,
    }


def test_the_faster_of_our_sides_is_held_against_the_trainer():
    training = {"ours": side(150, 4, 0.3), "ours_compiled": side(200, 6, 0.4), "trainer": side(100, 10, 0.2)}
    rows = {row["name"]: (row["value"], row["holds"]) for row in comparison(training)}
    assert rows == {
        "tokens a second against transformers.Trainer": (2.0, True),
        "peak memory against transformers.Trainer": (0.6, False),
        "model FLOP utilisation": (0.4, False),
    }


def test_a_part_that_failed_is_shown_and_not_compared():
    training = {"ours": side(150, 4, 0.6), "ours_compiled": {"error": "RuntimeError: x"}, "trainer": {"error": "y"}}
    rows = comparison(training)
    assert [row["name"] for row in rows] == ["model FLOP utilisation"]
    result = {"card": "a card", "tiny": False, "matrix": {"error": "z"}, "training": training, "filling": {}}
    lines = summary_lines({**result, "comparison": rows})
    assert "ours_compiled             failed: RuntimeError: x" in lines
    assert lines[-1] == "model FLOP utilisation: 0.60 (target >= 0.5: holds)"


def test_the_full_workload_is_the_papers():
    workload = training_workload(tiny=False)
    assert (workload.layers, workload.heads, workload.width, workload.words) == (6, 12, 768, 85_000)


def test_the_text_fills_the_steps():
    workload = training_workload(tiny=True)
    text = zipf_text(workload)
    assert text.sentences == len(text.offsets) - 1
    assert text.offsets[-1] == len(text.tokens)
    targets = len(text.tokens) - text.sentences
    assert workload.steps * workload.batch_tokens <= targets <= 2 * workload.steps * workload.batch_tokens


def test_masked_lines_have_markers():
    lines = masked_lines(50)
    assert all(2 <= line.count("[MASK]") <= 5 for line in lines)


def test_the_matrix_rate_is_one_of_this_earth():
    assert 1e8 < matrix_rate("cpu", tiny=True)["operations_per_second"] < 1e14


def run_benchmark(*options):
    command = [sys.executable, "-m", "benchmarks.gpu", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_every_part_runs_on_a_processor(tmp_path):
    ran = run_benchmark("--device", "cpu", "--tiny", "--output", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    (path,) = tmp_path.glob("gpu-*.json")
    result = json.loads(path.read_text())
    assert result["tiny"] is True
    for name, part in {**result["training"], **result["filling"], "matrix": result["matrix"]}.items():
        if name != "ours_compiled":
            assert "error" not in part, (name, part)
    ours, peer = result["training"]["ours"], result["training"]["trainer"]
    # The same shape, but for one position more.
    assert peer["parameters"] - ours["parameters"] == 32
    assert abs(ours["loss"] - peer["loss"]) < 0.5
    assert all("random weights" in part["model"] for part in result["filling"].values())


def test_without_a_gpu_it_says_so_in_one_line(tmp_path):
    ran = run_benchmark("--output", str(tmp_path))
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert "there is no GPU that PyTorch can use here" in ran.stderr
    assert not list(tmp_path.iterdir())
