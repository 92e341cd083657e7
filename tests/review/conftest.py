import pytest
from reviewed_corpus import make_corpus


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """The folder of the reviewed corpus, as the current folder."""
    folder = make_corpus(tmp_path)
    monkeypatch.chdir(folder)
    return folder
