"""Files in the form of WikiText: a space before and behind each line, paragraphs on one line, empty lines between."""

import zipfile

import pytest

from tasks.corpora.sources.wikitext import WikiTextCorpus, put_together
from tasks.errors import CorpusError


def opened(source, **settings):
    return WikiTextCorpus(kind="wikitext", source=source, **settings).open()


PARAGRAPHS = [
    "= Mill Creek Lighthouse =",
    "Mill Creek Lighthouse is a lighthouse on the <unk> coast , built in 1889 . "
    "It is 18 @.@ 5 metres high ( 61 ft ) and cost $ 1 @,@ 200 .",
    "= = History = =",
    'The well @-@ known keeper was Tom \'s uncle ; he called it " the old lady " .',
    "= = = After 1920 = = =",
    "It didn 't burn .",
    "= Second Article =",
    "One sentence here .",
]
TRAIN = " \n" + "".join(f" {paragraph} \n \n" for paragraph in PARAGRAPHS)
VALID = " \n = Valid = \n \n A valid sentence . \n"
TEST = " \n = Test = \n \n A test sentence . One sentence here . \n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wikitext-103").mkdir()
    for part, text in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        (tmp_path / "wikitext-103" / f"wiki.{part}.tokens").write_text(text)
    return tmp_path


ARTICLES = [
    [
        "It is 18.5 metres high (61 ft) and cost $1,200.",
        'The well-known keeper was Tom\'s uncle; he called it "the old lady".',
        "It didn't burn.",
    ],
    ["One sentence here."],
]


def test_articles_are_documents_and_text_is_put_together(folder):
    documents = list(opened(str(folder)).documents("train"))
    assert [document.texts for document in documents] == ARTICLES
    assert {document.part for document in documents} == {"train"}
    # A heading counts with the article that it ends before or stands in: the title of the second is read there.
    assert sum(document.left_out["heading"] for document in documents) == 4
    assert sum(document.left_out["unknown_word"] for document in documents) == 1


def test_sentences_with_unknown_words_can_stay(folder):
    first = next(opened(str(folder), unknown_words="keep").documents("train"))
    assert first.texts[0] == "Mill Creek Lighthouse is a lighthouse on the <unk> coast, built in 1889."


def test_the_published_zip_file_is_read_as_it_is(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "wikitext-103-v1.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((folder / "wikitext-103").iterdir()):
            archive.write(path, f"wikitext-103/{path.name}")
    from_zip = opened(str(tmp_path / "wikitext-103-v1.zip"))
    assert [document.texts for document in from_zip.documents("train")] == ARTICLES
    assert from_zip.files == [str(tmp_path / "wikitext-103-v1.zip")]


def test_tokens_are_put_together():
    for tokenised, written in [
        ("2 @.@ 7 – 2 @.@ 2 kg ( 1 @.@ 5 lb )", "2.7 – 2.2 kg (1.5 lb)"),
        ("10 @,@ 000 @,@ 000 people , or 5 %", "10,000,000 people, or 5%"),
        ('only " red " , " blue " and " green "', 'only "red", "blue" and "green"'),
        ("we 'll see ; they 've gone : they 're out !", "we'll see; they've gone: they're out!"),
        ("the players ' room", "the players ' room"),
    ]:
        assert put_together(tokenised) == written


def test_what_is_no_wikitext_is_said(folder, tmp_path):
    with pytest.raises(CorpusError, match=r"does not exist; put the WikiText-103 folder or zip file there"):
        opened(str(tmp_path / "nothing"))
    (folder / "wikitext-103" / "wiki.valid.tokens").unlink()
    with pytest.raises(CorpusError, match=r"lacks wiki\.valid\.tokens"):
        opened(str(folder))
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(CorpusError, match=r"bad\.zip' lacks wiki\.train\.tokens"):
        opened(str(tmp_path / "bad.zip"))
    for part in ("train", "valid", "test"):
        (folder / "wikitext-103" / f"wiki.{part}.tokens").write_text("secret text without a title .\n")
    with pytest.raises(CorpusError, match="precedes the first '= Title =' line") as caught:
        list(opened(str(folder)).documents("train"))
    assert "secret" not in str(caught.value)


def test_both_variants_at_once_are_refused(folder):
    for part in ("train", "valid", "test"):
        (folder / f"wiki.{part}.raw").write_text(VALID)
    with pytest.raises(CorpusError, match="holds both"):
        opened(str(folder))
