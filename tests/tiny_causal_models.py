"""Causal LMs that are small enough to know their right answers, and tokenizers for them."""

from collections.abc import Mapping
from typing import Any

import torch
from tiny_masked_models import save as save
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

TEXT = (
    "Predict the [MASK] tokens in the given sentence Input: Output: [ MASK ] the cat sat on the mat . Tom ran to Paris "
    ", and Ann sat in the red house of Rome ! the dog saw Tom 's cat and it ran ( Bob ) Roberta Bobbing a b c"
)


def causal_tokenizer(text: str = TEXT) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of GPT-2's kind, in which every word of ``text`` is one piece behind a space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special, letters = ["<s>", "<pad>", "</s>", "<unk>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=special, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator([text] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def sentence_piece_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of LLaMA's kind: BPE over text whose spaces are ``▁``, with bytes for what it does not know."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def random_llama(tokenizer: PreTrainedTokenizerFast, *, positions: int = 256, seed: int = 0) -> LlamaForCausalLM:
    """A LLaMA with random weights, large enough that its answers depend on the sentence."""
    return random_causal_model(tokenizer, "llama", positions=positions, seed=seed, tie_word_embeddings=True)


def random_causal_model(
    tokenizer: PreTrainedTokenizerFast, model_type: str, *, positions: int | None = 256, seed: int = 0, **options: Any
) -> torch.nn.Module:
    """A model of any architecture with random weights; ``options`` are those of its configuration."""
    torch.manual_seed(seed)
    sizes = dict(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=positions, initializer_range=0.3, pad_token_id=None,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **sizes | options)).eval()


def llama_of_last_piece(
    tokenizer: PreTrainedTokenizerFast, scores: Mapping[str, Mapping[str, float]], *, others: float = -20.0
) -> LlamaForCausalLM:
    """A LLaMA whose scores depend on the last piece alone: ``scores[last][next]``, and ``others`` for the rest.

    Its layers add nothing; embeddings are one-hot, and the head is the table.
    """
    size = len(tokenizer)
    configuration = LlamaConfig(
        vocab_size=size, hidden_size=size + size % 2, intermediate_size=2, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=256, tie_word_embeddings=False, rms_norm_eps=1e-12,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = LlamaForCausalLM(configuration).eval()
    entry = tokenizer.get_vocab()
    width = configuration.hidden_size
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(width)[:size])
        # The norm brings a one-hot vector to length sqrt(width).
        model.model.norm.weight.fill_(width**-0.5)
        model.lm_head.weight.fill_(others)
        for last, following in scores.items():
            for piece, score in following.items():
                model.lm_head.weight[entry[piece], entry[last]] = score
    return model
