"""The setting of the transducer's loss."""

from typing import Literal

LossImplementation = Literal["automatic", "ours", "torchaudio"]
"""``automatic``: whichever is faster for the shapes and the device, of those that are there (``rnnt_loss.py`` has the
rule and the measurements behind it); ``ours``: PyTorch alone; ``torchaudio``: its compiled kernel, an error where this
installation has none. The paper trained with torchaudio's."""
