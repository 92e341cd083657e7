"""What is refused of a summary that was edited or damaged."""

import json

import pytest

from tasks.errors import CorpusError
from tasks.results.summary.summary_file import read_summary

ROW = {
    "dataset": "chat",
    "technique": "allow_list",
    "method": "top_k",
    "filler": "minilm",
    "seed": 1,
    "key": "chat/allow_list/minilm-top_k-1#0a1b",
    "signature": "ppl",
    "perplexity": 150.0,
    "perplexity_known": 140.0,
    "ratio_to_baseline1": 0.9,
    "ratio_to_baseline1_ci": [0.8, 1.0],
    "restoration_rate": 0.1,
    "restoration_rate_ci": [0.0, 0.2],
    "masked_words": {
        "allow_list": {
            f"{name}{end}": None
            for name in ("perplexity", "perplexity_known", "perplexity_rest_known")
            for end in ("", "_ci")
        }
    },
    "masked_word_errors": {"allow_list": {"wer": 0.2, "wer_ci": [0.1, 0.3]}},
    "wer": 0.14,
    "wer_ci": [0.1, 0.2],
    "wer_difference_to_oracle": -0.02,
    "wer_difference_to_oracle_ci": [-0.03, 0.01],
    "wer_insertion_bonus_alone": 0.15,
    "wer_best_of_lists": 0.1,
    "best_first_share": 0.4,
    "utterances": 50,
    "reference_words": 1000,
    "lm_weight": 0.4,
    "insertion_bonus": -1.5,
    "over_seeds": {"seeds": [1], "wer": 0.14, "wer_ci": [0.1, 0.2], "perplexity_deviation": 0.0},
}


def read(folder, text):
    path = folder / "summary.json"
    path.write_text(text, encoding="utf-8")
    return read_summary(path)


def test_a_summary_that_is_whole_is_read(tmp_path):
    assert read(tmp_path, json.dumps([ROW])) == [ROW]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"perplexity": 10**400}, "'perplexity' is 100000"),
        ({"wer": -1}, "'wer' is -1, not at least 0"),
        ({"wer": None}, "'wer' is missing beside 'wer_ci'"),
        ({"restoration_rate": 7}, "'restoration_rate' is 7, not between 0 and 1"),
        ({"restoration_rate_ci": [0.5, 7]}, "'restoration_rate_ci' is [0.5, 7], not an interval between 0 and 1"),
        ({"ratio_to_baseline1": None}, "'ratio_to_baseline1' is missing beside 'ratio_to_baseline1_ci'"),
        ({"ratio_to_baseline1_ci": [-1, 2]}, "'ratio_to_baseline1_ci' is [-1, 2], not an interval above 0"),
        ({"ratio_to_baseline1_ci": [2, 1]}, "is [2, 1], not an interval from its lower to its upper end"),
        ({"wer_difference_to_oracle_ci": [0.1, -0.1]}, "is [0.1, -0.1], not an interval from its lower to its"),
        ({"utterances": None}, "'utterances' is missing beside 'wer'"),
        ({"utterances": "x"}, "'utterances' is 'x', not a count"),
        ({"reference_words": -1}, "'reference_words' is -1, not a count"),
        ({"best_first_share": None}, "'best_first_share' is missing beside 'wer_best_of_lists'"),
        ({"best_first_share": "x"}, "'best_first_share' is 'x', not a number"),
        ({"best_first_share": 1.5}, "'best_first_share' is 1.5, not between 0 and 1"),
        ({"lm_weight": "x"}, "'lm_weight' is 'x', not a number"),
        ({"insertion_bonus": "x"}, "'insertion_bonus' is 'x', not a number"),
        ({"over_seeds": "x"}, "'over_seeds' is 'x', not a record"),
        ({"over_seeds": [1]}, "'over_seeds' is [1], not a record"),
        ({"over_seeds": {"seeds": [[1]]}}, "'over_seeds.seeds' is [[1]], not a list of seeds"),
        (
            {"over_seeds": {"seeds": [1], "wer": None, "wer_ci": [0.1, 0.2]}},
            "'over_seeds.wer' is missing beside 'over_seeds.wer_ci'",
        ),
        ({"over_seeds": {"seeds": [1], "wer": 0.1, "wer_ci": [1]}}, "'over_seeds.wer_ci' is [1], not an interval"),
        ({"masked_words": "x"}, "'masked_words' is 'x', not a record for each technique"),
        ({"masked_words": {"allow_list": {}}}, "'masked_words.allow_list.perplexity' is missing"),
        ({"masked_word_errors": {"tagger": {"wer": "x"}}}, "'masked_word_errors.tagger.wer' is 'x', not a number"),
    ],
)
def test_what_cannot_be_is_refused_by_row_and_column(tmp_path, columns, message):
    with pytest.raises(CorpusError) as error:
        read(tmp_path, json.dumps([{**ROW, **columns}]))
    text = str(error.value)
    assert f"summary.json': row 1 ({ROW['key']}): " in text
    assert message in text
    assert "run 'palimpsest summarise' again" in text
    assert "\n" not in text
    assert len(text) < 900


@pytest.mark.parametrize("text", ["[" * 100_000, "[1, 2]", "{}", "no JSON"])
def test_what_is_no_list_of_rows_is_refused(tmp_path, text):
    with pytest.raises(CorpusError, match=r"summary.json' is no list of rows; run 'palimpsest summarise' again"):
        read(tmp_path, text)


def test_long_and_nested_values_are_shortened(tmp_path):
    text = json.dumps([{**ROW, "wer": 0.25, "lm_weight": "x" * 5000}]).replace("0.25", "[" * 900 + "]" * 900)
    with pytest.raises(CorpusError, match=r"'wer' is \[\[\[.*\.\.\..*'lm_weight' is 'xxx.*\.\.\.x") as error:
        read(tmp_path, text)
    assert len(str(error.value)) < 600
