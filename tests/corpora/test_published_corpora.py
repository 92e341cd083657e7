"""Corpora as their publishers ship them: Fisher, WikiText, Wall Street Journal and Reddit, in small.

A transcript has the form of the readme of LDC2004T19, tagged text and transcripts that of the CSR-I discs, a dump that
of Pushshift, and an article that of WikiText: a space before and behind each line, and empty lines between.
"""

import bz2
import gzip
import json
import zipfile
from collections import Counter

import pytest
import zstandard

from tasks.corpora.sources.document import PARTS
from tasks.corpora.sources.fisher import FisherCorpus
from tasks.corpora.sources.pushshift import PushshiftCorpus
from tasks.corpora.sources.wikitext import WikiTextCorpus
from tasks.corpora.sources.wsj import WallStreetJournalCorpus
from tasks.errors import CorpusError

KINDS = dict(fisher=FisherCorpus, wikitext=WikiTextCorpus, wsj=WallStreetJournalCorpus, pushshift=PushshiftCorpus)


def opened(kind, source, **settings):
    return KINDS[kind](kind=kind, source=str(source), **settings).open()


def read(kind, source, part=None, **settings):
    """The texts of the documents that have some, and the counts of texts left out."""
    documents = list(opened(kind, source, **settings).documents(part))
    left_out = sum((Counter(document.left_out) for document in documents), Counter())
    return [document.texts for document in documents if document.texts], dict(left_out)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


LDC = (
    "# fe_03_00001.sph\n# Transcribed at the LDC\n\n3.76 5.54 A: and i generally prefer \n\n"
    "5.82 6.48 A: eating at home \n\n7.92 9.52 B: hi my name is andy \n\n"
    "84.86 87.33 A: who turned me onto this he works for (( )) and he \n\n90.00 91.20 B: [laughter] \n\n"
    "92.10 93.45 A: the f._b._i. called [noise] me \n\n"
)
BBN = "# fe_03_00092.sph\n# Transcribed by BBN/WordWave\n\n0.00 1.21 B: hello \n\n12.39 14.07 B: (( oh yeah )) \n\n"


def test_fisher_calls_are_documents_without_comments_and_sounds(tmp_path):
    for release, number, text in (("LDC2004T19/fe_03_p1_tran", "00001", LDC), ("LDC2005T19/x", "05851", BBN)):
        write(tmp_path / release / "data" / "trans" / number[:3] / f"fe_03_{number}.txt", text)
        write(tmp_path / release / "doc" / "fe_03_readme.tbl", "no transcript")
    first = ["and i generally prefer", "eating at home", "hi my name is andy", "the f.b.i. called   me"]
    assert read("fisher", tmp_path) == ([first, ["hello"]], {"unclear": 2, "no_speech": 1})
    # Guesses of the transcriber can stay, but gaps do not.
    assert read("fisher", tmp_path, unclear="keep") == ([first, ["hello", "oh yeah"]], {"unclear": 1, "no_speech": 1})


PARAGRAPHS = [
    "= Mill Creek Lighthouse =",
    "Mill Creek Lighthouse is a lighthouse on the <unk> coast , built in 1889 . "
    "It is 18 @.@ 5 metres high ( 61 ft ) and cost $ 1 @,@ 200 .",
    "= = History = =", 'The well @-@ known keeper was Tom \'s uncle ; he called it " the old lady " .',
    "= = = After 1920 = = =", "It didn 't burn .", "= Second Article =", "One sentence here .",
]  # fmt: skip
WIKITEXT = {
    "train": " \n" + "".join(f" {paragraph} \n \n" for paragraph in PARAGRAPHS),
    "valid": " \n = Valid = \n \n A valid sentence . \n",
    "test": " \n = Test = \n \n A test sentence . One sentence here . \n",
}


def test_wikitext_articles_are_documents_and_text_is_put_together(tmp_path):
    for part, text in WIKITEXT.items():
        write(tmp_path / "wikitext-103" / f"wiki.{part}.tokens", text)
    keeper = 'The well-known keeper was Tom\'s uncle; he called it "the old lady".'
    first = ["It is 18.5 metres high (61 ft) and cost $1,200.", keeper, "It didn't burn."]
    articles = [first, ["One sentence here."]]
    assert read("wikitext", tmp_path, "train") == (articles, {"heading": 4, "unknown_word": 1})
    ((first, *_), *_), _ = read("wikitext", tmp_path, "train", unknown_words="keep")
    assert first == "Mill Creek Lighthouse is a lighthouse on the <unk> coast, built in 1889."
    with zipfile.ZipFile(tmp_path / "wikitext-103-v1.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((tmp_path / "wikitext-103").iterdir()):
            archive.write(path, f"wikitext-103/{path.name}")
    from_zip = opened("wikitext", tmp_path / "wikitext-103-v1.zip")
    assert [document.texts for document in from_zip.documents("train")] == articles
    assert {document.part for document in from_zip.documents("test")} == {"test"}
    assert from_zip.files == [str(tmp_path / "wikitext-103-v1.zip")]


TAGGED = (
    "<art.870102-0001>\n<p.1>\n<s.1>\nthe company said it will sell its san francisco unit\n</s>\n<s.2>\n"
    "mr. vinken is chairman of elsevier n. v.\n</s>\n</p>\n</art>\n<art.870102-0002>\n<p.1>\n"
    '<s id="3"> prices rose two percent </s>\n</p>\n</art>\n'
)
VERBALISED = (
    "<s.1>\n"
    'the company ,COMMA which lost two .POINT five %PERCENT ,COMMA is "DOUBLE-QUOTE fine "DOUBLE-QUOTE .PERIOD\n'
    "</s>\n<s.2>\nr. -HYPHEN and d. &AMPERSAND so on --DASH (LEFT-PAREN see below )RIGHT-PAREN\n</s>\n"
)
DOT = (
    "the sale of the \\-hotels is [door_slam] part of <the> *holding's* strategy . (011c0201)\n"
    "~ [loud_breath] (011c0202)\n"
)
LSN = "THE SALE OF THE HOTELS IS PART OF THE STRATEGY (011C0201)\n"


def test_wsj_text_is_one_document_an_article(tmp_path):
    first = ["the company said it will sell its san francisco unit", "mr. vinken is chairman of elsevier n. v."]
    read_out = ['the company, which lost two POINT five PERCENT, is " fine ".', "r. - and d. and so on -- ( see below)"]
    for folder, text, documents in (
        ("np_data", TAGGED, [first, ["prices rose two percent"]]),
        ("vp_data", VERBALISED, [read_out]),
    ):
        path = write(tmp_path / "13-32.1/wsj1/doc/lng_modl/lm_train" / folder / "87/w7_001.z", "")
        path.write_bytes(gzip.compress(text.encode()))
        assert read("wsj", tmp_path) == (documents, {})
        path.unlink()


def test_wsj_transcripts_have_the_publishers_parts(tmp_path):
    for part in ("si_tr_s", "si_dt_05", "si_et_20"):
        folder = tmp_path / "wsj0/transcrp/dots" / part / "011"
        write(folder / "011c0201.dot", DOT.replace("the sale", f"the {part[3:5]} sale"))
        write(folder / "011c0201.lsn", LSN)
    source = opened("wsj", tmp_path, text="transcripts")
    for part, name in zip(PARTS, ("tr", "dt", "et"), strict=True):
        (document,) = source.documents(part)
        assert document.texts == [f"the {name} sale of the -hotels is part of the holding's strategy"]
        assert document.left_out == {"no_speech": 1}
    # Capitals are read where there is no other transcript.
    write(tmp_path / "other/speaker.lsn", LSN)
    capitals = [["THE SALE OF THE HOTELS IS PART OF THE STRATEGY"]]
    assert read("wsj", tmp_path / "other", text="transcripts") == (capitals, {})


def comment(body, thread="t3_aaaaaa", author="somebody", subreddit="AskReddit", score=3):
    fields = {"archived": False, "author": author, "author_flair_text": None, "body": body, "edited": False}
    return {**fields, "id": "ed0r3xa", "link_id": thread, "parent_id": thread, "score": score, "subreddit": subreddit}


def dump(path, *comments, window_log=20):
    lines = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in comments).encode()
    if path.suffix == ".bz2":
        path.write_bytes(bz2.compress(lines))
        return
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(compressor.compress(lines) + compressor.flush())


def test_comments_become_sentences_and_the_rest_is_counted(tmp_path):
    dump(
        tmp_path / "RC_2019-01.zst",
        comment("I live in Leeds. It rains a lot there, but I like it!", subreddit="Leeds"),
        comment("[deleted]", author="[deleted]"),
        comment("[removed]"),
        comment("Your post was removed.", author="AutoModerator"),
        comment("Here is a picture of a cat for you", author="cat_picture_bot"),
        comment("Beep. I am a bot, and this comment was made by me."),
        comment("Das ist leider nicht so einfach, wie du denkst, mein Freund."),
        comment("&gt; somebody else wrote this\n\n"),
        window_log=31,
    )
    leeds = ["I live in Leeds.", "It rains a lot there, but I like it!"]
    found = {"removed": 2, "bot": 3, "not_english": 1, "no_text": 1}
    assert read("pushshift", tmp_path / "RC_2019-01.zst") == ([leeds], found)
    assert next(opened("pushshift", tmp_path).documents()).name == "t3_aaaaaa"
    # A folder of months is read in their order, without submissions.
    dump(tmp_path / "RC_2011-01.bz2", comment("the first month", score=-2, subreddit="LEEDS"))
    dump(tmp_path / "RS_2019-02.zst", {"title": "a submission"})
    texts, _ = read("pushshift", tmp_path, minimum_english_share=0.0, bots=True)
    assert (len(texts), texts[:2]) == (6, [["the first month"], leeds])
    texts, left_out = read("pushshift", tmp_path, subreddits=["r/leeds"], minimum_score=1)
    # Two of the seven others are counted as removed.
    assert (texts, left_out["low_score"], left_out["other_subreddit"]) == ([leeds], 1, 5)


def test_markdown_and_entities_become_text(tmp_path):
    for body, texts in [
        ("Tom &amp; Ann: 1 &lt; 2 &amp;gt; 0", ["Tom & Ann: 1 < 2 > 0"]),
        ("&gt; quoted\n\nmy answer", ["my answer"]),
        ("see [this page](https://example.com/a_(b)) now", ["see this page now"]),
        ("**very** *nice* ~~bad~~ __word__ `code` snake_case 3 * 4", ["very nice bad word code snake_case 3 * 4"]),
        ("# Title\n\n* first\n* second\n\n1. third", ["Title", "first", "second", "third"]),
        ("before\n\n    code here\n\nthen\n```\ncode\n```\nafter", ["before", "then", "after"]),
        ("a | b | c\n-|-|-\n1 | 2 | 3\nend", ["end"]),
        ("&gt;!the butler!&lt; did it\\_ and x^2 y^(n + 1)", ["the butler did it_ and x 2 y n + 1"]),
    ]:  # fmt: skip
        dump(tmp_path / "RC_2019-01.zst", comment(body))
        assert read("pushshift", tmp_path, minimum_english_share=0.0)[0] == [texts]


def test_a_sample_takes_whole_threads_and_the_seed_says_which(tmp_path):
    bodies = ((f"comment {number} of this thread", f"t3_{number % 200}") for number in range(600))
    dump(tmp_path / "RC_2019-01.zst", *(comment(*each) for each in bodies))
    found = [read("pushshift", tmp_path, sample_share=0.25, cleaning={"seed": seed}) for seed in (1, 2, 1)]
    for texts, left_out in found:
        threads = {int(text.split()[1]) % 200 for (text,) in texts}
        assert len(texts) == 3 * len(threads)
        # 200 threads at 25 %: 50, standard deviation 6.
        assert 26 <= len(threads) <= 74
        assert left_out == {"beyond_sample": 600 - len(texts)}
    assert found[0] == found[2] != found[1]


TOKENS = {f"wiki.{part}.tokens": "secret text without a title .\n" for part in PARTS}


@pytest.mark.parametrize(
    ("kind", "files", "settings", "message"),
    [
        ("fisher", None, {}, "does not exist; put the folders of LDC2004T19 and LDC2005T19 there"),
        ("fisher", {"fe_03_00001.txt": f"{LDC}L: secret text\n"}, {}, "line 16 is no utterance"),
        ("wikitext", {"wiki.train.tokens": "x"}, {}, r"lacks wiki\.valid\.tokens"),
        ("wikitext", TOKENS, {}, "precedes the first '= Title =' line"),
        ("wsj", {"a.txt": ""}, {}, "holds no np_data or vp_data folder"),
        ("wsj", {"a.dot": f"{DOT}secret text without an id\n"}, {"text": "transcripts"}, "line 3 is no utterance"),
        ("pushshift", {"RC_2019-01": '{"body": "fine"}\n{"title": "secret"}\n'}, {}, "line 2 has no field 'body'"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_said_without_its_text(tmp_path, kind, files, settings, message):
    for name, content in (files or {}).items():
        write(tmp_path / "source" / name, content)
    with pytest.raises(CorpusError, match=message) as caught:
        read(kind, tmp_path / "source", "train" if kind == "wikitext" else None, **settings)
    assert "secret" not in str(caught.value)
