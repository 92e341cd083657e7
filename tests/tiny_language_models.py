"""Language models of every kind with random weights, too small to know anything of language."""

from pathlib import Path

import torch
from tiny_causal_models import causal_tokenizer, random_causal_model, save

from tasks.language_model.language_models import encode_sentences
from tasks.language_model.ngram.folder import save_ngrams
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("the", "cat", "dog", "sat", "saw", "on", "a", "mat", "anna's")
TEXT = ["the cat sat on the mat", "a dog saw the cat", "the dog sat on a mat and bob saw anna's cat"]


def save_transformer(folder: Path, *, positions: int = 12) -> str:
    """A word-level Transformer of two layers."""
    architecture = ArchitectureSettings(layers=2, heads=2, width=8, maximum_tokens=positions)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    model = TransformerLanguageModel(architecture, len(vocabulary))
    model.initialise(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # scores that differ
    save_model(folder, model, vocabulary)
    return str(folder)


def save_ngram(folder: Path) -> str:
    """A trigram model of ``TEXT``."""
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    text = encode_sentences([tuple(line.split()) for line in TEXT], vocabulary)
    save_ngrams(folder, estimate(text, 3, len(vocabulary))[0], vocabulary)
    return str(folder)


def save_causal(folder: Path, kind: str, *, tied: bool = False, seed: int = 0) -> str:
    """A causal model of two layers, of 64 positions where it has any: ``llama``, ``gpt2`` or ``bloom``.

    ``tied``: the head of a LLaMA is its embeddings.
    """
    fast = causal_tokenizer(" ".join(TEXT))
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": None}
    if kind == "llama":
        sizes |= {"intermediate_size": 24, "num_key_value_heads": 1, "tie_word_embeddings": tied}
    positions = 64 if kind != "bloom" else None
    return save(random_causal_model(fast, kind, positions=positions, seed=seed, **sizes), fast, folder)
