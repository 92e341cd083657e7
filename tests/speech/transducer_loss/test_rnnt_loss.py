"""Which transducer loss is chosen, and torchaudio's compiled kernel against ours where it is there."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.errors import ModelError, ResourceError
from tasks.speech.transducer_loss import rnnt_loss as rnnt_loss_module
from tasks.speech.transducer_loss.loss import transducer_loss
from tasks.speech.transducer_loss.rnnt_loss import SMALL, chosen_implementation, has_compiled_kernel, rnnt_loss


@pytest.fixture
def installed(monkeypatch):
    def install(*devices):
        monkeypatch.setattr(rnnt_loss_module, "has_compiled_kernel", lambda device: device in devices)

    return install


def _logits(count, dtype=torch.float32, device="cpu"):
    return torch.empty(1, 1, 1, count, dtype=dtype, device=device)


def test_ours_is_ours_whatever_is_installed(installed):
    installed("cpu", "cuda")
    assert chosen_implementation("ours", _logits(2)) == "ours"


def test_torchaudio_is_refused_where_its_kernel_is_missing(installed):
    installed("cuda")
    with pytest.raises(ResourceError, match=r"'torchaudio' needs .* extension for 'cpu'.* 'automatic' or 'ours'"):
        chosen_implementation("torchaudio", _logits(2))
    installed("cpu")
    assert chosen_implementation("torchaudio", _logits(2)) == "torchaudio"


def test_automatic_takes_the_kernel_for_small_batches_and_on_cuda(installed):
    installed("cpu", "cuda")
    assert chosen_implementation("automatic", _logits(SMALL - 1)) == "torchaudio"
    assert chosen_implementation("automatic", _logits(SMALL)) == "ours"
    assert chosen_implementation("automatic", _logits(2, torch.bfloat16)) == "ours"
    assert chosen_implementation("automatic", _logits(2, torch.float64)) == "ours"
    installed()
    assert chosen_implementation("automatic", _logits(2)) == "ours"


def test_automatic_is_the_loss():
    torch.manual_seed(1)
    logits, targets = torch.randn(2, 5, 4, 6), torch.tensor([[1, 2, 3], [4, 5, 0]])
    lengths = torch.tensor([5, 4]), torch.tensor([3, 2])
    expected = transducer_loss(logits, targets, *lengths, 0)
    torch.testing.assert_close(rnnt_loss(logits, targets, *lengths, 0), expected, atol=1e-5, rtol=0)


needs_kernel = pytest.mark.skipif(
    not has_compiled_kernel("cpu"), reason="torchaudio's compiled extension is not there beside this build of PyTorch"
)


@needs_kernel
@pytest.mark.parametrize("clamp", [-1, 0.01])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("blank", [0, 12, -1])
def test_compiled_kernel_gives_the_same_loss_and_gradient(clamp, fused, blank):
    torch.manual_seed(2)
    logits = torch.randn(3, 40, 11, 25)
    frames, lengths = torch.tensor([33, 38, 20]), torch.tensor([9, 4, 0])  # shorter than the tensors
    targets = torch.randint(1, 12, (3, 10))
    for index in range(3):
        logits[index, frames[index] :] = math.nan
        logits[index, :, lengths[index] + 1 :] = math.nan
    weights, found = torch.tensor([1.0, -2.0, 0.5]), []
    for implementation in ("torchaudio", "ours"):
        scores = logits.clone().requires_grad_()
        losses = rnnt_loss(
            scores, targets, frames, lengths, blank,
            clamp=clamp, reduction="none", fused_log_softmax=fused, implementation=implementation,
        )  # fmt: skip
        (losses * weights).sum().backward()
        found.append((losses, scores.grad))
    torch.testing.assert_close(found[1][0], found[0][0], atol=1e-4, rtol=1e-6)
    torch.testing.assert_close(found[1][1], found[0][1], atol=1e-4, rtol=0)


@needs_kernel
def test_compiled_kernel_reports_the_same_errors():
    logits, lengths = torch.zeros(1, 2, 2, 3), (torch.tensor([2]), torch.tensor([1]))
    with pytest.raises(ModelError, match="is the blank"):
        rnnt_loss(logits, torch.tensor([[0]]), *lengths, 0, implementation="torchaudio")
    with pytest.raises(ModelError, match="not finite"):
        rnnt_loss(logits * math.nan, torch.tensor([[1]]), *lengths, 0, implementation="torchaudio")


@pytest.mark.skipif(has_compiled_kernel("cpu"), reason="the kernel is there, and was tested in this process")
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="the stand-ins are compiled by 'cc'")
def test_published_code_beside_a_build_for_processors():
    """The kernel loads with stand-ins of CUDA's libraries, which belong into a process of their own."""
    code = (
        "import sys, pytest\n"
        "from benchmarks import compiled_transducer_loss\n"
        "reason = compiled_transducer_loss.load()\n"
        "sys.exit(reason or pytest.main(['-p', 'no:cacheprovider', '-k', 'compiled_kernel', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).resolve())]
    finished = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(r"\b13 passed", finished.stdout)
    assert "skipped" not in finished.stdout
