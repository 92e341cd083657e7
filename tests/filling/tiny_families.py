"""One tiny masked LM of every family of vocabularies and architectures, each with Hugging Face's own tokenizer class.

The tokenizers are made here, of a few sentences; the models have random weights.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from transformers import BertTokenizer, RobertaTokenizer

TEXT = [
    "the cat sat on the red mat in Paris.",
    "Tom likes the cat, and the dog likes Tom.",
    "unlikely cats (and dogs) sat on mats in Boston, Paris or Rome!",
    "is it a re-red cat? it likes it; Tom's dog ran and the cat ran in Rome.",
] * 20
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def word_pieces(special: list[str]) -> dict[str, int]:
    """A lower-case WordPiece vocabulary: letters, and the words of the text. Trained, it would be another each time."""
    words = set(re.findall(r"[a-z]+|[^\sa-z]", " ".join(TEXT).lower()))
    letters = sorted(set("".join(words)))
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters), *sorted(words.difference(letters))]
    return {piece: number for number, piece in enumerate(pieces)}


def byte_pairs(special: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A cased vocabulary of byte pairs, and its merges."""
    tokenizer, letters = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel.alphabet()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def unigrams(special: list[str], unknown: str) -> list[tuple[str, float]]:
    """A SentencePiece vocabulary with its scores."""
    tokenizer = Tokenizer(models.Unigram())
    space = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    trainer = trainers.UnigramTrainer(vocab_size=70, special_tokens=special, unk_token=unknown, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]


def mask_token(name: str) -> AddedToken:
    """A mask token that takes the space before it, as those of the hub's tokenizers with space signs do."""
    return AddedToken(name, lstrip=True, special=True)


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: BertTokenizer(vocab=word_pieces(BERT_SPECIAL)),
    "roberta": lambda: RobertaTokenizer(*byte_pairs(ROBERTA_SPECIAL), mask_token=mask_token("<mask>")),
    "xlm-roberta": lambda: transformers.XLMRobertaTokenizer(
        vocab=unigrams(ROBERTA_SPECIAL, "<unk>"), mask_token=mask_token("<mask>")
    ),
    "deberta": lambda: transformers.DebertaV2Tokenizer(vocab=unigrams(BERT_SPECIAL[:4], "[UNK]"), unk_id=1),
}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("bert", "Bert", {}),
    "roberta": ("roberta", "Roberta", {}),
    "modernbert": ("roberta", "ModernBert", {"local_attention": 4}),
    "xlm-roberta": ("xlm-roberta", "XLMRoberta", {}),
    "deberta": (
        "deberta", "DebertaV2",
        {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]},
    ),
}  # fmt: skip
"""Tokenizer, architecture as Hugging Face's classes name it, and what is special of its configuration."""
FAMILIES = sorted(MODELS)


@cache
def tokenizer_of(family: str) -> Any:
    """The tokenizer of a family; one for all tests, so they must not change it."""
    return TOKENIZERS[MODELS[family][0]]()


def random_model(family: str, *, positions: int = 64) -> Any:
    """A new model with random weights, large enough that its answers depend on the sentence."""
    _, name, options = MODELS[family]
    architecture, configuration = (getattr(transformers, f"{name}{part}") for part in ("ForMaskedLM", "Config"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sizes |= {"vocab_size": len(tokenizer_of(family)), "pad_token_id": tokenizer_of(family).pad_token_id}
    model = architecture(configuration(max_position_embeddings=positions, initializer_range=0.8, **sizes, **options))
    return model.eval()


def model_of_bias(family: str, scores: Mapping[str, float]) -> Any:
    """A model that ignores the sentence: the score of every entry is what is given for it, or 0."""
    model = random_model(family)
    decoder = model.get_output_embeddings()
    with torch.no_grad():
        decoder.weight.zero_()
        decoder.bias.zero_()
        for piece, score in scores.items():
            decoder.bias[tokenizer_of(family).get_vocab()[piece]] = score
    return model
