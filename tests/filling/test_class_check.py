"""Fills of the class of their marker."""

import json
import re

from stage_commands import settings
from tiny_masked_models import WORDS as COMMON_WORDS
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.cli import main

CITY_NAMES = (
    "London Paris Berlin Madrid Rome Chicago Boston Dallas Houston Seattle Denver Detroit Toronto Sydney Tokyo Moscow "
    "Vienna Prague Dublin Oslo Miami Atlanta Phoenix Cairo Athens Lisbon Warsaw Milan Munich Hamburg"
)


def test_the_command_with_a_masked_model_and_a_real_tagger(tmp_path, capsys):
    """The model would write ``house`` at every marker; the best city is the one that it likes second."""
    words = [*COMMON_WORDS, "house", "she", "lives", "in", "now", *CITY_NAMES.lower().split()]
    tokenizer = word_piece_tokenizer(list(dict.fromkeys(words)))
    model = bert_of_bias(tokenizer, {"house": 9.0, "berlin": 5.0}, others=-20.0)
    filler = save(model, tokenizer, tmp_path / "filler")
    (tmp_path / "masked.txt").write_text("She lives in [LOCATION] now.\n", encoding="utf-8")
    counts = [("house", 9000), *((city, 10) for city in CITY_NAMES.split())]
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t{count}\n" for word, count in counts), encoding="utf-8")
    options = ["--input", tmp_path / "masked.txt", "--word-counts", tmp_path / "counts.tsv", "--filler", filler]
    outputs = ["--method", "top_1", "--output", tmp_path / "filled.txt", "--report", tmp_path / "report.json"]
    for classes, word in (("ignore", "house"), ("match", "Berlin")):
        assert main(["fill", *map(str, options + outputs), *settings(f"classes={classes}")]) == 0
        assert (tmp_path / "filled.txt").read_text(encoding="utf-8") == f"She lives in {word} now.\n"
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["measured"]["class_match_rate_first"], report["measured"]["class_match_rate"]) == (1.0, 1.0)
    assert report["warnings"] == []
    # Of no other class there are words, so a surrogate is written.
    (tmp_path / "masked.txt").write_text("She lives in [LOCATION] with [PERSON] now.\n", encoding="utf-8")
    assert main(["fill", *map(str, options + outputs), *settings("classes=match")]) == 0
    line = (tmp_path / "filled.txt").read_text(encoding="utf-8")
    name = re.fullmatch(r"She lives in Berlin with (\w+) now.\n", line)[1]
    assert name.lower() not in words
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["measured"]["class_surrogates"] == 1
    (tmp_path / "masked.txt").write_text("She lives in [MASK] now.\n", encoding="utf-8")
    assert main(["fill", *map(str, options + outputs), *settings("classes=match")]) == 0
    (warning,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["warnings"]
    assert "no marker has a class" in warning
    assert f"warning: {warning}\n" in capsys.readouterr().err
