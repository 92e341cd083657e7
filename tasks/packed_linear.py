"""Fast matrix products on a CPU: in float32, or in 8-bit integers.

In float32 by oneDNN with weights laid out once: PyTorch's own float32 products go through MKL, which uses half of the
vector width on some processors other than Intel's; oneDNN uses all of it. The result is the same up to the order of
summation.

In eight bits each row of the features has a scale, and each row of the weights (Dettmers et al. 2022, "vector-wise").
Sums of integers are exact, so a row's result does not depend on the other rows. With AVX-512 VNNI that takes two fifths
of the time. On a CPU without AVX-512, PyTorch's 8-bit product takes forty times as long as float32. With AVX-512 but
without VNNI its sums saturate at 16 bits, so they are wrong. On both, the same integers are multiplied in float32,
which is exact up to 2**24.
"""

from collections.abc import Callable
from functools import cache

import torch

_USUAL_ROWS = 1024
"""Rows of a usual batch, for which the layout of the weights is chosen; other sizes work too."""
_EXACT_INPUTS = 2**24 // 127**2
"""Number of products of 8-bit integers whose sum is exact in float32."""


class PackedLinear(torch.nn.Module):
    """A linear layer for inference; ``weight`` and ``bias`` stay readable, but changing them changes nothing."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _USUAL_ROWS)
        self._offset = None if linear.bias is None else linear.bias.detach()

    def forward(self, features: torch.Tensor) -> torch.Tensor:  # (..., inputs) -> (..., outputs)
        """The layer's output."""
        return torch.ops.mkldnn._linear_pointwise(features, self._packed, self._offset, "none", [], "")


def pack_linear_layers(module: torch.nn.Module) -> int:
    """Replace every float32 linear layer of ``module`` and return their number; 0 without oneDNN."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return 0
    return _replace(module, PackedLinear)


class EightBitLinear(torch.nn.Module):
    """A linear layer for inference in 8-bit integers."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self._scale = _scale(linear.weight.detach())  # (outputs, 1)
        self._weight = (linear.weight.detach() / self._scale).round().to(torch.int8).t()  # (inputs, outputs)
        self._scale = self._scale.t()
        self._multiply = _whole_product
        if torch.backends.cpu.get_cpu_capability() != "AVX512" or not _is_exact():
            self._weight, self._multiply = self._weight.float(), product_in_float32
        self._offset = 0.0 if linear.bias is None else linear.bias.detach()

    def forward(self, features: torch.Tensor) -> torch.Tensor:  # (..., inputs) -> (..., outputs)
        """The layer's output."""
        rows = features.reshape(-1, features.shape[-1])
        scale = _scale(rows)  # (rows, 1)
        product = self._multiply((rows / scale).round(), self._weight)  # (rows, outputs)
        return (product * scale * self._scale + self._offset).view(*features.shape[:-1], -1)


@cache
def _is_exact() -> bool:
    """Whether PyTorch's 8-bit product has no saturated sum on this processor."""
    largest = torch.full((64, 64), 127, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest) == 64 * 127**2).all())


def _whole_product(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch._int_mm(rows.to(torch.int8), weight)


def product_in_float32(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The product of integers from -127 to 127, ``(N, inputs)`` by ``(inputs, outputs)``, as exact int32."""
    parts = zip(rows.split(_EXACT_INPUTS, dim=1), weight.split(_EXACT_INPUTS), strict=True)
    return torch.stack([(some @ of_weight).to(torch.int32) for some, of_weight in parts]).sum(dim=0, dtype=torch.int32)


def _scale(rows: torch.Tensor) -> torch.Tensor:
    """The divisor of each row, ``(N, 1)``."""
    return rows.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127


def eight_bit_linear_layers(module: torch.nn.Module) -> int:
    """Replace every float32 linear layer of ``module`` and return their number."""
    return _replace(module, EightBitLinear)


def _replace(module: torch.nn.Module, layer: Callable[[torch.nn.Linear], torch.nn.Module]) -> int:
    replaced = 0
    for name, child in module.named_children():
        if type(child) is torch.nn.Linear and child.weight.dtype == torch.float32 and child.weight.device.type == "cpu":
            setattr(module, name, layer(child))
            replaced += 1
        else:
            replaced += _replace(child, layer)
    return replaced
