"""``import palimpsest``: the stages over sentences, files and rows."""

import json
import re
from pathlib import Path

import pytest

import palimpsest
from tasks.cli import main
from tasks.errors import PalimpsestError
from tasks.filling.methods.unigram import Unigram
from tests.reviewed_corpus import LINES as REVIEWED_LINES
from tests.reviewed_corpus import begin, make_corpus

NOTEBOOK = Path(__file__).parents[1] / "docs/notebook.md"
LINES = ["Hello Maria, how is the dog?", "", "I told Zebulon that the cat is in Boston.", "The dog and the cat sleep."]
COUNTS = "the\t90\nand\t40\nis\t30\ndog\t9\ncat\t8\nhouse\t4\nboston\t3\nzebulon\t2\n"


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "counts.tsv"
    path.write_text(COUNTS)
    return path


@pytest.fixture(scope="module")
def model(counts):
    """The folder of an n-gram model."""
    folder = counts.parent
    (folder / "generic.txt").write_text("the dog sleeps\nthe cat sleeps and the dog is in the house\n" * 20)
    generic, vocabulary = str(folder / "generic.txt"), str(folder / "vocabulary.txt")
    of_counts = ["--word-counts", str(counts), "--output", vocabulary, "--set", "minimum_count=1"]
    assert main(["vocabulary", *of_counts]) == 0
    of_text = ["--vocabulary", vocabulary, "--input", generic, "--valid", generic, "--output", str(folder / "ngram")]
    assert main(["pretrain", "--set", "kind=ngram", *of_text]) == 0
    return folder / "ngram"


def test_masking_and_filling_write_what_the_commands_write(tmp_path, counts):
    raw, masked, filled_file = (tmp_path / f"{name}.txt" for name in ("raw", "masked", "filled"))
    raw.write_text("\n".join(LINES) + "\n")
    notes = ["--sidecar", str(tmp_path / "sidecar.jsonl"), "--allowed-words", str(tmp_path / "allowed.txt")]
    assert main(["mask", "--technique", "allow_list", "--input", str(raw), "--output", str(masked), *notes]) == 0
    options = ["--word-counts", str(counts), "--seed", "3", "--set", "copies=2", *notes]
    assert main(["fill", "--method", "unigram", "--input", str(masked), "--output", str(filled_file), *options]) == 0
    of_lines = palimpsest.mask(LINES)
    of_rows = palimpsest.mask({"text": line, "speaker": 1} for line in LINES)
    of_file = palimpsest.mask(raw)
    expected = masked.read_text().splitlines()
    assert list(of_lines) == list(of_rows) == list(of_file) == expected
    assert of_lines.measured["masked_words"] == sum(line.count("[MASK]") for line in expected)
    assert of_lines.path.parent.stat().st_mode & 0o777 == 0o700
    assert (len(of_lines), of_lines[-1], of_lines[1:3]) == (4, expected[3], expected[1:3])
    assert palimpsest.mask(LINES, "crf", markers={"style": "class"})[0] == "Hello [PERSON], how is the dog?"
    filled = palimpsest.fill(of_lines, "unigram", word_counts=counts, seed=3, copies=2)
    settings = Unigram(kind="unigram", copies=2)
    # Read while nothing else holds what is read.
    of_others = zip(filled, palimpsest.fill(of_rows, settings, word_counts=counts, seed=3), strict=True)
    assert all(line == other for line, other in of_others)
    assert list(filled) == filled_file.read_text().splitlines()


def test_adapting_lowers_the_perplexity_that_the_command_prints(tmp_path, model, capsys):
    test = ["the cat sleeps in the house", "the dog is in the house"]
    before = palimpsest.perplexity(model, test, threads=1, bootstrap_samples=100)
    assert capsys.readouterr().out == ""
    (tmp_path / "test.txt").write_text("\n".join(test) + "\n")
    given = ["--model", str(model), "--input", str(tmp_path / "test.txt"), "--report", "-"]
    assert main(["perplexity", *given, "--set", "bootstrap_samples=100"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"].items() <= before.items()
    adapted = palimpsest.adapt(model, test * 10, tmp_path / "adapted", valid=test)
    assert palimpsest.perplexity(adapted, test)["perplexity"] < before["perplexity"]


def test_lists_are_rescored(model):
    hypotheses = [{"text": "the hat sleeps", "score": -1.0}, {"text": "the cat sleeps", "score": -1.1}]
    one = {"reference": "the cat sleeps", "hypotheses": hypotheses}
    lists = [{"utterance_id": str(number), **one} for number in range(4)]
    alone = palimpsest.rescore(lists, lists, bootstrap_samples=100)
    chosen = palimpsest.rescore(lists, lists, model, word_errors={"bootstrap_samples": 100})
    assert (alone["wer"], chosen["wer"]) == (1 / 3, 0)


def test_a_column_is_read_and_a_text_of_any_program_is_audited(tmp_path):
    (tmp_path / "tickets.csv").write_text("id;body\n" + "".join(f"{n};Client name{n}x asked.\n" for n in range(150)))
    tickets = palimpsest.read(tmp_path / "tickets.csv", text_field="body")
    assert tickets[:2] == ["Client name0x asked.", "Client name1x asked."]
    members, held_out = tickets[::2], tickets[1::2]
    disclosed = palimpsest.audit(members[:25], members, held_out=held_out)
    hidden = palimpsest.audit(["Client asked."] * 75, members, held_out=held_out)
    assert (disclosed["disclosed_words"], disclosed["disclosed_words_blind"]) == (25 / 75, 0)
    assert disclosed["disclosed_words_p"] < 0.001 < 0.05 < hidden["disclosed_words_p"]
    with pytest.raises(PalimpsestError, match=r"no field 'bodi' \(did you mean 'body'\?\)"):
        palimpsest.read(tmp_path / "tickets.csv", text_field="bodi")


def test_what_cannot_be_used_is_named():
    for call, message in [
        (lambda: palimpsest.mask(["one\ntwo"]), "sentence 1 has a line end in it; give one sentence each"),
        (lambda: palimpsest.mask("nowhere.txt"), "text file 'nowhere.txt' does not exist"),
        (lambda: palimpsest.perplexity({}, LINES), "model is of type dict; give its folder"),
        (lambda: palimpsest.mask(LINES, "allow_lists"), "allow_list"),
        (lambda: palimpsest.fill(LINES, "unigram", kk=1), "kk: unknown key"),
    ]:
        with pytest.raises(PalimpsestError) as error:
            call()
        assert message in str(error.value)


def test_a_table_or_a_file_of_records_is_read_by_its_column_text(tmp_path):
    import pandas
    import pyarrow

    expected = list(palimpsest.mask(LINES))
    columns = {"id": list(range(len(LINES))), "text": LINES}
    for table in (columns, pandas.DataFrame(columns), pyarrow.table(columns), pandas.Series(LINES)):
        assert list(palimpsest.mask(table)) == expected
    with pytest.raises(PalimpsestError, match="the table has no column 'text'"):
        palimpsest.mask(pandas.DataFrame({"body": LINES}))
    lines = ["Hello Maria, it rains. The dog sleeps.", "I told Zebulon."]
    (tmp_path / "A.CSV").write_text("".join(f"{row}\n" for row in ("id;message", *(f"1;{line}" for line in lines))))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": 1, "message": line}) + "\n" for line in lines))
    for name in ("A.CSV", "a.jsonl"):
        assert list(palimpsest.mask(tmp_path / name)) == list(palimpsest.mask(lines))


@pytest.mark.parametrize("sentence", ["My name is Maria", "Maria/Lopez", "Maria\nLopez", "x" * 999])
def test_no_error_quotes_a_sentence_that_is_taken_for_a_path(sentence):
    for call in (palimpsest.mask, palimpsest.fill, lambda text: palimpsest.rescore(text, [])):
        with pytest.raises(PalimpsestError, match="give sentences as a list") as caught:
            call(sentence)
        assert sentence not in str(caught.value)


def test_an_adapted_model_is_replaced_only_where_that_is_asked_for(tmp_path, model):
    adapted = palimpsest.adapt(model, ["the cat sleeps"] * 20, tmp_path / "adapted", valid=LINES)
    before = {path.name: path.read_bytes() for path in adapted.path.iterdir()}
    with pytest.raises(PalimpsestError, match="is not empty; give a new one, or overwrite=True"):
        palimpsest.adapt(model, ["the dog sleeps"] * 20, tmp_path / "adapted")
    assert {path.name: path.read_bytes() for path in adapted.path.iterdir()} == before
    palimpsest.adapt(model, ["the dog sleeps"] * 20, tmp_path / "adapted", valid=LINES, overwrite=True)
    assert {path.name: path.read_bytes() for path in adapted.path.iterdir()} != before


def test_a_review_gives_lines_to_read_and_counts_those_that_a_person_has_read(tmp_path, monkeypatch):
    monkeypatch.chdir(make_corpus(tmp_path))
    begin()
    to_read = palimpsest.review("mail/allow_list", lines=3)
    assert [record["text"] for record in to_read] == [REVIEWED_LINES[line] for line in (3, 0, 2)]
    marked = [{**record, "answer": "accept"} for record in to_read]
    # The technique leaves "Rome" and "Zoë" unmasked: the reader suggests one, and the person adds the other.
    start = REVIEWED_LINES[3].index("Zoë")
    marked[0]["spans"] = [{"start": start, "end": start + 3, "label": "PERSON"}]
    after = palimpsest.review("mail/allow_list", marked, reviewer="ann")
    assert after.recorded == "3 lines taken, 4 words marked, by ann"
    expected = begin().bound()
    assert after.measured == expected
    assert (expected["direct"]["found"], expected["direct"]["unmasked_found"]) == (2, 1)
    mixed = [{**after[0], "answer": "accept"}, after[1]]
    assert "left out: 1 records without an answer" in palimpsest.review("mail/allow_list", mixed).recorded
    with pytest.raises(PalimpsestError, match="no line was taken"):
        palimpsest.review("mail/allow_list", [{"text": "Another text.", "spans": [], "answer": "accept"}])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_lines_of_the_notebook_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.txt").write_text("\n".join(LINES * 5) + "\n")
    (tmp_path / "tickets.csv").write_text("id;body\n" + "".join(f"{n};{line}\n" for n, line in enumerate(LINES * 5)))
    cells = re.findall(r"```python\n(.*?)```", NOTEBOOK.read_text(encoding="utf-8"), flags=re.S)
    exec(compile("\n".join(cells), "notebook.md", "exec"), {})
    assert re.search(r"\d", capsys.readouterr().out)
