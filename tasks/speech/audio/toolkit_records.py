"""Transcripts and n-best lists as other toolkits write them, as records of this project's JSON lines.

| form | by |
|---|---|
| JSON lines or an array, with usual names of keys | NeMo, Hugging Face and others |
| a folder with ``1best_recog/text`` and ``1best_recog/score``, ``2best_recog`` and so on | ESPnet |
| a file ``UTTERANCE.json`` with ``text`` and ``segments`` | Whisper (a transcript) |
| a folder with ``text`` or ``words_text``, ids ``UTTERANCE-N``, and files of costs | Kaldi |
| a text with ``UTTERANCE WORDS`` or ``WORDS (UTTERANCE)`` | Kaldi, sclite |

A record has ``utterance_id``, and ``text``, ``reference`` or ``hypotheses``. Costs become scores by their sign.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import CorpusError, SpeechError
from tasks.speech.audio.utterance_lines import Numbered, named_lines, read_json_lines

_IDS = ("utterance_id", "utt_id", "uttid", "utt", "id", "key")
_FILES = ("audio_filepath", "audio", "file")
_LISTS = ("hypotheses", "nbest", "n_best", "n-best", "hyps", "beams", "alternatives", "predictions")
_TEXTS = ("text", "transcript", "hypothesis", "hyp", "sentence", "pred_text")
_SCORES = ("score", "total_score", "log_prob", "logprob", "log_probability", "am_score", "acoustic_score")
_REFERENCES = ("reference", "ref", "text", "transcript")
_COSTS = ("ac_cost", "lm_cost", "acwt", "lmwt")
"""Files of costs in a folder of Kaldi; a hypothesis has the sum of all that are there."""
_NUMBERED = re.compile(r"(.+)-\d+$")
_TRN = re.compile(r"(.*)\(([^()\s]+)\)\s*")
_TENSOR = re.compile(r"tensor\(([^,)]+).*\)")


def toolkit_records(path: str | Path, what: str = "file", *, nbest: bool = False) -> Numbered:
    """Number and record of each utterance; for a line that cannot be read, the reason instead.

    ``nbest``: the records are lists, so a text is not read. Raises ``SpeechError`` if the file is missing or damaged,
    or if a folder is of no known form; ``what`` names it.
    """
    path = Path(path)
    if path.is_dir():
        yield from enumerate(_in_folder(path), start=1)
        return
    try:
        first = next(filter(None, map(str.strip, read_compressed_lines(path))), "")
    except CorpusError as error:
        raise SpeechError(str(error).replace("text file", what)) from None
    if first[:1] in ("{", "["):
        yield from _of_json(path, first, what)
    elif nbest or not first:
        yield from read_json_lines(path, what)
    elif _TRN.fullmatch(first):
        for number, line in enumerate(read_compressed_lines(path), start=1):
            if found := _TRN.fullmatch(line):
                yield number, {"utterance_id": found.group(2), "text": found.group(1).strip()}
            elif line.strip():
                yield number, "is not 'WORDS (UTTERANCE)'"
    else:
        lines = named_lines(path, "UTTERANCE WORDS", empty=True)
        yield from enumerate(({"utterance_id": name, "text": words} for name, words in lines), start=1)


def _of_json(path: Path, first: str, what: str) -> Numbered:
    """The utterances of JSON lines, or of a file that is one array or one object."""
    if first.startswith("[") or first == "{":
        with suppress(ValueError, RecursionError):
            whole = json.loads("\n".join(read_compressed_lines(path)))
            values = whole if isinstance(whole, list) else [whole]
            yield from enumerate((_renamed(value, path) for value in values), start=1)
            return
    for number, value in read_json_lines(path, what):
        yield number, value if isinstance(value, str) else _renamed(value, path)


def _first(record: Mapping[str, Any], keys: Iterable[str], kind: type = object) -> Any:  # noqa: ANN401 - JSON
    """The value of the first of these keys that the record has with a value of this type; else ``None``."""
    return next((record[key] for key in keys if key in record and isinstance(record[key], kind)), None)


def _renamed(record: Any, path: Path) -> dict[str, Any] | str:  # noqa: ANN401 - what JSON can hold
    """A record with this project's keys; others stay."""
    if not isinstance(record, dict):
        return f"is no JSON object but {type(record).__name__}"
    names = [record[key] for key in _IDS if isinstance(record.get(key), str | int)]
    names += [Path(record[key]).stem for key in _FILES if isinstance(record.get(key), str)]
    if isinstance(record.get("segments"), list):
        names.append(path.stem)  # Whisper writes one file for each recording.
    found = {**({"utterance_id": str(names[0])} if names else {}), **record}
    entries = _first(record, _LISTS, list)
    if entries is not None:
        scores = [*(_first(record, ("scores", "logprobs"), list) or []), *[None] * len(entries)]
        found["hypotheses"] = [_hypothesis(*pair) for pair in zip(entries, scores, strict=False)]
        if (reference := _first(record, _REFERENCES)) is not None:
            found["reference"] = reference
    return found


def _hypothesis(entry: Any, score: Any) -> Any:  # noqa: ANN401 - what JSON can hold
    """A hypothesis with ``text`` and ``score``, as far as it has them."""
    if isinstance(entry, str):
        return {"text": entry, "score": score}
    if not isinstance(entry, dict):
        return entry
    return {"text": _first(entry, _TEXTS), "score": next((entry[key] for key in _SCORES if key in entry), score)}


def _in_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """The lists of a folder of ESPnet or Kaldi."""
    best = sorted(folder.rglob("*best_recog"), key=lambda one: (one.parent, int(re.sub(r"\D", "", one.name) or 0)))
    text = next((folder / name for name in ("text", "words_text") if (folder / name).is_file()), None)
    costs = [folder / name for name in _COSTS if (folder / name).is_file()]
    lists: dict[str, list[Mapping[str, Any]]] = {}
    if best:
        scored = (each for one in best for each in _scored(one / "text", [one / "score"], 1))
    elif text and costs:
        costly = _scored(text, costs, -1)
        scored = ((_NUMBERED.sub(r"\1", name), words, score) for name, words, score in costly)
    else:
        raise SpeechError(
            f"folder {str(folder)!r} has no n-best lists. Give one with '1best_recog' (ESPnet), or with 'text' and "
            f"costs of its hypotheses (Kaldi's 'nbest-to-linear' writes them): {', '.join(_COSTS)}"
        )
    for name, words, score in scored:
        lists.setdefault(name, []).append({"text": words, "score": score})
    yield from ({"utterance_id": name, "hypotheses": entries} for name, entries in lists.items())


def _scored(text: Path, files: Iterable[Path], sign: int) -> Iterator[tuple[str, str, float]]:
    """Id, words and score of each line of a text; the score is the sum over the files, times a sign."""
    sums: dict[str, float] = {}
    for file in files:
        for name, value in named_lines(file, "UTTERANCE NUMBER"):
            found = _TENSOR.fullmatch(value)
            try:
                sums[name] = sums.get(name, 0.0) + sign * float(found.group(1) if found else value)
            except ValueError:
                raise SpeechError(f"{str(file)!r}: the score of {name!r} is no number. Write the file again") from None
    for name, words in named_lines(text, "UTTERANCE WORDS", empty=True):
        if name not in sums:
            raise SpeechError(f"{str(text)!r}: {name!r} has no score in the files next to it. Write them again")
        yield name, words, sums[name]
