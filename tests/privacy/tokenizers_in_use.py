"""The tokenizers of an experiment, each as a function from text to the numbers of its tokens."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from canary_search import Encoder

from tasks.language_model.normalisation import normalise
from tasks.language_model.vocabulary import UNKNOWN_ID, read_vocabulary
from tasks.model_source import locate_model
from tasks.speech.recogniser.units import Units
from tasks.torch_setup import stand_in_for_torchaudio_extension


def encoders(folder: Path) -> list[Encoder]:
    """Those of the fillers and language models that ``params.yaml`` names, and of the models in ``models``."""
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    named = [*parameters["fillers"].values(), parameters["language_model"].get("causal_lm", {})]
    sources = {(model["model"], model.get("gguf_file")) for model in named if "model" in model}
    found: list[Encoder] = []
    for name, gguf_file in sorted(sources, key=str):
        inside = folder / name
        found += _of_library(str(inside) if inside.is_dir() else locate_model(name), gguf_file)
    for path in sorted((folder / "models").rglob("*")):
        if path.name == "tokenizer.json":
            found += _of_library(str(path.parent), None)
        elif path.name == "vocabulary.txt":
            found.append(partial(_by_words, read_vocabulary(path)))
        elif path.name == "units.model":
            found.append(partial(_by_units, Units(path.read_bytes())))
    return found


def _of_library(source: str, gguf_file: str | None) -> Iterator[Encoder]:
    """At the beginning of a text, and behind a space."""
    stand_in_for_torchaudio_extension()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, **({"gguf_file": gguf_file} if gguf_file else {}))
    yield partial(_by_pieces, tokenizer, "")
    yield partial(_by_pieces, tokenizer, " ")


def _by_pieces(tokenizer: Any, before: str, text: str) -> list[int] | None:
    numbers: list[int] = tokenizer(before + text, add_special_tokens=False)["input_ids"]
    return None if tokenizer.unk_token_id in numbers else numbers


def _by_words(vocabulary: Any, text: str) -> list[int] | None:
    numbers: list[int] = vocabulary.encode(normalise(text))
    return None if UNKNOWN_ID in numbers else numbers


def _by_units(units: Units, text: str) -> list[int] | None:
    numbers = units.encode(text)
    return None if any(units.pieces[number] == "<unk>" for number in numbers) else numbers
