import json

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.frequencies.counted_frequencies import WordsBehindMarkers


def span(original: str, marker: int) -> MaskedSpan:
    return MaskedSpan(0, len(original), "MASK", "list", original, marker)


LINES = [
    [span("Zoë", 0), span('the "Queue"', 1)],
    [],
    [span("Jane", 0), span("Doe", 0), span("...", 1)],
    [span("zoë", 0)],
]
WORDS = [["zoë"], ["the", "queue"], ["jane", "doe"], ["..."], ["zoë"]]


def test_each_marker_has_its_line_and_its_words():
    found = WordsBehindMarkers(LINES)
    assert found.lines.tolist() == [0, 0, 2, 2, 3]
    assert found.line_count == 4
    assert [found.of(marker) for marker in range(5)] == WORDS


def test_the_pieces_are_the_json_of_the_words():
    found = WordsBehindMarkers(LINES)
    assert "".join(found.json_pieces(np.arange(5))) == json.dumps(WORDS)
    assert "".join(found.json_pieces(np.array([1, 4]))) == json.dumps([WORDS[1], WORDS[4]])
    assert "".join(found.json_pieces(np.arange(0))) == "[]"
