import pytest

from tasks.errors import CorpusError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled, write_labelled

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
