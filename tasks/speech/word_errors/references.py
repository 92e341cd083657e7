"""What was said and what was recognised, by utterance id, from the files that hold it.

References stand in a manifest (``text``) or in n-best lists (``reference``); hypotheses in JSON lines with ``text``, or
in n-best lists, where the one with the highest score counts. Plain or compressed. The audio files of a manifest are not
looked for: error rates need none.
"""

from pathlib import Path

from tasks.errors import SpeechError
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.word_errors.json_lines import fail_with_problems, read_json_lines


def read_references(path: str | Path) -> dict[str, str]:
    """References by utterance id, in the file's order.

    Raises ``SpeechError`` that lists what is wrong: lines that are no JSON objects, missing keys, ids that stand twice.
    """
    return _read(path, ("text", "reference"), "references")


def read_hypotheses(path: str | Path) -> dict[str, str]:
    """Hypotheses by utterance id; an utterance with an empty n-best list has none, and so counts as missing.

    Raises ``SpeechError`` as ``read_references`` does.
    """
    first = next((record for _, record in read_json_lines(path)), None)
    if first is not None and "hypotheses" in first:
        return {nbest.utterance_id: nbest.best.text for nbest in read_nbest(path) if nbest.hypotheses}
    return _read(path, ("text",), "hypotheses")


def _read(path: str | Path, keys: tuple[str, ...], what: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    problems: list[str] = []
    for number, record in read_json_lines(path):
        if record is None:
            problems.append(f"line {number} is no JSON object")
            continue
        name = record.get("utterance_id")
        text = next((record[key] for key in keys if key in record), None)
        if not isinstance(name, str) or not name:
            problems.append(f"line {number} has no 'utterance_id'")
        elif not isinstance(text, str):
            problems.append(f"line {number} has no {' or '.join(map(repr, keys))} of text")
        elif name in texts:
            problems.append(f"line {number}: utterance_id {name!r} stands twice")
        else:
            texts[name] = text
    fail_with_problems(path, problems)
    if not texts:
        raise SpeechError(f"{str(path)!r} holds no {what}; give a file of JSON lines")
    return texts
