"""The tables of Vats et al. (2023), as printed; a ``?`` is a digit that could not be read.

Triples are allow list, vocabulary threshold, entity tagger.
"""

from collections.abc import Mapping

TECHNIQUES = ("allow_list", "vocabulary_threshold", "entity_tagger")
CITATION = (
    "Vats, Liu, Su, Paul, Ma, Pang, Ahmed, Kalinli: Recovering from Privacy-Preserving Masking with Large Language "
    "Models (2023)"
)

MASKED_SHARES = {"Fisher": ("12.5", "1.3", "1.7"), "Reddit": ("22.7", "11.9", "4.2"), "WSJ": ("30.4", "11.2", "9.1")}
"""Table 2: share of tokens masked, in percent."""

DATASETS = {
    "Fisher": "perplexity, Table 3",
    "Reddit": "perplexity, Table 4",
    "WSJ": "perplexity, Table 5",
    "WSJ speech": "word error rate in %, Table 6",
}

_Printed = Mapping[str, str | tuple[str, str, str]]

RESULTS: dict[str, _Printed] = {
    "No language model": {"WSJ speech": "14.4"},
    "Pretrained": {"WSJ speech": "12.6"},
    "Oracle": {"Fisher": "37.3", "Reddit": "76.0", "WSJ": "86.5", "WSJ speech": "10.6"},
    "Baseline0": {
        "Fisher": ("120.1", "42.3", "41.?"),
        "Reddit": ("339.6", "168.2", "82.?"),
        "WSJ": ("309.0", "144.3", "204.?"),
        "WSJ speech": ("13.0", "12.?", "11.?"),
    },
    "Baseline1": {
        "Fisher": ("109.4", "41.6", "41.?"),
        "Reddit": ("221.9", "134.9", "79.?"),
        "WSJ": ("210.0", "122.9", "198.?"),
        "WSJ speech": ("12.5", "11.?", "11.?"),
    },
    "Top-1, BERT": {
        "Fisher": ("93.0", "41.3", "41.?"),
        "Reddit": ("196.2", "121.2", "78.?"),
        "WSJ": ("205.9", "119.4", "149.?"),
        "WSJ speech": ("12.4", "11.?", "11.?"),
    },
    "Top-1, RoBERTa": {
        "Fisher": ("71.6", "40.5", "39.?"),
        "Reddit": ("117.3", "94.2", "78.?"),
        "WSJ": ("181.1", "102.5", "118.?"),
        "WSJ speech": ("12.4", "10.9", "11.?"),
    },
    "Top-K, BERT": {
        "Fisher": ("75.2", "40.8", "40.?"),
        "Reddit": ("127.4", "106.3", "78.?"),
        "WSJ": ("174.1", "103.3", "108.?"),
        "WSJ speech": ("12.1", "11.?", "11.?"),
    },
    "Top-K, RoBERTa": {
        "Fisher": ("70.2", "38.9", "38.?"),
        "Reddit": ("123.4", "92.6", "77.?"),
        "WSJ": ("114.5", "93.4", "98.?"),
        "WSJ speech": ("11.9", "10.9", "11.?"),
    },
    "Top-K fine-tuned, BERT": {
        "Fisher": ("73.6", "39.8", "39.?"),
        "Reddit": ("117.4", "102.5", "77.?"),
        "WSJ": ("186.7", "113.4", "162.?"),
        "WSJ speech": ("12.7", "11.?", "11.?"),
    },
    "Top-K fine-tuned, RoBERTa": {
        "Fisher": ("65.3", "38.9", "38.?"),
        "Reddit": ("98.5", "82.1", "76.?"),
        "WSJ": ("120.7", "110.4", "157.?"),
        "WSJ speech": ("11.8", "11.?", "11.?"),
    },
    "Top-1 fine-tuned, LLaMA 2": {
        "Fisher": ("89.3", "40.8", "40.?"),
        "Reddit": ("123.3", "107.7", "78.?"),
        "WSJ": ("135.6", "106.8", "145.?"),
        "WSJ speech": ("12.0", "10.7", "11.1?"),
    },
}
"""Tables 3 to 6 by method and dataset; a single text holds for all techniques."""


def printed(method: str, dataset: str, technique: str) -> str | None:
    """The number as printed; ``None`` where the paper has none."""
    entry = RESULTS.get(method, {}).get(dataset)
    if entry is None or isinstance(entry, str):
        return entry
    return entry[TECHNIQUES.index(technique)] if technique in TECHNIQUES else None


def readable_range(number: str) -> tuple[float, float]:
    """The smallest and largest number that a printed one with unread digits can be."""
    return float(number.replace("?", "0")), float(number.replace("?", "9"))
