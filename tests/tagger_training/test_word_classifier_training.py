import os
import subprocess
import sys
from string import ascii_lowercase

import pytest
import torch
from labelled_sentences import LINES, found_by, labelled
from tiny_masked_models import save, word_piece_tokenizer
from transformers import BertConfig, BertModel

from tasks.masking.settings import WordClassifierTagger
from tasks.masking.taggers.word_classifier import WordClassifier
from tasks.packed_linear import EightBitLinear
from tasks.tagger_training.settings import WordClassifierTraining
from tasks.tagger_training.train_tagger import class_of
from tasks.tagger_training.word_classifier_training import train_word_classifier


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A small encoder of random weights that sees which words are round a word, and not where."""
    words = {word.lower() for line in LINES for word in line.text.split() if word.islower()}
    letters = [mark + letter for letter in ascii_lowercase for mark in ("", "##")]
    vocabulary = sorted({*words, *letters, *"we met rose there folks call me sandra wanne".split(), "."})
    tokenizer = word_piece_tokenizer(vocabulary)
    torch.manual_seed(0)
    encoder = BertModel(BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=512, initializer_range=0.1,
    ))  # fmt: skip
    torch.nn.init.zeros_(encoder.embeddings.position_embeddings.weight)
    return save(encoder, tokenizer, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def train(base):
    def run(folder, lines, **settings):
        chosen = {"base": base, "rank": 8, "batch_pieces": 256, "learning_rate": 0.005, "epochs": 30, **settings}
        training = WordClassifierTraining(kind="word_classifier", **chosen)
        return train_word_classifier(lines, class_of, training, folder)

    return run


def load(folder, minimum=0.5):
    settings = WordClassifierTagger(kind="word_classifier", model=str(folder), minimum_probability=minimum)
    return WordClassifier(settings, threads=1)


@pytest.fixture(scope="module")
def folder(train, tmp_path_factory):
    """A classifier that has learned "my name is ...", "lives in ...", and that rose is a name in capitals alone."""
    path = tmp_path_factory.mktemp("word_classifier") / "model"
    roses = [labelled("we met Rose there", PERSON="Rose"), labelled("we met rose there")] * 12
    measured = train(path, [*LINES, *roses])
    assert measured["entity_types"] == ["LOCATION", "PERSON"]
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def test_the_model_finds_names_that_it_has_never_seen_and_sees_case(model):
    """Though its base's vocabulary has no case; also in a long line."""
    name, line = [("Sandra", "PERSON")], "my name is Sandra and that is all. "
    found = found_by(model, line, "she lives in Wanne with a dog", "that is all we know", line * 300)
    assert found == [name, [("Wanne", "LOCATION")], [], name * 300]
    assert found_by(model, "we met Rose there", "we met rose there") == [[("Rose", "PERSON")], []]


def test_what_is_said_of_a_text_does_not_depend_on_its_neighbours(model):
    texts = ["my name is Ana", "", "we know it " * 30, "😀 \x00\x01", "she lives in Ulm", "a" * 20_000, "..."]
    assert [text for text, _ in model.tag(texts)] == texts
    alone = [model.probabilities([text])[0] for text in texts]
    for here, together in zip(alone, model.probabilities(texts), strict=True):
        assert here.shape == together.shape
        assert abs(here - together).max(initial=0) < 1e-6


def test_products_in_eight_bits_are_nearly_those_in_float32_on_every_processor(monkeypatch):
    """At the bounds, of more inputs than one sum in float32 holds; each row is its own."""
    torch.manual_seed(1)
    linear, rows = torch.nn.Linear(1536, 8), torch.randn(5, 1536)
    linear.weight.data[0], rows[0] = 1.0, 1.0
    found = []
    for capability in ("AVX512", "AVX2", "DEFAULT"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda said=capability: said)
        layer = EightBitLinear(linear)
        with torch.inference_mode():
            found.append(layer(rows))
            assert torch.equal(found[-1], found[0])
            assert torch.equal(layer(rows[2][None])[0], found[0][2])
            assert ((found[0] - linear(rows)).abs() < 0.02 * linear(rows).abs().max()).all()


def test_a_processor_whose_sums_saturate_is_found_out():
    """AVX-512 without VNNI, as oneDNN then computes: a row of the largest integers is wrong by millions."""
    code = """if True:
        import torch
        from tasks.packed_linear import EightBitLinear
        linear, rows = torch.nn.Linear(512, 32, bias=False), torch.ones(16, 512)
        linear.weight.data[:] = 1.0
        with torch.inference_mode():
            print(float((EightBitLinear(linear)(rows) - 512).abs().max()))
    """
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert float(done.stdout) < 0.01
