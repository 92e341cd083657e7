"""Matrix products in float32 at the speed of the processor, by oneDNN with weights laid out once.

PyTorch's own float32 products go through MKL, which uses half of the vector width on some processors that are not
Intel's; oneDNN uses all of it. The result is the same up to the order of summation.
"""

import torch

_USUAL_ROWS = 1024
"""Pieces of a usual batch: what the layout of the weights is chosen for; other sizes work too."""


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
    """Replace every float32 linear layer below ``module`` and return how many; 0 where oneDNN is not there."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return 0
    packed = 0
    for name, child in module.named_children():
        if type(child) is torch.nn.Linear and child.weight.dtype == torch.float32 and child.weight.device.type == "cpu":
            setattr(module, name, PackedLinear(child))
            packed += 1
        else:
            packed += pack_linear_layers(child)
    return packed
