"""Text in the form of the CSR-I discs: tagged text for language models, and transcripts with utterance ids."""

import gzip

import pytest

from tasks.corpora.division import divide
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.wsj import WallStreetJournalCorpus
from tasks.errors import CorpusError


def opened(source, **settings):
    return WallStreetJournalCorpus(kind="wsj", source=source, **settings).open()


TAGGED = """<art.870102-0001>
<p.1>
<s.1>
the company said it will sell its san francisco unit
</s>
<s.2>
mr. vinken is chairman of elsevier n. v.
</s>
</p>
</art>
<art.870102-0002>
<p.1>
<s id="3"> prices rose two percent </s>
</p>
</art>
"""
VERBALISED = """<s.1>
the company ,COMMA which lost two .POINT five %PERCENT ,COMMA is "DOUBLE-QUOTE fine "DOUBLE-QUOTE .PERIOD
</s>
<s.2>
r. -HYPHEN and d. &AMPERSAND so on --DASH (LEFT-PAREN see below )RIGHT-PAREN
</s>
"""
DOT = """the sale of the \\-hotels is [door_slam] part of <the> *holding's* strategy . (011c0201)
~ [loud_breath] (011c0202)
"""
LSN = "THE SALE OF THE HOTELS IS PART OF THE STRATEGY (011C0201)\n"


def text_folder(tmp_path, kind, text):
    folder = tmp_path / "13-32.1" / "wsj1" / "doc" / "lng_modl" / "lm_train" / kind / "87"
    folder.mkdir(parents=True)
    (folder / "w7_001.z").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_tagged_text_is_one_document_an_article(tmp_path):
    documents = list(opened(str(text_folder(tmp_path, "np_data", TAGGED))).documents())
    assert [document.texts for document in documents] == [
        ["the company said it will sell its san francisco unit", "mr. vinken is chairman of elsevier n. v."],
        ["prices rose two percent"],
    ]


def test_verbalised_punctuation_becomes_marks(tmp_path):
    (document,) = opened(str(text_folder(tmp_path, "vp_data", VERBALISED))).documents()
    assert document.texts == [
        'the company, which lost two POINT five PERCENT, is " fine ".',
        "r. - and d. and so on -- ( see below)",
    ]


def test_transcripts_keep_the_publishers_parts(tmp_path):
    for part in ("si_tr_s", "si_dt_05", "si_et_20"):
        folder = tmp_path / "wsj0" / "transcrp" / "dots" / part / "011"
        folder.mkdir(parents=True)
        (folder / "011c0201.dot").write_text(DOT.replace("the sale", f"the {part[3:5]} sale"))
        (folder / "011c0201.lsn").write_text(LSN)
    source = opened(str(tmp_path), text="transcripts")
    (document,) = source.documents("test")
    assert document.texts == ["the et sale of the -hotels is part of the holding's strategy"]
    assert document.left_out == {"no_speech": 1}
    tally = divide(source, CleaningSettings(), tmp_path / "out", private=False, name="wsj")
    assert tally.sentences == {"train": 1, "valid": 1, "test": 1}


def test_transcripts_in_capitals_are_read_where_there_are_no_others(tmp_path):
    (tmp_path / "speaker.lsn").write_text(LSN)
    (document,) = opened(str(tmp_path), text="transcripts").documents()
    assert document.texts == ["THE SALE OF THE HOTELS IS PART OF THE STRATEGY"]


def test_what_is_missing_or_wrong_is_said_without_its_text(tmp_path):
    with pytest.raises(CorpusError, match="put the discs' folders wsj0 and wsj1 there"):
        opened(str(tmp_path / "nothing"))
    with pytest.raises(CorpusError, match="holds no np_data or vp_data folder"):
        opened(str(tmp_path))
    with pytest.raises(CorpusError, match=r"holds no \*\.dot or \*\.lsn"):
        opened(str(tmp_path), text="transcripts")
    (tmp_path / "a.dot").write_text(DOT + "secret text without an id\n")
    with pytest.raises(CorpusError, match="line 3 is no utterance") as caught:
        list(opened(str(tmp_path), text="transcripts").documents())
    assert "secret" not in str(caught.value)


def test_the_same_text_twice_is_refused(tmp_path):
    text_folder(tmp_path, "np_data", TAGGED)
    with pytest.raises(CorpusError, match="holds np_data and vp_data"):
        opened(str(text_folder(tmp_path, "vp_data", VERBALISED)))
