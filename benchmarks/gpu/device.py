"""One device: its name, its clock, its memory, and the rate of bfloat16 matrix products that it reaches right now."""

import time
from typing import Any

from tasks.records.stage_report import environment, peak_memory_bytes

_MATRIX_SIZES = {False: 8192, True: 256}
_PRODUCTS = 20
_ROUNDS = 5


def device_name(device: str) -> str:
    """The card's name, or the processor's."""
    if device == "cpu":
        return str(environment()["processor"])
    import torch

    return str(torch.cuda.get_device_name(0))


def wait(device: str) -> None:
    """Until the device has done all that it was given."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def clock(device: str) -> float:
    """Seconds, once the device has nothing left to do."""
    wait(device)
    return time.perf_counter()


class PeakMemory:
    """Bytes that were in use at the peak, from here on: of the card, or what the process grew by."""

    def __init__(self, device: str) -> None:
        self._device = device
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
        self._before = peak_memory_bytes()

    def bytes(self) -> int:
        if self._device == "cuda":
            import torch

            return int(torch.cuda.max_memory_allocated())
        return peak_memory_bytes() - self._before


def matrix_rate(device: str, tiny: bool) -> dict[str, Any]:
    """Operations a second of square bfloat16 products: the best of several rounds, 2 n³ a product."""
    import torch

    size = _MATRIX_SIZES[tiny]
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = 0.0
    for _ in range(_ROUNDS):
        started = clock(device)
        for _ in range(_PRODUCTS):
            left @ right
        best = max(best, _PRODUCTS * 2 * size**3 / (clock(device) - started))
    return {"size": size, "operations_per_second": best}
