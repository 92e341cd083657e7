import json
from pathlib import Path

import pytest
from reviewed_corpus import LINES, begin, mark

from tasks.errors import CorpusError, ParameterError
from tasks.review.exchange import take_import, write_export

MARKS = {
    3: (mark(3, "Zoë"), mark(3, "Tom", direct=False)),
    0: (mark(0, "Anna"), mark(0, "Smith"), mark(0, "Rome", "LOCATION", True)),
    2: (),
}


def reviewed():
    reading = begin()
    for line, marks in MARKS.items():
        reading.save(line, marks, 1.0)
    return reading


def taken(form: str, content: str | None = None, labels=None):
    """What an import of a file says, and the marks that it has recorded."""
    file, reading = Path(form), begin("bob")
    if content is not None:
        file.write_text(content, encoding="utf-8")
    said = take_import(reading, form, file, labels or {})
    return said, {each.line: each.marks for each in reading.own}


@pytest.mark.parametrize("form", ["label-studio", "doccano", "prodigy", "gold"])
def test_what_is_exported_comes_back_as_it_was(corpus, form):
    write_export(reviewed(), form, Path(form), None, reviewed=True)
    assert Path(form).stat().st_mode & 0o777 == 0o600
    said, marks = taken(form)
    assert said == f"{form}: 3 lines taken, 5 words marked, by bob" + (
        "\noffsets were in UTF-16 code units, and are converted to characters" if form == "label-studio" else ""
    )
    assert marks == MARKS


def test_lines_to_review_carry_suggestions_and_are_no_review_until_somebody_has_read_them(corpus):
    reading = begin()
    assert "2 lines to review, with suggestions as prodigy" in write_export(reading, "prodigy", Path("p"), 2, False)
    records = [json.loads(line) for line in Path("p").read_text(encoding="utf-8").splitlines()]
    assert [each["text"] for each in records] == [LINES[3], LINES[0]]
    assert [span["label"] for span in records[1]["spans"]] == ["PERSON", "LOCATION"]
    for form, what in (("prodigy", "records without an answer"), ("label-studio", "tasks without an annotation")):
        write_export(reading, form, Path(form), 2, False)
        with pytest.raises(CorpusError, match=rf"no line was taken \(2 {what}\)"):
            taken(form)
    assert begin().own == []


TEXT = f"{LINES[1]}\r\n{LINES[3]}"


@pytest.mark.parametrize(
    ("unit", "width"),
    [
        ("characters", lambda text: len(text)),
        ("UTF-16 code units with a CRLF as one", lambda text: len(text.replace("\r\n", "\n").encode("utf-16-le")) // 2),
    ],
)
def test_shifted_offsets_are_converted_where_the_text_says_how(corpus, unit, width):
    def span(word: str) -> dict:
        start = TEXT.index(word)
        return {"start": width(TEXT[:start]), "end": width(TEXT[: start + len(word)]), "label": "PER", "text": word}

    said, marks = taken("prodigy", json.dumps({"text": TEXT, "spans": [span("Bob"), span("Zoë"), span("Tom")]}) + "\n")
    assert marks == {1: (mark(1, "Bob"),), 3: (mark(3, "Zoë"), mark(3, "Tom"))}
    assert (f"offsets were in {unit}" in said) == (unit != "characters")


def doccano(*spans: list, text: str = LINES[0], **more) -> str:
    return json.dumps({"text": text, "label": list(spans), **more}) + "\n"


def test_what_is_left_out_is_counted(corpus):
    lines = [
        doccano([0, 2, "PER"], [0, 4, "ORG"], [4, 5, "PER"], [11, 16, "verb"]),
        doccano(text=LINES[2]) * 3,
        doccano(text="Nobody has this line."),
        doccano(text=LINES[5], line=5),
    ]
    said, marks = taken("doccano", "".join(lines), labels={"verb": None})
    assert marks == {0: (mark(0, "Anna"),), 2: (), 4: (), 5: ()}
    assert said.splitlines()[1] == (
        "left out: 1 further labels of a word that has one, 1 spans without a word, 1 spans of labels that are not "
        "private, 1 repeated lines, 1 lines that the corpus does not have"
    )
    assert said.splitlines()[2] == "4 lines count when the lines before them in the plan are read"
    assert "replace what the same reviewer" in taken("doccano", labels={"verb": "WORK"})[0]


@pytest.mark.parametrize(
    ("form", "content", "error", "message"),
    [
        ("doccano", doccano([0, 90, "PER"]), CorpusError, "1 of 1 spans do not cover their text, or end outside"),
        ("doccano", doccano([0, 4, "PERSN"]), ParameterError, r"'PERSN' \(1 spans\) \(did you mean 'PERSON'"),
        ("doccano", doccano(text="Anna is not here."), CorpusError, "1 lines that the corpus does not have"),
        ("doccano", doccano([0, "4", "PER"]), CorpusError, "record 1 is not of the format 'doccano'"),
        ("docano", "", ParameterError, "'docano' is not known.*did you mean 'doccano'"),
    ],
)
def test_what_cannot_be_taken_is_refused_and_nothing_is_recorded(corpus, form, content, error, message):
    with pytest.raises(error, match=message) as caught:
        taken(form, content)
    assert "Anna" not in str(caught.value)
    assert begin("bob").own == []


def test_annotators_of_a_tool_stay_two_reviewers(corpus):
    annotations = [{"completed_by": {"id": 1, "email": "x@y.org"}, "result": []}, {"completed_by": 2, "result": []}]
    said, _ = taken("label-studio", json.dumps([{"data": {"text": LINES[0], "line": 0}, "annotations": annotations}]))
    assert said.splitlines()[0] == "label-studio: 2 lines taken, 0 words marked, by 2, x@y.org"
