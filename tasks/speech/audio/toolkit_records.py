"""Transcripts and n-best lists as other toolkits write them, as records of this project's JSON lines.

| form | by |
|---|---|
| JSON lines, an array, or an object with ``utts``; usual names of keys | NeMo, ESPnet, Whisper, Hugging Face |
| a folder with ``1best_recog/text`` and ``1best_recog/score``, ``2best_recog`` and so on | ESPnet |
| a folder with ``text`` or ``words_text``, ids ``UTTERANCE-N``, and files of costs | Kaldi |
| a text with ``UTTERANCE WORDS``, ``WORDS (UTTERANCE)`` or the words of CTM | Kaldi, sclite |

A record has ``utterance_id``, and ``text``, ``reference`` or ``hypotheses``. Costs become scores by their sign, and
probabilities (``confidence``) by their logarithm.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.corpora.text_lines import finite_number
from tasks.errors import CorpusError, SpeechError
from tasks.speech.audio.utterance_lines import Numbered, named_lines, read_json_lines

_IDS = ("utterance_id", "utt_id", "uttid", "utt", "id", "key")
_FILES = ("audio_filepath", "audio", "file")
_LISTS = ("hypotheses", "nbest", "n_best", "n-best", "hyps", "beams", "alternatives", "predictions", "output")
_TEXTS = ("text", "transcript", "hypothesis", "hyp", "sentence", "pred_text", "rec_text")
_SCORES = ("score", "total_score", "log_prob", "logprob", "log_probability", "am_score", "acoustic_score")
_PROBABILITIES = ("confidence", "probability")
_REFERENCES = ("reference", "ref", "text", "transcript")
_COSTS = ("ac_cost", "lm_cost", "acwt", "lmwt")
"""Files of costs in a folder of Kaldi; a hypothesis has the sum of all that are there."""
_NUMBERED = re.compile(r"(.+)-\d+$")
_TRN = re.compile(r"(.*)\(([^()\s]+)\)\s*")
_CTM = re.compile(r"(\S+)\s+\S+\s+[\d.]+\s+[\d.]+\s+(\S+)(?:\s+[\d.]+)?\s*")
_COMMENT = ";;"
_TENSOR = re.compile(r"tensor\(([^,)]+).*\)")


def toolkit_records(path: str | Path, what: str = "file", *, nbest: bool = False) -> Numbered:
    """Number and record of each utterance; for a line that cannot be read, the reason instead.

    ``nbest``: a text of Kaldi is read with the costs in its folder. Raises ``SpeechError`` if the file is missing or
    damaged, or if a folder is of no known form; ``what`` names it.
    """
    path = Path(path)
    first = "" if path.is_dir() else _first_line(path, what)
    if path.is_dir():
        yield from enumerate(_in_folder(path), start=1)
    elif first[:1] in ("{", "["):
        yield from _of_json(path, first, what)
    elif nbest and _costs(path.parent):
        yield from enumerate(_of_kaldi(path), start=1)
    elif _TRN.fullmatch(first):
        for number, line in enumerate(read_compressed_lines(path), start=1):
            if found := _TRN.fullmatch(line):
                yield number, {"utterance_id": found.group(2), "text": found.group(1).strip()}
            elif line.strip():
                yield number, "is not 'WORDS (UTTERANCE)'"
    elif _CTM.fullmatch(first):
        yield from enumerate(_of_ctm(path), start=1)
    elif first and not nbest:
        lines = named_lines(path, "UTTERANCE WORDS", empty=True)
        yield from enumerate(({"utterance_id": name, "text": words} for name, words in lines), start=1)
    else:
        yield from read_json_lines(path, what)


def _first_line(path: Path, what: str) -> str:
    try:
        lines = map(str.strip, read_compressed_lines(path))
        return next((line for line in lines if line and not line.startswith(_COMMENT)), "")
    except CorpusError as error:
        raise SpeechError(str(error).replace("text file", what)) from None


def _of_json(path: Path, first: str, what: str) -> Numbered:
    """The utterances of JSON lines, or of the value of a whole file: an array, or ``{"utts": {ID: ...}}``."""
    values: Iterable[tuple[int, Any]] = read_json_lines(path, what)
    if not _is_object(first):
        with suppress(ValueError, RecursionError):
            values = [(1, json.loads("\n".join(read_compressed_lines(path))))]
    for number, value in values:
        if isinstance(value, str):  # why the line cannot be read
            yield number, value
            continue
        if isinstance(value, dict) and isinstance(value.get("utts"), dict):
            value = [{"utterance_id": name, **one} for name, one in value["utts"].items() if isinstance(one, dict)]
        records = value if isinstance(value, list) else [value]
        yield from enumerate((_renamed(record, path) for record in records), start=number)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _first(record: Mapping[str, Any], keys: Iterable[str], kind: type = object) -> Any:  # noqa: ANN401 - JSON
    """The value of the first of these keys that the record has with a value of this type; else ``None``."""
    return next((record[key] for key in keys if key in record and isinstance(record[key], kind)), None)


def _renamed(record: Any, path: Path) -> dict[str, Any] | str:  # noqa: ANN401 - what JSON can hold
    """A record with this project's keys; others stay."""
    if not isinstance(record, dict):
        return f"is no JSON object but {type(record).__name__}"
    names = [record[key] for key in _IDS if isinstance(record.get(key), str | int)]
    names += [Path(record[key]).stem for key in _FILES if isinstance(record.get(key), str)]
    if not names and isinstance(record.get("segments"), list):
        names = [path.stem]  # Whisper writes one file for each recording.
    found = {**({"utterance_id": str(names[0])} if names else {}), **record}
    entries = _first(record, _LISTS, list)
    if entries is not None:
        scores = [*(_first(record, ("scores", "logprobs"), list) or []), *[None] * len(entries)]
        found["hypotheses"] = [_hypothesis(*pair) for pair in zip(entries, scores, strict=False)]
        reference = _first(record, _REFERENCES)
        if reference is None and entries and isinstance(entries[0], dict) and "rec_text" in entries[0]:
            reference = entries[0].get("text")
        if reference is not None:
            found["reference"] = reference
    return found


def _hypothesis(entry: Any, score: Any) -> Any:  # noqa: ANN401 - what JSON can hold
    """A hypothesis with ``text`` and ``score``, as far as it has them."""
    if isinstance(entry, str):
        return {"text": entry, "score": score}
    if isinstance(entry, list) and len(entry) == 2:
        return {"text": entry[0], "score": entry[1]}
    if not isinstance(entry, dict):
        return entry
    of_espnet = "rec_text" in entry
    found = next((entry[key] for key in _SCORES if key in entry), score)
    if isinstance(found, str) and of_espnet:
        found = _number(found)
    if found is None:
        share = finite_number(_first(entry, _PROBABILITIES))
        found = math.log(share) if share is not None and 0 < share <= 1 else None
    return {"text": entry["rec_text"] if of_espnet else _first(entry, _TEXTS), "score": found}


def _in_folder(folder: Path) -> Iterator[dict[str, Any]]:
    best = sorted(folder.rglob("*best_recog"), key=lambda one: (one.parent, int(re.sub(r"\D", "", one.name) or 0)))
    text = next((folder / name for name in ("text", "words_text") if (folder / name).is_file()), None)
    if best:
        yield from _lists(each for one in best for each in _scored(one / "text", [one / "score"], 1))
    elif text:
        yield from _of_kaldi(text)
    else:
        raise SpeechError(f"folder {str(folder)!r} has neither '1best_recog' (ESPnet) nor 'text' (Kaldi). Give another")


def _costs(folder: Path) -> list[Path]:
    return [folder / name for name in _COSTS if (folder / name).is_file()]


def _of_kaldi(text: Path) -> Iterator[dict[str, Any]]:
    costs = _costs(text.parent)
    if not costs:
        raise SpeechError(
            f"folder {str(text.parent)!r} has no costs of the hypotheses. Write one of these files, as "
            f"'nbest-to-linear' does: {', '.join(_COSTS)}"
        )
    scored = _scored(text, costs, -1)
    yield from _lists((_NUMBERED.sub(r"\1", name), words, score) for name, words, score in scored)


def _scored(text: Path, files: Iterable[Path], sign: int) -> Iterator[tuple[str, str, float]]:
    """Id, words and score of each line of a text; the score is the sum over the files, times a sign."""
    sums: dict[str, float] = {}
    for file in files:
        for name, value in named_lines(file, "UTTERANCE NUMBER"):
            number = _number(value)
            if number is None:
                raise SpeechError(f"{str(file)!r}: the score of {name!r} is no number. Write the file again")
            sums[name] = sums.get(name, 0.0) + sign * number
    for name, words in named_lines(text, "UTTERANCE WORDS", empty=True):
        if name not in sums:
            raise SpeechError(f"{str(text)!r}: {name!r} has no score in the files next to it. Write them again")
        yield name, words, sums[name]


def _number(text: str) -> float | None:
    found = _TENSOR.fullmatch(text.strip())
    try:
        return finite_number(float(found.group(1) if found else text))
    except ValueError:
        return None


def _lists(hypotheses: Iterable[tuple[str, str, float]]) -> Iterator[dict[str, Any]]:
    by_utterance: dict[str, list[Mapping[str, Any]]] = {}
    for name, words, score in hypotheses:
        by_utterance.setdefault(name, []).append({"text": words, "score": score})
    yield from ({"utterance_id": name, "hypotheses": entries} for name, entries in by_utterance.items())


def _of_ctm(path: Path) -> Iterator[dict[str, Any] | str]:
    words: dict[str, list[str]] = {}
    for line in read_compressed_lines(path):
        if found := _CTM.fullmatch(line):
            words.setdefault(found.group(1), []).append(found.group(2))
        elif line.strip() and not line.startswith(_COMMENT):
            yield "is not 'UTTERANCE CHANNEL START LENGTH WORD'"
    yield from ({"utterance_id": name, "text": " ".join(said)} for name, said in words.items())
