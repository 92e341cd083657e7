"""The transducer's loss and its gradient: ours in PyTorch against torchaudio's compiled kernel, one thread each.

Where the kernel cannot be loaded (see ``compiled_transducer_loss``), the rows name the peer that stands in for it: the
forward variables one node after the other, differentiated by PyTorch, on the smallest shape only.

- loss: losses and gradients of both sides are compared first.
- memory: what the loss and its gradient add at their peak to the logits, as a multiple of them.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.turns import compared, row

ROOT = Path(__file__).parents[1]
SHAPES = ((4, 50, 10, 32), (8, 125, 20, 129), (4, 250, 60, 1025))
MEMORY_SHAPE = (4, 250, 60, 1025)
ROUNDS = 5


def run() -> list[dict[str, Any]]:
    rows = _side("speed")
    ours, peer = _side("memory-ours"), _side("memory-kernel")
    if peer is not None:
        name = f"transducer loss memory at (B, T, U, V) = {MEMORY_SHAPE}"
        ratio = round(ours / peer, 3)
        rows.append(row(name, ours, peer, "times the logits", ratio, "<= 0.6", ratio <= 0.6))
    return rows


def _side(side: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.transducer_loss_speed", side]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"benchmark side {side!r} failed:\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def _batch(shape: tuple[int, int, int, int]) -> tuple[Any, ...]:
    import torch

    torch.manual_seed(1)
    utterances, frames, labels, symbols = shape
    logits = torch.randn(utterances, frames, labels + 1, symbols, requires_grad=True)
    targets = torch.randint(symbols - 1, (utterances, labels))
    return logits, targets, torch.full((utterances,), frames), torch.full((utterances,), labels), symbols - 1


def _node_by_node(logits: Any, targets: Any, *_: Any) -> Any:
    """The stand-in: the mean loss of utterances without padding, with the last symbol as the blank."""
    import torch

    logs, losses = logits.log_softmax(-1), []
    for scores, labels in zip(logs, targets.tolist(), strict=True):
        alpha: dict[tuple[int, int], Any] = {(0, 0): scores.new_zeros(())}
        for t in range(len(scores)):
            for u in range(len(labels) + 1):
                arriving = [alpha[t - 1, u] + scores[t - 1, u, -1]] if t else []
                if u:
                    arriving.append(alpha[t, u - 1] + scores[t, u - 1, labels[u - 1]])
                if arriving:
                    alpha[t, u] = torch.logsumexp(torch.stack(arriving), 0)
        losses.append(-(alpha[t, u] + scores[t, u, -1]))
    return torch.stack(losses).mean()


def _loss_of(side: str) -> Callable[..., Any]:
    """``ours`` or ``torchaudio``'s, both with the arguments of ``_batch`` and the mean over utterances."""
    if side == "ours":
        from tasks.speech.recogniser.transducer_loss import transducer_loss

        return lambda *given: transducer_loss(*given).mean()
    from torchaudio.functional import rnnt_loss

    return lambda logits, *rest: rnnt_loss(logits, *(each.int() for each in rest[:3]), rest[3])


def _loss_rows(kernel_missing: str | None) -> list[dict[str, Any]]:
    import torch

    rows = []
    peer_name = "torchaudio's compiled kernel" if kernel_missing is None else f"node by node ({kernel_missing})"
    for shape in SHAPES if kernel_missing is None else SHAPES[:1]:
        logits, *rest = _batch(shape)
        found: dict[str, Any] = {}

        def step(side: str, logits: Any = logits, rest: list[Any] = rest, found: dict[str, Any] = found) -> None:
            logits.grad = None
            loss = _node_by_node if side == "torchaudio" and kernel_missing else _loss_of(side)
            value = loss(logits, *rest)
            value.backward()
            found[side] = value.item(), logits.grad

        step("ours")
        step("torchaudio")
        torch.testing.assert_close(found["ours"][0], found["torchaudio"][0], atol=0, rtol=1e-5)
        torch.testing.assert_close(found["ours"][1], found["torchaudio"][1], atol=1e-3, rtol=0)
        found.clear()
        ours, peer, ratio = compared(ROUNDS, partial(step, "ours"), partial(step, "torchaudio"))
        name = f"transducer loss against {peer_name} at (B, T, U, V) = {shape}"
        rows.append(row(name, round(ours * 1e3, 2), round(peer * 1e3, 2), "ms", round(ratio, 2), ">= 1.0", ratio >= 1))
    return rows


def _memory(side: str) -> float:
    from benchmarks.language_model_workload import resident_peak

    loss = _loss_of(side)
    loss(*_batch(SHAPES[0])).backward()  # loads what the first call loads
    logits, *rest = _batch(MEMORY_SHAPE)
    before = resident_peak()
    loss(logits, *rest).backward()
    return round((resident_peak() - before) * 2**20 / (logits.numel() * logits.element_size()), 2)


def _main() -> None:
    from benchmarks import compiled_transducer_loss

    missing = compiled_transducer_loss.load()
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    side = sys.argv[1]
    if side == "speed":
        result: Any = _loss_rows(missing)
    elif side == "memory-ours":
        result = _memory("ours")
    else:
        result = None if missing else _memory("torchaudio")
    print(json.dumps(result))


if __name__ == "__main__":
    _main()
