"""What one GPU does at the paper's sizes: ``make bench-gpu``, or ``python -m benchmarks.gpu``.

Training of the language model against transformers.Trainer (tokens a second, the share of the card's own bfloat16
matrix rate measured in the same run, peak memory), and filling with models of RoBERTa-base's and LLaMA-2-7B's shapes
with random weights. Each part runs in a process of its own. The result is printed and stored as
benchmarks/results/gpu-NAME.json, NAME being the card's.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
SPEED_TARGET, MEMORY_TARGET, UTILISATION_TARGET = 1.5, 0.5, 0.5


def _matrix(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.device import matrix_rate

    return matrix_rate(device, tiny)


def _ours(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.training_sides import train_ours

    return train_ours(device, tiny, compiled=False)


def _ours_compiled(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.training_sides import train_ours

    return train_ours(device, tiny, compiled=True)


def _trainer(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.training_sides import train_with_trainer

    return train_with_trainer(device, tiny)


def _masked(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.filling_sides import fill_masked

    return fill_masked(device, tiny)


def _causal(device: str, tiny: bool) -> dict[str, Any]:
    from benchmarks.gpu.filling_sides import fill_causal

    return fill_causal(device, tiny)


PARTS: dict[str, Callable[[str, bool], dict[str, Any]]] = {
    "matrix": _matrix,
    "ours": _ours,
    "ours_compiled": _ours_compiled,
    "trainer": _trainer,
    "roberta_base_shape": _masked,
    "seven_billion_shape": _causal,
}
NOT_TINY = ("ours_compiled",)
"""Compiling takes a minute, whatever the size."""
LONGEST_SECONDS = 120
"""Of one part: a card may be lent for minutes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for a test of this code")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, whose numbers mean nothing")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where gpu-NAME.json goes")
    parser.add_argument("--part", choices=PARTS, help="run one part in this process and print its numbers as JSON")
    arguments = parser.parse_args()
    from tasks import process_environment

    process_environment.set_variables()
    if arguments.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    if arguments.device == "cuda" and not torch.cuda.is_available():
        build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "processors alone"
        print(f"benchmarks.gpu: there is no GPU that PyTorch can use here (its build is for {build})", file=sys.stderr)
        return 1
    from tasks.torch_setup import set_up_torch

    set_up_torch(1 if arguments.device == "cpu" else min(8, os.cpu_count() or 1))
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments.device, arguments.tiny)))
        return 0
    result = measure(arguments.device, arguments.tiny)
    path = arguments.output / f"gpu-{_file_name(result['card'])}.json"
    from tasks.records.stage_report import write_json

    write_json(path, result)
    print("\n".join(summary_lines(result)))
    print(f"written to {path}", file=sys.stderr)
    return 0


def measure(device: str, tiny: bool) -> dict[str, Any]:
    """All parts, each in a process of its own; a part that fails stands there with its error, and the run goes on."""
    from importlib.metadata import version

    from benchmarks.gpu.device import device_name

    measured = {}
    for part in PARTS:
        if tiny and part in NOT_TINY:
            continue
        print(f"{part} ...", file=sys.stderr, flush=True)
        measured[part] = _in_process(part, device, tiny)
        print(json.dumps(measured[part]), file=sys.stderr, flush=True)
    training = {part: measured.get(part) for part in ("ours", "ours_compiled", "trainer")}
    rate = measured["matrix"].get("operations_per_second")
    for side in training.values():
        if side is not None and rate and "operations_per_second" in side:
            side["utilisation"] = side["operations_per_second"] / rate
    return {
        "card": device_name(device),
        "device": device,
        "tiny": tiny,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("torch", "transformers", "lightning")},
        "matrix": measured["matrix"],
        "training": training,
        "filling": {part: measured[part] for part in ("roberta_base_shape", "seven_billion_shape")},
        "comparison": [] if tiny else comparison(training),
    }


def _in_process(part: str, device: str, tiny: bool) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu",
        "--part",
        part,
        "--device",
        device,
        *(["--tiny"] if tiny else []),
    ]
    # One card: where there are several, transformers.Trainer would divide its batches among them.
    card = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": card}
    folder = Path(__file__).parents[2]
    try:
        finished = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env=environment, timeout=LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {LONGEST_SECONDS} s"}
    if finished.returncode:
        lines = finished.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"exit status {finished.returncode}"}
    return json.loads(finished.stdout.splitlines()[-1])


def comparison(training: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours, as fast as it gets, over the peer, with the targets."""
    sides = [side for name in ("ours", "ours_compiled") if (side := training.get(name)) and "error" not in side]
    peer = training["trainer"]
    if not sides:
        return []
    best = max(sides, key=lambda side: side["tokens_per_second"])
    rows = []
    if peer and "error" not in peer:
        speed = best["tokens_per_second"] / peer["tokens_per_second"]
        rows.append(_target("tokens a second against transformers.Trainer", speed, SPEED_TARGET, at_least=True))
        if peer["peak_memory_bytes"] > 0:
            memory = best["peak_memory_bytes"] / peer["peak_memory_bytes"]
            rows.append(_target("peak memory against transformers.Trainer", memory, MEMORY_TARGET, at_least=False))
    if "utilisation" in best:
        rows.append(_target("model FLOP utilisation", best["utilisation"], UTILISATION_TARGET, at_least=True))
    return rows


def _target(name: str, value: float, target: float, *, at_least: bool) -> dict[str, Any]:
    holds = value >= target if at_least else value <= target
    return {"name": name, "value": value, "target": f"{'>=' if at_least else '<='} {target}", "holds": holds}


def summary_lines(result: dict[str, Any]) -> list[str]:
    """The result as people read it."""
    lines = [result["card"] + (" (tiny shapes: the numbers mean nothing)" if result["tiny"] else "")]
    matrix = result["matrix"]
    if "error" not in matrix:
        lines.append(f"bfloat16 matrix products  {matrix['operations_per_second'] / 1e12:.1f} TFLOP/s")
    for name, side in {**result["training"], **result["filling"]}.items():
        if side is None:
            continue
        if "error" in side:
            lines.append(f"{name:<25} failed: {side['error']}")
            continue
        memory = f"{side['peak_memory_bytes'] / 1e9:.2f} GB"
        if "tokens_per_second" in side:
            used = f", {side['utilisation']:.1%} of the matrix rate" if "utilisation" in side else ""
            lines.append(f"training, {name:<15} {side['tokens_per_second']:,.0f} tokens/s{used}, {memory}")
        else:
            lines.append(
                f"filling                   {side['markers_per_second']:,.1f} markers/s, {memory} ({side['model']})"
            )
    for row in result["comparison"]:
        word = "holds" if row["holds"] else "MISSED"
        lines.append(f"{row['name']}: {row['value']:.2f} (target {row['target']}: {word})")
    return lines


def _file_name(card: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())
