"""Filling with models of the paper's shapes and **random weights**: right for timing, and for nothing else.

The tokenizers are trained on the spot, of the kind and size of the real ones, so nothing is fetched.
"""

from typing import Any

from benchmarks.gpu.device import PeakMemory, clock
from benchmarks.gpu.workload import SEED, masked_lines, plain_words

SENTENCES = {"roberta_base_shape": 4000, "seven_billion_shape": 500}
TINY_SENTENCES = 12
BATCH_SENTENCES = 256


def fill_masked(device: str, tiny: bool) -> dict[str, Any]:
    """Top-1 from left to right with a masked LM of RoBERTa-base's shape."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_lm.candidate_words import candidate_words
    from tasks.filling.masked_lm.masked_filler import MaskedFiller
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
    from tasks.filling.methods.top_1 import best_word

    name = _name("RoBERTa-base", tiny)
    tokenizer = _tokenizer(mask=True)
    shape: dict[str, Any] = (
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2} if tiny else {}
    )
    configuration = RobertaConfig(
        vocab_size=len(tokenizer) if tiny else 50265, max_position_embeddings=514, type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=0, eos_token_id=2, **shape,
    )  # fmt: skip
    torch.manual_seed(SEED)
    model = MaskedLanguageModel(RobertaForMaskedLM(configuration), tokenizer, name).prepared()
    candidates = candidate_words(tokenizer, name=name)
    filler = MaskedFiller(model, candidates, {None: best_word}, MarkerRandomness(1), batch_sentences=BATCH_SENTENCES)
    return _timed(filler, model.model, "roberta_base_shape", name, device, tiny)


def fill_causal(device: str, tiny: bool) -> dict[str, Any]:
    """Top-1 with the known words forced, with a causal LM of LLaMA-2-7B's shape in bfloat16."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tasks.filling.causal_lm.constrained import ConstrainedFiller
    from tasks.filling.causal_lm.language_model import CausalLanguageModel
    from tasks.filling.frequencies.word_frequencies import AllowedWords
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.methods.top_1 import Top1

    name = _name("LLaMA-2-7B", tiny)
    tokenizer = _tokenizer(mask=False)
    shape: dict[str, Any] = (
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2} if tiny else {}
    )
    configuration = LlamaConfig(
        vocab_size=len(tokenizer) if tiny else 32000, max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, **shape,
    )  # fmt: skip
    torch.manual_seed(SEED)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if device == "cpu" else torch.bfloat16)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(configuration)
    finally:
        torch.set_default_dtype(default)
    language_model = CausalLanguageModel(model, tokenizer, name).prepared()
    settings = Top1(kind="top_1", batch_sentences=BATCH_SENTENCES)
    filler = ConstrainedFiller(language_model, settings, AllowedWords(), MarkerRandomness(SEED))
    return _timed(filler, model, "seven_billion_shape", name, device, tiny)


def _name(shape: str, tiny: bool) -> str:
    return "tiny shape, random weights" if tiny else f"{shape} shape, random weights"


def _timed(filler: Any, model: Any, side: str, name: str, device: str, tiny: bool) -> dict[str, Any]:
    from tasks.filling.masked_sentence import read_masked_line

    lines = masked_lines(TINY_SENTENCES if tiny else SENTENCES[side])
    sentences = [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]
    filler.fill(sentences[: max(4, len(sentences) // 20)], lambda _: None)  # the first call sets things up
    memory = PeakMemory(device)
    started = clock(device)
    fills = filler.fill(sentences, lambda _: None)
    seconds = clock(device) - started
    markers = sum(map(len, fills))
    return {
        "model": name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "sentences": len(sentences),
        "markers": markers,
        "markers_per_second": markers / seconds,
        "peak_memory_bytes": memory.bytes(),
    }


def _tokenizer(*, mask: bool) -> Any:
    """A byte-level tokenizer in which each of the frequent words is one piece."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        min_frequency=1,
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([" " + " ".join(plain_words())] * 2, trainer)
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    if mask:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
        special |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
