"""Fills in child processes that are small, slow enough to be killed amid their work, and that say what they compute."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from made_up_words import made_up_words

from tasks.corpora.sidecar import MaskedSpan, write_sidecar

SHARD_LINES = 20
SHARDS = 30
TIMINGS = ("filling_seconds", "markers_per_second", "forward_seconds", "resumed_shards", "devices")
"""What may differ between two runs of the same work."""

# Small shards, a pause before each is computed and saved, and a line in the log for each that is computed here. The
# code counts as unchanged, so that a test may run while somebody works on it.
_CHILD = f"""
import os, sys, time
from tasks.filling import filled_corpus
from tasks.shards import shard_store, work_key
work_key._code_hash = str
filled_corpus.SHARD_LINES = {SHARD_LINES}
fill_shard = filled_corpus.CorpusFiller.fill_shard
def slow(self, shard, *advance):
    time.sleep(float(os.environ["PAUSE"]))
    filled = fill_shard(self, shard, *advance)
    with open(os.environ["LOG"], "a") as log:
        log.write(f"{{shard.index}}\\n")
    return filled
filled_corpus.CorpusFiller.fill_shard = slow
save = shard_store.ShardStore.save
def slow_save(self, *shard):
    time.sleep(float(os.environ["PAUSE"]))
    save(self, *shard)
shard_store.ShardStore.save = slow_save
from tasks.cli import main
sys.exit(main(sys.argv[1:]))
"""


def write_corpus(folder: Path) -> None:
    """Masked text of ``SHARDS`` shards with its sidecar, and word counts."""
    words = made_up_words(50)
    (folder / "word_counts.tsv").write_text("".join(f"{w}\t{60 - i}\n" for i, w in enumerate(words)))
    dice = random.Random(7)
    lines, spans = [], []
    for _ in range(SHARD_LINES * SHARDS - 7):
        chosen = dice.choices(words, k=dice.randrange(4))
        lines.append(" and ".join(["[MASK]"] * len(chosen)) + " \r end")
        spans.append([MaskedSpan(i, i + 1, "MASK", "list", word, i) for i, word in enumerate(chosen)])
    (folder / "masked.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    write_sidecar(folder / "sidecar.jsonl", spans)


def start(folder: Path, name: str, *options: str, pause: float = 0.0) -> subprocess.Popen:
    """Begin to fill the corpus of the folder into ``NAME.txt``; the folder is the process's own."""
    arguments = ["fill", "--input", "masked.txt", "--output", f"{name}.txt", "--method", "unigram"]
    arguments += [
        "--word-counts",
        "word_counts.tsv",
        "--sidecar",
        "sidecar.jsonl",
        "--report",
        f"{name}.json",
        *options,
    ]
    environment = {**os.environ, "LOG": str(folder / f"{name}.log"), "PAUSE": str(pause)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, *arguments], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    """Wait for the end and return what was said."""
    _, error = process.communicate(timeout=60)
    assert process.returncode == status, error
    return error


def kill_at(process: subprocess.Popen, folder: Path, shards: int, delay: float) -> None:
    """SIGKILL when so many shards are finished and the delay, in seconds, has passed."""
    deadline = time.monotonic() + 30
    while len(finished(folder)) < shards and process.poll() is None:
        assert time.monotonic() < deadline, "no shard was finished"
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


def finished(folder: Path) -> set[int]:
    """The shards that lie in the work folder."""
    return {int(path.stem) for path in (folder / ".palimpsest" / "shards").glob("*/*.shard")}


def computed(folder: Path, name: str) -> list[int]:
    """The shards that were computed, in that order, since the log was last taken away."""
    log = folder / f"{name}.log"
    indices = [int(line) for line in log.read_text().splitlines()] if log.exists() else []
    log.unlink(missing_ok=True)
    return indices


def numbers(folder: Path, name: str) -> dict:
    """What a report measured, but for timings."""
    measured = json.loads((folder / f"{name}.json").read_text())["measured"]
    return {field: value for field, value in measured.items() if field not in TIMINGS}
