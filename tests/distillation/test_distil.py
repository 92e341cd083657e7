"""Text drawn in place of a private one: contrasts of models, what is dropped, and the command on a user's own files."""

import json

import numpy as np
import pytest
import torch
from command_results import measured, refusal
from marked_text import MaskedText

from tasks.distillation.contrast import ContrastedWords, Weighted
from tasks.distillation.distil import Quoted
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.transformer.next_words import TransformerNextWord
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, Vocabulary
from tasks.results.measures import MEASURES

PRIVATE = ["my name is anna and i live in rome", "it is cold today", "nothing to see here at all"]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *dict.fromkeys(" ".join(PRIVATE).split()), "word", "other"])
COLUMNS = np.array([END_ID, *range(len(SPECIAL_TOKENS), len(VOCABULARY))])


def model(seed):
    """Far enough from uniform for a mask to hide something."""
    sizes = ArchitectureSettings(layers=1, heads=2, width=16, maximum_tokens=16)
    network = TransformerLanguageModel(sizes, len(VOCABULARY))
    network.initialise(seed)
    network.embedding.weight.data *= 20
    return WordTransformer(network, VOCABULARY)


def asked(words):
    """Log-probabilities behind growing histories, as a sampler asks for them."""
    words.start(COLUMNS)
    histories, found = np.zeros(2, dtype=np.int64), []
    for step in range(3):
        found.append(torch.log_softmax(words.scores(histories), dim=1))
        histories = words.extend(histories, COLUMNS[[1 + step, 2 + step]])
    return torch.cat(found)


def plain(base):
    return asked(TransformerNextWord(base.copy().network, VOCABULARY))


def test_a_model_against_itself_draws_evenly_from_the_mask():
    base = model(1)
    contrasted = asked(ContrastedWords([Weighted(base, 1.0, alpha=0.05), Weighted(base, -1.0)]))
    shown = plain(base) >= plain(base).amax(1, keepdim=True) + np.log(0.05)
    assert 0 < shown.sum() < shown.numel(), "or the mask shows nothing of itself"
    torch.testing.assert_close(contrasted, (shown / shown.sum(1, keepdim=True)).log())


@pytest.mark.parametrize(("own", "others"), [(1.0, 0.0), (2.0, -1.0)])
def test_each_model_has_keys_and_values_of_its_own(own, others):
    """The published code had not: behind the first word its contrast was not that of the two models."""
    base, unwanted = model(1), model(2)
    contrasted = asked(ContrastedWords([Weighted(base, own), Weighted(unwanted, others)]))
    torch.testing.assert_close(contrasted, torch.log_softmax(own * plain(base) + others * plain(unwanted), dim=1))


@pytest.fixture
def private(tmp_path):
    return MaskedText.write(tmp_path, [line.replace("anna", "{anna}") for line in PRIVATE])


def test_what_quotes_the_private_text_is_dropped(private):
    quoted = Quoted.of(PRIVATE, str(private.sidecar), 4)
    reasons = {
        "name is anna and": "quoting",
        "well my name is anna": "quoting",
        "anna and i live there": "quoting",
        "my name is bob and i live in rome": "kept",
        "it is cold today": "verbatim",
        "anna is cold": "kept",
        "": "empty",
    }
    assert {line: quoted.reason(tuple(line.split())) for line in reasons} == reasons


def save_writer(path, *words):
    """A model that finds every one of these words likely, and then the end."""
    made = model(1).network
    with torch.no_grad():
        for weights in (made.embedding.weight, made.final_norm.weight, made.final_norm.bias):
            weights.zero_()
        made.final_norm.bias[0] = 1.0
        made.embedding.weight[:, 0] = -50.0
        made.embedding.weight[[END_ID, *(VOCABULARY.ids[word] for word in words)], 0] = 0.0
    save_model(path, made, VOCABULARY)
    return path


def test_the_command_writes_as_many_lines_and_no_quotation(private, tmp_path):
    output = tmp_path / "output.txt"
    safe = save_writer(tmp_path / "safe", "word", "other")
    mixed, heard = save_writer(tmp_path / "mixed", "word", "other", "anna"), save_writer(tmp_path / "heard", "anna")
    command = ["distil", "--method", "distilled", "--private", private.raw, "--sidecar", private.sidecar]
    command += ["--output", output]
    found, written = measured(*command, "--model", safe), output.read_text()
    lines = written.splitlines()
    assert len(lines) == len(PRIVATE)
    assert {word for line in lines for word in line.split()} <= {"word", "other"}
    assert found["dropped_quoting"] == 0
    # The summary reads it as it reads a fill's.
    of_fills = {each.field or each.name for each in MEASURES if each.step == "fill"}
    assert {name for name in of_fills if "." not in name} <= {*found}
    for seed in ("1", "2"):
        measured(*command, "--model", safe, "--seed", seed)
        assert (output.read_text() == written) == (seed == "1")
    # Against a model of the unwanted word, what both can write and only one is left: no 'anna' at all.
    measured(*command, "--model", mixed, "--unwanted", heard, "--set", "strength=1")
    assert "anna" not in output.read_text()
    # One that writes nothing but a private neighbourhood of one word: nearly all is dropped, in one line.
    said = refusal(*command, "--model", heard, "--set", "scanned_words=1")
    assert "quote the private text" in said
    assert "anna" not in said + json.dumps(found)
    masked = ["--set", "alpha=0.1", "--set", "mask=oracle"]
    assert "prefers text that it has memorised" in refusal(*command, "--model", safe, *masked)
