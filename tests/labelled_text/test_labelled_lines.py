import json

import pytest

from tasks.errors import CorpusError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled, span_warnings, write_labelled

GOOD = '{"text": "Ada left", "spans": [{"start": 0, "end": 3, "label": "PERSON"}]}'


def test_reads_text_spans_and_line_number(tmp_path):
    file = tmp_path / "gold.jsonl"
    file.write_text(GOOD + '\n{"text": "no one", "spans": [], "source": "mail", "template": "t7"}\n')
    assert list(read_labelled(file)) == [
        LabelledLine("Ada left", (LabelledSpan(0, 3, "PERSON"),), 1),
        LabelledLine("no one", (), 2, "t7"),
    ]


def test_byte_order_mark_windows_line_ends_and_blank_lines_at_the_end(tmp_path):
    file = tmp_path / "gold.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + (GOOD + "\r\n" + GOOD + "\r\n\r\n\n").encode())
    assert [line.number for line in read_labelled(file)] == [1, 2]


def test_offsets_count_characters_and_texts_may_hold_line_ends(tmp_path):
    file = tmp_path / "gold.jsonl"
    line = LabelledLine("😀\nZoë", (LabelledSpan(2, 5, "PERSON"),), 1)
    write_labelled(file, [line])
    assert list(read_labelled(file)) == [line]


def test_all_bad_lines_are_counted_and_the_first_twenty_named(tmp_path):
    file = tmp_path / "gold.jsonl"
    file.write_text((GOOD + "\n{\n") * 25)
    with pytest.raises(
        CorpusError, match=r"25 bad lines: line 2: is not JSON .column 2.; line 4: .*line 40: .*and 5 more"
    ) as error:
        list(read_labelled(file))
    assert "line 42" not in str(error.value)


THUMBS = "\U0001f44d" * 6


@pytest.mark.parametrize(
    ("text", "start", "end", "own", "fits_utf16"),
    [
        (f"{THUMBS} ask Mirela or him about it", 17, 23, "Mirela", True),
        ("\U0001f600 Zoë rang", 3, 6, "Zoë", True),
        (f"{THUMBS} Ada", 13, 16, "Ada", True),
        ("Zoë rang Ada", 10, 13, "Ada", False),
        ("ask Mirela", 4, 9, "Mirela", False),
        ("ask Mirela", 4, 10, "mirela", False),
    ],
)
def test_the_text_that_a_span_carries_must_be_at_its_offsets(tmp_path, text, start, end, own, fits_utf16):
    file = tmp_path / "gold.jsonl"
    span = {"start": start, "end": end, "label": "PERSON", "text": own}
    file.write_text(f"{GOOD}\n{json.dumps({'text': text, 'spans': [span]})}\n")
    with pytest.raises(CorpusError, match=r"1 bad line: line 2: span 1 (has another 'text'|ends at)") as caught:
        list(read_labelled(file))
    assert ("UTF-16" in str(caught.value)) == fits_utf16
    assert own not in str(caught.value)
    good = text.index(own) if own in text else 4
    span |= {"start": good, "end": good + len(own), "text": text[good : good + len(own)]}
    file.write_text(json.dumps({"text": text, "spans": [span]}))
    (line,) = read_labelled(file)
    assert line.spans == (LabelledSpan(good, good + len(own), "PERSON"),)


@pytest.mark.parametrize(
    ("text", "spans", "cut", "as_utf16"),
    [
        ("Ada left Rome", [(0, 3), (9, 13)], 0, 0),
        ("Ada left Rome", [(0, 4), (8, 13), (5, 8)], 3, 0),
        (f"{THUMBS} ask Mirela or him", [(17, 23)], 1, 1),
        ("\U0001f600 Zoë rang \U0001f600 Bo came", [(3, 6), (15, 17)], 2, 2),
        ("l'Aquila, (Bo) and Zoë's 10:30", [(2, 8), (11, 13), (19, 22), (25, 27)], 0, 0),
        ("我们明天去北京。 철수가 왔다", [(5, 7), (9, 11)], 0, 0),
    ],
)
def test_spans_that_cover_no_whole_words_are_counted(text, spans, cut, as_utf16):
    line = LabelledLine(text, tuple(LabelledSpan(start, end, "X") for start, end in spans), 1)
    found = span_warnings([line])
    assert len(found) == (cut > 0)
    if cut:
        assert found[0].startswith(f"{cut} of {len(spans)} spans begin or end at a blank or inside a word")
        assert (f"as UTF-16 code units {as_utf16} of these" in found[0]) == (as_utf16 > 0)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"spans": []}, "text: Field required"),
        ({"text": "\ud800 Zebulon", "spans": []}, "'text' holds half of a surrogate pair"),
        ({"text": "Zebulon", "spans": {}}, "span: Input should be a valid list"),
        ({"text": "Zebulon", "spans": [{"start": True, "end": 3, "label": "X"}]}, "span 1 start: .* valid integer"),
        ({"text": "Zebulon", "spans": [{"start": 3, "end": 3, "label": "X"}]}, "span 1 is empty"),
        ({"text": "Zebulon", "spans": [{"start": 0, "end": 3, "label": " "}]}, "span 1 label: "),
        ({"text": "Zebulon", "spans": [], "document": 1.5}, "document"),
        (["Zebulon"], "is not a JSON object"),
    ],
)
def test_a_bad_line_is_named_without_its_text(tmp_path, record, reason):
    file = tmp_path / "gold.jsonl"
    file.write_text(json.dumps(record) + "\n")
    with pytest.raises(CorpusError, match=f"1 bad line: line 1: {reason}") as caught:
        list(read_labelled(file))
    assert "Zebulon" not in str(caught.value)
