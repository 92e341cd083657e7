"""The one line that says what a perplexity means."""

from tasks.language_model.evaluation.protocol import Protocol, differing_fields, normalisation_name
from tasks.language_model.vocabulary import Vocabulary


def of(words: Vocabulary, **changes) -> str:
    values = {
        "vocabulary": words.hash,
        "vocabulary_size": len(words),
        "unknown_rate": 0.02949,
        "maximum_tokens": 128,
        "stride": 64,
        "markers": "in_vocabulary",
    }
    return Protocol(**{**values, **changes}).signature


def test_the_signature_says_what_was_measured_and_what_differs_is_named(vocabulary):
    assert of(vocabulary) == (
        f"ppl|unit=word|norm={normalisation_name()}|vocab={vocabulary.hash[:8]},size=20|eos=counted"
        "|unk=counted,rate=2.95%|context=sentence,window=128,stride=64|markers=in_vocabulary"
    )
    # A model that can spell every word has no unknown ones.
    signature = of(vocabulary, unknown_rate=None, maximum_tokens=None, stride=None, markers="none")
    assert signature.endswith("|eos=counted|unk=none|context=sentence|markers=none")
    for changes, fields in (
        ({}, []),
        ({"vocabulary": Vocabulary(["a"]).hash}, ["vocab"]),
        ({"vocabulary_size": 21, "unknown_rate": 0.01}, ["vocab", "unk"]),
        ({"markers": "renormalised"}, ["markers"]),
        ({"stride": 32}, ["context"]),
    ):
        assert differing_fields(of(vocabulary), of(vocabulary, **changes)) == fields
