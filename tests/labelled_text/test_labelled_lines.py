"""Labelled files: what is read, which lines are refused, and which spans are warned of."""

import json

import pytest

from tasks.errors import CorpusError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled, span_warnings, write_labelled

GOOD = '{"text": "Ada left", "spans": [{"start": 0, "end": 3, "label": "PERSON"}]}'
THUMBS = "\U0001f44d" * 6


@pytest.fixture
def read(tmp_path):
    """The lines of a file with this content."""

    def lines(content):
        (tmp_path / "gold.jsonl").write_bytes(content.encode())
        return list(read_labelled(tmp_path / "gold.jsonl"))

    return lines


def test_text_spans_and_line_numbers_are_read(read, tmp_path):
    found = read(f'\ufeff{GOOD}\r\n{{"text": "no one", "spans": [], "source": "mail", "template": "t7"}}\n\r\n\n')
    assert found == [LabelledLine("Ada left", (LabelledSpan(0, 3, "PERSON"),), 1), LabelledLine("no one", (), 2, "t7")]
    # Offsets count characters, and texts may hold line ends.
    line = LabelledLine("😀\nZoë", (LabelledSpan(2, 5, "PERSON"),), 1)
    write_labelled(tmp_path / "own.jsonl", [line])
    assert list(read_labelled(tmp_path / "own.jsonl")) == [line]


def test_all_bad_lines_are_counted_and_the_first_twenty_named_without_their_text(read):
    bad = ["{", '["Zebulon"]', '{"text": "\\ud800 Zebulon", "spans": []}', '{"text": "Zebulon", "spans": {}}']
    named = (
        r"28 bad lines: line 2: is not JSON .column 2.; line 4: is not a JSON object; line 6: .*line 40: .*and 8 more"
    )
    with pytest.raises(CorpusError, match=named) as error:
        read("".join(f"{GOOD}\n{line}\n" for line in bad * 7))
    assert not any(word in str(error.value) for word in ("line 42", "Zebulon"))


@pytest.mark.parametrize(
    ("text", "start", "end", "own"),
    [
        (f"{THUMBS} ask Mirela or him about it", 17, 23, "Mirela"),
        ("ask Mirela", 4, 10, "mirela"),
    ],
)
def test_the_text_that_a_span_carries_must_be_at_its_offsets(read, text, start, end, own):
    span = {"start": start, "end": end, "label": "PERSON", "text": own}
    with pytest.raises(CorpusError, match=r"1 bad line: line 2: span 1 (has another 'text'|ends at)") as caught:
        read(f"{GOOD}\n{json.dumps({'text': text, 'spans': [span]})}\n")
    assert own not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "spans", "cut"),
    [
        ("Ada left Rome", [(0, 4), (8, 13), (5, 8)], 3),
        (f"{THUMBS} ask Mirela or him", [(17, 23)], 1),
        ("l'Aquila, (Bo) and Zoë's 10:30", [(2, 8), (11, 13), (19, 22), (25, 27)], 0),
        ("我们明天去北京。 철수가 왔다", [(5, 7), (9, 11)], 0),
    ],
)
def test_spans_that_cover_no_whole_words_are_counted(text, spans, cut):
    found = span_warnings([LabelledLine(text, tuple(LabelledSpan(*span, "X") for span in spans), 1)])
    says = f"{cut} of {len(spans)} spans begin or end at a blank or inside a word"
    assert [warning.startswith(says) for warning in found] == [True] * (cut > 0)
