"""PyTorch as a stage sets it up, before any test module imports transformers; and a trained tagger."""

import pytest
from labelled_sentences import LINES

from tasks.tagger_training.crf_training import train_crf
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of
from tasks.torch_setup import set_up_torch

set_up_torch(1)


@pytest.fixture(scope="session")
def crf_folder(tmp_path_factory):
    """A CRF that has learned "my name is ..." and "lives in ..."."""
    folder = tmp_path_factory.mktemp("crf") / "model"
    train_crf(LINES, class_of, CrfTraining(kind="crf", embeddings=None, iterations=60), folder)
    return folder
