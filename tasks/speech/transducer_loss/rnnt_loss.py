"""Which of the two transducer losses is used: torchaudio's compiled kernel, or ours in PyTorch.

Both mean the same and agree to float32's precision. Measured on one core of a processor with AVX-512, loss and
gradient in float32: the kernel takes 0.2 ms and about 40 ns for each logit; ours takes 0.5 ms, some 5 microseconds for
each frame and each label of the longest utterance, and 2 to 3 ns for each logit. They cross between 13,000 and 35,000
logits; far above, the kernel takes ten times as long, and far below, half as long. On CUDA the kernel walks through
each lattice in one launch, ours needs two for each diagonal, so the kernel is used wherever it is there.
"""

from functools import cache

import torch
from torch import Tensor

from tasks.errors import ResourceError
from tasks.speech.transducer_loss.arguments import checked_arguments, checked_log_likelihood, checked_logits
from tasks.speech.transducer_loss.loss import reduced, transducer_loss
from tasks.speech.transducer_loss.settings import LossImplementation
from tasks.torch_setup import stand_in_for_torchaudio_extension

SMALL = 15_000
"""Logits B * T * (U + 1) * V of a batch below which the compiled kernel is faster on a processor."""


def rnnt_loss(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = -1,
    *,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
    implementation: LossImplementation = "automatic",
) -> Tensor:
    """The transducer's loss in nats; arguments, result and errors as for ``transducer_loss``.

    ``implementation``: see ``settings.LossImplementation``. torchaudio's kernel works in float32 whatever the logits
    are. Raises ``ResourceError`` where it is asked for and not there.
    """
    if chosen_implementation(implementation, logits) == "ours":
        return transducer_loss(
            logits, targets, logit_lengths, target_lengths, blank,
            clamp=clamp, reduction=reduction, fused_log_softmax=fused_log_softmax,
        )  # fmt: skip
    from torchaudio import functional

    given = checked_arguments(
        checked_logits(logits), targets, logit_lengths, target_lengths, blank, device=logits.device
    )
    frames, lengths = max(given.frames), max(given.lengths)
    # The kernel wants tensors that are exactly as long as the longest utterance.
    losses = functional.rnnt_loss(
        logits[:, :frames, : lengths + 1].float().contiguous(),
        given.ids[:, :lengths].int().contiguous(),
        torch.tensor(given.frames, dtype=torch.int32, device=logits.device),
        torch.tensor(given.lengths, dtype=torch.int32, device=logits.device),
        blank=given.blank,
        clamp=clamp,
        reduction="none",
        fused_log_softmax=fused_log_softmax,
    )
    checked_log_likelihood(-losses.detach())
    return reduced(losses, reduction)


def chosen_implementation(asked: LossImplementation, logits: Tensor) -> LossImplementation:
    """``ours`` or ``torchaudio``, for logits (B, T, U + 1, V) of this shape, type and device.

    Raises ``ResourceError`` where ``torchaudio`` is asked for and its kernel is not there for the device.
    """
    if asked == "ours":
        return "ours"
    device = logits.device.type
    if asked == "torchaudio":
        if not has_compiled_kernel(device):
            raise ResourceError(
                f"loss 'torchaudio' needs torchaudio's compiled extension for {device!r}, which is not there "
                f"beside this build of PyTorch ({torch.__version__}); set it to 'automatic' or 'ours'"
            )
        return "torchaudio"
    faster = logits.dtype == torch.float32 and (device == "cuda" or logits.numel() < SMALL)
    return "torchaudio" if faster and has_compiled_kernel(device) else "ours"


@cache
def has_compiled_kernel(device: str) -> bool:
    """Whether this installation has torchaudio's transducer loss for the device type "cpu" or "cuda"."""
    stand_in_for_torchaudio_extension()
    import torchaudio  # noqa: F401 - loads the extension

    name = "torchaudio::rnnt_loss_forward"
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, device.upper()) if _is_operator(name) else False


def _is_operator(name: str) -> bool:
    namespace, operator = name.split("::")
    return hasattr(getattr(torch.ops, namespace), operator)
