"""Masked LMs that are small enough to know their right answers by hand; PyTorch is set up as a stage sets it up."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tasks.torch_setup import set_up_torch

set_up_torch(1)
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast  # noqa: E402 (after the set-up)

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = tuple("the cat dog sat ran on mat tom paris red ' s - , . re ##ing ##s".split())


def word_piece_tokenizer(words: Sequence[str] = WORDS) -> PreTrainedTokenizerFast:
    """An uncased tokenizer of BERT's kind."""
    vocabulary = {piece: entry for entry, piece in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {f"{name.lower()[1:-1]}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def random_bert(tokenizer: PreTrainedTokenizerFast, *, positions: int = 64, seed: int = 0) -> BertForMaskedLM:
    """A BERT with random weights, large enough that its answers depend on the sentence."""
    torch.manual_seed(seed)
    configuration = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=positions, initializer_range=0.8, tie_word_embeddings=True,
    )  # fmt: skip
    return BertForMaskedLM(configuration).eval()


def bert_of_bias(tokenizer: PreTrainedTokenizerFast, scores: Mapping[str, float], *, others: float) -> BertForMaskedLM:
    """A BERT that ignores the sentence: the score of every piece is its bias, ``others`` where none is given."""
    model = random_bert(tokenizer)
    head = model.cls.predictions
    with torch.no_grad():
        head.transform.LayerNorm.weight.zero_()
        head.transform.LayerNorm.bias.zero_()
        head.bias.fill_(others)
        for piece, score in scores.items():
            head.bias[tokenizer.get_vocab()[piece]] = score
    return model


def save(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, folder: Path) -> str:
    """Write a model folder as the hub's are, and return its path."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
