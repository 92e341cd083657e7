import pytest
from labelled_sentences import LINES

from tasks.tagger_training.crf_training import train_crf
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of


@pytest.fixture(scope="session")
def crf_folder(tmp_path_factory):
    """A CRF that has learned "my name is ..." and "lives in ..."."""
    folder = tmp_path_factory.mktemp("crf") / "model"
    train_crf(LINES, class_of, CrfTraining(kind="crf", embeddings=None, iterations=60), folder)
    return folder
