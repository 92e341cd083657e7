"""``palimpsest perplexity`` as a command that works alone; and by language, counted by hand."""

import numpy as np
import pytest
from pretrained_folder import perplexity
from stage_commands import settings

from tasks.cli import main
from tasks.language_model.evaluation.by_language import language_groups
from tasks.language_model.evaluation.reference_text import reference_text_of
from tasks.language_model.evaluation.sentence_scores import read_scores
from tasks.language_model.transformer.model import save_model


def test_all_numbers_and_those_by_sentence(tmp_path, small_model, vocabulary):
    save_model(tmp_path / "model", small_model(seed=3), vocabulary)
    text, counts, words = (tmp_path / name for name in ("text.txt", "counts.tsv", "safe.txt"))
    text.write_text("a b c\n\nB d unheard\nc d-a\n", encoding="utf-8")
    counts.write_text("a\t9\nb\t8\nc\t3\nd\t2\n", encoding="utf-8")
    # Everything but a and b is masked: c, d and unheard, and d of d-a.
    words.write_text("a\nb\n", encoding="utf-8")
    command = ["mask", "--technique", "allow_list", *settings(f"path={words}"), "--input", str(text)]
    sidecar = tmp_path / "sidecars" / "allow_list.jsonl"
    assert main([*command, "--output", str(tmp_path / "masked.txt"), "--sidecar", str(sidecar)]) == 0
    assert (tmp_path / "masked.txt").read_text(encoding="utf-8") == "a b [MASK]\n\nB [MASK] [MASK]\n[MASK] [MASK]-a\n"
    options = ["--sidecar", str(tmp_path / "sidecars"), "--word-counts", str(counts)]
    options += ["--scores", str(tmp_path / "scores.tsv"), *settings("frequency_classes=[1, 3]")]
    few = settings("bootstrap_samples=100")
    values = perplexity(tmp_path / "model", text, *options, *few)
    assert (values["words"], values["sentences"], values["empty_lines"]) == (9, 3, 1)
    masked = values["masked_words"]["allow_list"]
    assert (masked["words"], masked["unknown_words"], masked["rest_targets_known"]) == (5, 1, 7)
    assert {name: group["targets"] for name, group in values["by_frequency"].items()} == {
        "rank 1-1": 2,
        "rank 2-3": 4,
        "rank over 3": 2,
        "unknown": 1,
        "sentence end": 3,
    }
    scores, signature = read_scores(tmp_path / "scores.tsv")
    assert signature == values["signature"]
    assert signature.endswith("|markers=in_vocabulary")
    assert scores.of("masked:allow_list").targets.tolist() == [1, 2, 2]
    assert scores.of("masked_known:allow_list").targets.tolist() == [1, 1, 2]
    assert scores.log_probability.sum() == pytest.approx(values["log_probability"], abs=1e-5)
    written = (tmp_path / "scores.tsv").read_text(encoding="utf-8")
    assert not any(word in written.replace("known", "").split() for word in ("unheard", "a", "b", "c", "d"))
    # The rule for markers is in the signature and in the number.
    renormalised = perplexity(tmp_path / "model", text, *few, *settings("markers=renormalised"))
    assert renormalised["signature"].endswith("|markers=renormalised")
    assert values["perplexity"] > renormalised["perplexity"] == values["perplexity_without_markers"]


LINES = [
    "the house was very big but my sister pero mi hermana no quería comer nada",
    "we went to the school with all of our friends yesterday",
    "mi hermana quiere mucho a su familia porque siempre están juntos",
]


def test_words_lines_and_switches_by_hand():
    """Each target counts its place in the sentence, so that sums tell which targets were taken."""
    text = reference_text_of(LINES, "text")
    places = np.concatenate([np.arange(len(line.split()) + 1) for line in LINES]).astype(np.float64)
    known = np.ones(len(places), dtype=bool)
    known[0] = False
    found = {
        name: (sums.total.targets, sums.total.log_probability)
        for name, sums in language_groups(places, known, text, ["en", "es"]).items()
    }
    assert found == {
        "en": (7 + 11, sum(range(1, 8)) + sum(range(11))),
        "es": (7 + 11, sum(range(8, 15)) + sum(range(11))),
        "mixed": (0, 0),
        "switch points": (1, 8),
        "1 word behind a switch point": (1, 9),
        "2 words behind a switch point": (1, 10),
        "3 words behind a switch point": (1, 11),
        "4 words behind a switch point": (1, 12),
        "5 words behind a switch point": (1, 13),
        "6 words and more behind a switch point": (1, 14),
        "lines in one language": (24, 2 * sum(range(12))),
        "lines mixed up to 20": (0, 0),
        "lines mixed more than 20": (15, sum(range(1, 16))),
    }
