"""PyTorch as a stage sets it up, before any test module imports transformers; and a trained tagger."""

import pytest
from labelled_sentences import sentences, train_crf

from tasks.torch_setup import set_up_torch

set_up_torch(1)


@pytest.fixture(scope="session")
def crf(tmp_path_factory):
    """The folder of a CRF that has learned "my name is ..." and "lives in ...", and what its training measured."""
    folder = tmp_path_factory.mktemp("crf")
    measured = train_crf(folder, sentences("Zbigniew", "Wanne"))
    return folder / "crf", measured
