"""DP paraphrases: the bound on a piece, what the model is given, and what the report says of a line."""

import json

import numpy as np
import pytest
from masked_sentences import masked
from tiny_causal_models import causal_tokenizer, llama_of_last_piece, random_llama

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.paraphrase import Paraphrase, Paraphraser

TOKENIZER = causal_tokenizer()
WRITTEN = {":": "ĠTom", "ĠTom": "Ġran", "Ġran": "Ġto", "Ġto": "ĠRome", "ĠRome": "</s>"}


def paraphraser(model=None, seed=1, **settings):
    model = model or llama_of_last_piece(TOKENIZER, {last: {piece: 9.0} for last, piece in WRITTEN.items()})
    method = Paraphrase(kind="paraphrase", **settings)
    return Paraphraser(CausalLanguageModel(model, TOKENIZER, "tiny"), method, MarkerRandomness(seed, b"secret"))


def test_no_piece_tells_more_of_two_lines_than_the_bound():
    by = paraphraser(width=3.0, temperature=1.5, most_pieces=7)
    bound = 2 * 3.0 / 1.5
    assert by._settings.epsilon == 7 * bound
    logits = np.random.default_rng(1).normal(by.top, 8.0, (40, 200))
    # The worst pair: one piece alone at the upper end, and at the lower end beside all others.
    logits[:2] = by.top + np.array([[-50.0], [50.0]])
    logits[[0, 1], 0] = by.top + np.array([50.0, -50.0])
    logs = np.log(by.probabilities(logits))
    assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
    told = np.abs(logs[:, None] - logs[None]).max()
    assert 0.9 * bound < told <= bound + 1e-9


def test_the_model_writes_the_line_anew_wherever_it_stands():
    sharp = paraphraser(temperature=0.1)
    assert sharp.top == pytest.approx(9.0)
    assert (
        sharp.rewrite(["Ann sat", "", "the cat sat on the mat"], [1, 2, 3], lambda lines: None)
        == ["Tom ran to Rome"] * 3
    )
    assert sharp.counts == {"paraphrase_pieces": 15, "paraphrases_cut": 0}
    cut = paraphraser(temperature=0.1, most_pieces=2)
    assert cut.rewrite(["Ann sat"], [1], lambda lines: None) == ["Tom ran"]
    assert cut.counts["paraphrases_cut"] == 1
    # By chance; that of a line is of its number, whatever is written beside it.
    model = random_llama(TOKENIZER)
    lines = ["Ann sat", "the dog saw Tom", "Ann sat"]
    together = paraphraser(model).rewrite(lines, [1, 2, 3], lambda lines: None)
    assert together[0] != together[2]
    assert [
        paraphraser(model).rewrite([line], [n], lambda lines: None)[0] for n, line in enumerate(lines, 1)
    ] == together


def test_what_is_given_is_the_private_line():
    class Copies:
        forward_seconds, candidate_count = None, 0

        def fill(self, sentences, advance):
            return [[] for _ in sentences]

        def rewrite(self, lines, numbers, advance):
            return [f"{number} {line}" for number, line in zip(numbers, lines, strict=True)]

    lines = ["{PERSON:Tom} {PERSON:Smith} met {PERSON:Ann} in [\\\\MASK]", "nobody"]
    sentences = [masked(line, merge=False) for line in lines]
    shard = Shard(0, 5, ["[PERSON] [PERSON] met [PERSON] in [\\\\MASK]", "nobody"], [list(s.spans) for s in sentences])
    filler = CorpusFiller(Copies(), Casing({}, filler_is_cased=True), KeptWords(), merge_markers=True)
    assert filler.fill_shard(shard).lines == ["5 Tom Smith met Ann in [\\MASK]", "6 nobody"]


def test_the_report_says_epsilon_of_a_line(tmp_path, llama, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "masked.txt").write_text("[MASK] sat\nthe cat\n", encoding="utf-8")
    write_sidecar(tmp_path / "sidecar.jsonl", [[MaskedSpan(0, 3, "MASK", "list", "Ann", 0)], []])
    options = ["fill", "--method", "paraphrase", "--set", "most_pieces=4", "--filler", llama, "--input", "masked.txt"]
    options += ["--output", "out.txt", "--report", "report.json"]
    assert main(options) == 1
    assert main([*options, "--sidecar", "sidecar.jsonl"]) == 0
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")) == 3
    measured = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]
    assert (measured["lines"], measured["markers"], measured["fills"]) == (2, 1, 0)
    assert measured["epsilon_of_a_line"] == 4 * 2 * 20
    assert measured["restoration_rate"] is None
