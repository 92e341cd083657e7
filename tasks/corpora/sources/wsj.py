"""Wall Street Journal text of the CSR-I corpora (WSJ0 LDC93S6A, WSJ1 LDC94S13A), as the LDC ships it.

The discs have two kinds of text, and ``text`` selects one:

- ``language_model``: the text for language models, ``lng_modl/lm_train/np_data/{87,88,89}/*.z`` (without verbalised
  punctuation) or ``vp_data`` (with it): SGML in which one line is one sentence, with tags such as ``<s id=...>`` on
  lines of their own or around the sentence. Compressed with ``compress``; a decompressed copy is read as well.
- ``transcripts``: text that was read aloud, ``transcrp/dots/**/*.dot`` or ``*.lsn``: one utterance a line, followed by
  its id in brackets. Folders named ``si_tr*``, ``si_dt*`` and ``si_et*`` (also ``sd_*``) are the publisher's training,
  development and evaluation text and stay so.

Verbalised punctuation (``,COMMA``, ``.PERIOD``, ``"DOUBLE-QUOTE``) becomes the mark; ``%PERCENT``, ``.POINT``,
``&AMPERSAND`` and ``/SLASH``, which are words, become words. Marks of transcribers are removed as in Kaldi's
recipe: sounds in square brackets, ``.`` for a pause, ``~`` for a cut, ``*mispronounced*``, ``<verbally deleted>``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.corpora.sources.document import Document, Part, Source, found_files
from tasks.errors import CorpusError
from tasks.settings.base import SourcePath

_ARTICLE = re.compile(r"<(?:art|doc)\b|<DOC\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_UTTERANCE = re.compile(r"(.*?)\s*\(([^\s()]+)\)\s*")
_SOUND = re.compile(r"\[[^\[\]\s]*\]")
_VERBALISED = re.compile(r"([^\w\s]+)([A-Za-z]{3,}(?:-[A-Za-z]+)*)")
_SPOKEN_AS_WORDS = frozenset("percent point ampersand slash".split())
_MARK_NAMES = frozenset(
    (
        "comma period double-quote close-quote unquote quote end-quote single-quote close-single-quote hyphen dash "
        "colon semi-colon question-mark exclamation-point left-paren right-paren paren open-paren close-paren parens "
        "begin-parens end-parens left-brace right-brace brace open-brace close-brace ellipsis"
    ).split()
)
_PART_OF_FOLDER = re.compile(r"(?:si|sd|lj|jr|jd)_(tr|dt|et)", re.IGNORECASE)
_PARTS: dict[str, Part] = {"tr": "train", "dt": "valid", "et": "test"}


class WallStreetJournalCorpus(CorpusSettings):
    """Wall Street Journal text of WSJ0 and WSJ1 (LDC93S6A, LDC94S13A; licensed by the LDC)."""

    how_to_get: ClassVar[str] = (
        "order CSR-I (WSJ0) LDC93S6A and CSR-II (WSJ1) LDC94S13A at catalog.ldc.upenn.edu (needs a licence)"
    )
    kind: Literal["wsj"]
    source: SourcePath
    """Folder with the discs' folders, unchanged, or one file."""
    text: Literal["language_model", "transcripts"] = "language_model"
    """``language_model``: the text for language models (``lng_modl/lm_train``). ``transcripts``: the text read aloud
    (``.dot``, ``.lsn``), whose folders ``si_tr*``, ``si_dt*`` and ``si_et*`` stay train, valid and test."""

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        paths = self._find()

        def documents(part: Part | None) -> Iterator[Document]:
            """One document per article, or per transcript file (a speaker's session), in the order of paths."""
            for path in paths:
                if self._part(path) == part:
                    yield from _articles(path) if self.text == "language_model" else [_session(path, part)]

        return Source(list(map(str, paths)), documents, tuple({self._part(path) for path in paths}))

    def _part(self, path: Path) -> Part | None:
        if self.text == "language_model":
            return None
        for folder in reversed(path.parts[:-1]):
            match = _PART_OF_FOLDER.match(folder)
            if match:
                return _PARTS[match.group(1).lower()]
        return None

    def _find(self) -> list[Path]:
        wanted: Callable[[Path], object] = _text_folders
        lacks = "np_data or vp_data folder with .z files"
        if self.text == "transcripts":
            wanted, lacks = lambda path: path.suffix.lower() in (".dot", ".lsn"), "*.dot or *.lsn"
        lacks += "; copy the discs' folders there as they are"
        paths = found_files(self.source, wanted, put="the discs' folders wsj0 and wsj1", lacks=lacks)
        if len(set().union(*map(_text_folders, paths))) > 1:
            raise CorpusError(
                f"source {self.source!r} holds np_data and vp_data, the same text twice; name the folder of one"
            )
        # An utterance has a detailed transcript (.dot) and one in capitals (.lsn): the first is enough.
        detailed = {path.stem for path in paths if path.suffix.lower() == ".dot"}
        return [path for path in paths if path.suffix.lower() != ".lsn" or path.stem not in detailed]


def _text_folders(path: Path) -> set[str]:
    return {"np_data", "vp_data"}.intersection(map(str.lower, path.parts))


def _articles(path: Path) -> Iterator[Document]:
    texts: list[str] = []
    for line in read_compressed_lines(path):
        if _ARTICLE.match(line.strip()) and texts:
            yield Document(texts)
            texts = []
        text = _with_marks(_TAG.sub(" ", line))
        if text:
            texts.append(text)
    if texts:
        yield Document(texts)


def _session(path: Path, part: Part | None) -> Document:
    texts: list[str] = []
    left_out: Counter[str] = Counter()
    for number, line in enumerate(read_compressed_lines(path), start=1):
        if not line.strip():
            continue
        utterance = transcribed_utterance(line)
        if utterance is None:
            raise CorpusError(
                f"{str(path)!r}: line {number} is no utterance; a line of a transcript is 'TEXT (UTTERANCE-ID)'"
            )
        text = _with_marks(utterance[0])
        if text:
            texts.append(text)
        else:
            left_out["no_speech"] += 1
    return Document(texts, part, left_out=left_out)


def transcribed_utterance(line: str) -> tuple[str, str] | None:
    """The words and the id of a transcript line, without the transcribers' marks.

    Verbalised punctuation (``,COMMA``) stays, since it was spoken. ``None`` if the line is no utterance.
    """
    match = _UTTERANCE.fullmatch(line)
    return (_without_transcribers_marks(match.group(1)), match.group(2)) if match else None


def _without_transcribers_marks(text: str) -> str:
    words = (word.replace("\\", "").replace("*", "") for word in _SOUND.sub(" ", text).split())
    return " ".join(word.strip("<>") for word in words if word not in ("~", "."))


def _with_marks(text: str) -> str:
    """The text with verbalised punctuation as marks, and no space before closing marks."""
    words = []
    for word in text.split():
        match = _VERBALISED.fullmatch(word)
        name = match.group(2).lower() if match else ""
        if match and name in _SPOKEN_AS_WORDS:
            words.append("and" if name == "ampersand" else match.group(2))
        elif match and name in _MARK_NAMES:
            if match.group(1) in (",", ".", ";", ":", "?", "!", ")", "}") and words:
                words[-1] += match.group(1)
            else:
                words.append(match.group(1))
        else:
            words.append(word)
    return " ".join(words)
