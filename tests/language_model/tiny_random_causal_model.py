"""A tiny LLaMA with random weights and a byte-level tokenizer of its own: too small to know anything of language."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402 (behind the stand-in)

TEXT = ["the cat sat on the mat", "a dog saw the cat", "the dog sat on a mat and bob saw it"]


def random_tokenizer() -> PreTrainedTokenizerFast:
    """Byte pairs in which words of ``TEXT`` are one piece behind a space, and other words several."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<start>", "<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f" {line}" for line in TEXT] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<start>", eos_token="<end>")


def save_random_llama(folder: Path, *, positions: int = 64, tied: bool = True, seed: int = 0) -> Path:
    """Write a two-layer LLaMA of 16 units and its tokenizer."""
    tokenizer = random_tokenizer()
    torch.manual_seed(seed)
    configuration = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=positions, initializer_range=0.3, tie_word_embeddings=tied,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    LlamaForCausalLM(configuration).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
