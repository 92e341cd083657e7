"""Our loss and its gradient against torchaudio's compiled kernel; a process of its own, for the kernel may need
stand-ins of CUDA's libraries (see ``torchaudio_kernel``)."""

import math
import sys

import torch
import torchaudio_kernel

from tasks.speech.recogniser.transducer_loss import transducer_loss


def compare(blank):
    from torchaudio.functional import rnnt_loss

    torch.manual_seed(2)
    scores = torch.randn(3, 40, 11, 25)
    frames, lengths = torch.tensor([33, 38, 20]), torch.tensor([9, 4, 0])  # shorter than the tensors
    targets = torch.randint(1, 12, (3, 10))
    weights = torch.tensor([1.0, -2.0, 0.5])
    theirs = scores.clone().requires_grad_()
    # The kernel wants tensors that are exactly as long as the longest utterance.
    longest = theirs[:, :38, :10].contiguous()
    shorter = targets[:, :9].int().contiguous()
    expected = rnnt_loss(longest, shorter, frames.int(), lengths.int(), blank=blank, reduction="none")
    (expected * weights).sum().backward()
    for index in range(3):
        scores[index, frames[index] :] = math.nan
        scores[index, :, lengths[index] + 1 :] = math.nan
    ours = scores.requires_grad_()
    found = transducer_loss(ours, targets, frames, lengths, blank)
    (found * weights).sum().backward()
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-6)
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-4, rtol=0)


if __name__ == "__main__":
    if missing := torchaudio_kernel.load():
        sys.exit(missing)
    for blank in (0, 12, 24):
        compare(blank)
