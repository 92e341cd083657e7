"""A folder with small texts and a small pretrained model, for tests that run whole commands on it."""

import random
import subprocess
import sys
import time
from pathlib import Path

from stage_commands import make_vocabulary, settings

from tasks.cli import main
from tasks.records.stage_report import read_report

SIZES = {"layers": 1, "heads": 2, "width": 8, "maximum_tokens": 16}
SMALL = [*settings(*(f"architecture.{name}={size}" for name, size in SIZES.items())), "--threads", "1"]


def write(path, lines):
    """A text file of these lines; returns its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def perplexity(model, text, *options):
    """What the command measures."""
    report = Path(text).with_suffix(".perplexity.json")
    command = ["perplexity", "--model", str(model), "--input", str(text), "--report", str(report), "--threads", "1"]
    assert main([*command, *settings("bootstrap_samples=100"), *options]) == 0
    return read_report(report)["measured"]


def fill_with_pretrained(folder, sentences, last=()):
    """Write text.txt with so many random sentences and ``last``, valid.txt, vocabulary.txt, and a model, pretrained."""
    draw = random.Random(1)
    for name, count in (("text", sentences), ("valid", 50)):
        lines = [
            " ".join(draw.choices("the cat dog sat on mat saw a".split(), k=draw.randint(2, 9))) for _ in range(count)
        ]
        write(folder / f"{name}.txt", [*lines, *last])
    make_vocabulary(folder / "text.txt", folder / "vocabulary.txt")
    options = ["--input", str(folder / "valid.txt"), "--vocabulary", str(folder / "vocabulary.txt"), *SMALL]
    options += ["--output", str(folder / "pretrained"), *settings(f"resources.work_folder={folder / 'work'}")]
    assert main(["pretrain", *options]) == 0
    assert not any((folder / "work").iterdir())  # nothing is left of a run that succeeded
    return folder


def adapt_options(folder, name, *more):
    """The command that adapts the model of such a folder to its text, into ``name``, with a report beside it."""
    texts = ["--input", str(folder / "text.txt"), "--valid", str(folder / "valid.txt"), "--threads", "1"]
    output = ["--output", str(folder / name), "--report", str(folder / f"{name}.json")]
    return ["adapt", "--model", str(folder / "pretrained"), *texts, *output, *more]


def start(arguments):
    """A command in a process of its own."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "tasks.cli", *arguments], cwd=Path(__file__).parents[2], **streams)


def wait_for_checkpoint(work, process):
    """Until the process has written one into a folder of its work folder."""
    end = time.monotonic() + 200
    while not list(work.glob("*/last.ckpt")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)
