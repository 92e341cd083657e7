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
    assert read(GOOD + '\n{"text": "no one", "spans": [], "source": "mail", "template": "t7"}\n') == [
        LabelledLine("Ada left", (LabelledSpan(0, 3, "PERSON"),), 1),
        LabelledLine("no one", (), 2, "t7"),
    ]
    # A byte order mark, Windows line ends, blank lines at the end.
    assert [line.number for line in read("\ufeff" + GOOD + "\r\n" + GOOD + "\r\n\r\n\n")] == [1, 2]
    # Offsets count characters, and texts may hold line ends.
    line = LabelledLine("😀\nZoë", (LabelledSpan(2, 5, "PERSON"),), 1)
    write_labelled(tmp_path / "own.jsonl", [line])
    assert list(read_labelled(tmp_path / "own.jsonl")) == [line]


def test_all_bad_lines_are_counted_and_the_first_twenty_named(read):
    named = r"25 bad lines: line 2: is not JSON .column 2.; line 4: .*line 40: .*and 5 more"
    with pytest.raises(CorpusError, match=named) as error:
        read((GOOD + "\n{\n") * 25)
    assert "line 42" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "start", "end", "own"),
    [
        (f"{THUMBS} ask Mirela or him about it", 17, 23, "Mirela"),
        ("Zoë rang Ada", 10, 13, "Ada"),
        ("ask Mirela", 4, 9, "Mirela"),
        ("ask Mirela", 4, 10, "mirela"),
    ],
)
def test_the_text_that_a_span_carries_must_be_at_its_offsets(read, text, start, end, own):
    span = {"start": start, "end": end, "label": "PERSON", "text": own}
    with pytest.raises(CorpusError, match=r"1 bad line: line 2: span 1 (has another 'text'|ends at)") as caught:
        read(f"{GOOD}\n{json.dumps({'text': text, 'spans': [span]})}\n")
    assert own not in str(caught.value)
    good = text.index(own) if own in text else 4
    span |= {"start": good, "end": good + len(own), "text": text[good : good + len(own)]}
    (line,) = read(json.dumps({"text": text, "spans": [span]}))
    assert line.spans == (LabelledSpan(good, good + len(own), "PERSON"),)


def test_spans_that_cover_no_whole_words_are_counted():
    for text, spans, cut in [
        ("Ada left Rome", [(0, 3), (9, 13)], 0),
        ("Ada left Rome", [(0, 4), (8, 13), (5, 8)], 3),
        (f"{THUMBS} ask Mirela or him", [(17, 23)], 1),
        ("l'Aquila, (Bo) and Zoë's 10:30", [(2, 8), (11, 13), (19, 22), (25, 27)], 0),
        ("我们明天去北京。 철수가 왔다", [(5, 7), (9, 11)], 0),
    ]:
        found = span_warnings([LabelledLine(text, tuple(LabelledSpan(*span, "X") for span in spans), 1)])
        assert len(found) == (cut > 0)
        if cut:
            assert found[0].startswith(f"{cut} of {len(spans)} spans begin or end at a blank or inside a word")


def test_a_bad_line_is_named_without_its_text(read):
    for record, reason in [
        ({"spans": []}, "text: Field required"),
        ({"text": "\ud800 Zebulon", "spans": []}, "'text' holds half of a surrogate pair"),
        ({"text": "Zebulon", "spans": {}}, "span: Input should be a valid list"),
        ({"text": "Zebulon", "spans": [{"start": True, "end": 3, "label": "X"}]}, "span 1 start: .* valid integer"),
        ({"text": "Zebulon", "spans": [{"start": 3, "end": 3, "label": "X"}]}, "span 1 is empty"),
        ({"text": "Zebulon", "spans": [{"start": 0, "end": 3, "label": " "}]}, "span 1 label: "),
        ({"text": "Zebulon", "spans": [], "document": 1.5}, "document"),
        (["Zebulon"], "is not a JSON object"),
    ]:
        with pytest.raises(CorpusError, match=f"1 bad line: line 1: {reason}") as caught:
            read(json.dumps(record) + "\n")
        assert "Zebulon" not in str(caught.value)
