"""A folder for each test, and models that no test changes."""

import pytest
import tiny_causal_models
import tiny_masked_models


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A masked language model of random weights."""
    tokenizer = tiny_masked_models.word_piece_tokenizer()
    folder = tmp_path_factory.mktemp("fillers") / "tiny"
    return tiny_masked_models.save(tiny_masked_models.random_bert(tokenizer), tokenizer, folder)


@pytest.fixture(scope="session")
def biased(tmp_path_factory):
    """A masked language model that says the same everywhere: mostly cat and dog."""
    tokenizer = tiny_masked_models.word_piece_tokenizer()
    liked = {"cat": 2.0, "dog": 1.5, "mat": 1.0, "tom": 0.5, "paris": 0.0, "red": -0.5}
    model = tiny_masked_models.bert_of_bias(tokenizer, liked, others=-30.0)
    return tiny_masked_models.save(model, tokenizer, tmp_path_factory.mktemp("fillers") / "biased")


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    """A causal language model of random weights."""
    tokenizer = tiny_causal_models.causal_tokenizer()
    folder = tmp_path_factory.mktemp("fillers") / "llama"
    return tiny_causal_models.save(tiny_causal_models.random_llama(tokenizer), tokenizer, folder)
