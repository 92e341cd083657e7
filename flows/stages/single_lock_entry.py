"""The entries of ``dvc.lock`` as text: one stage's is read or replaced without parsing those of the others.

DVC 3.67 parses the whole file before a stage, and parses and writes it whole after it, so a stage costs the more the
larger the graph is. What DVC writes has one form: a line for each stage, indented by two, and deeper lines below it.
Only text of that form is handled here; any other (a person's comments, a merge, anchors, data sets) is left to DVC.

Imports nothing of this project: the supervisor loads it by its path.
"""

import os
import re
from collections.abc import Callable
from typing import Any

HEAD = "schema: '2.0'\nstages:\n"
"""How DVC's lock file begins."""
_ENTRY = re.compile(r"^  (?! )(.*)$", re.MULTILINE)
_KEY = re.compile(r"[A-Za-z0-9_][^\s:#'\"]*:")
_NOT_INDENTED = re.compile(r"^(?!  |\Z)(?=.)", re.MULTILINE)


def spans(text: str) -> dict[str, tuple[int, int]] | None:
    """Where the entry of each stage begins and ends, in their order; ``None`` where DVC did not write it like this."""
    if not text.startswith(HEAD) or not text.endswith("\n") or "&id" in text or "*id" in text:
        return None
    if _NOT_INDENTED.search(text, len(HEAD)):
        return None
    starts = list(_ENTRY.finditer(text, len(HEAD)))
    if not starts or starts[0].start() != len(HEAD) or not all(_KEY.fullmatch(start[1]) for start in starts):
        return None
    ends = [*(start.start() for start in starts[1:]), len(text)]
    found = {start[1][:-1]: (start.start(), end) for start, end in zip(starts, ends, strict=True)}
    return found if len(found) == len(starts) else None


def only(text: str, name: str) -> str | None:
    """The file as it would be with the entry of one stage alone, or with none where it has no entry."""
    found = spans(text)
    if found is None:
        return None
    start, end = found.get(name, (0, 0))
    return HEAD + text[start:end] if end else HEAD.replace("stages:", "stages: {}")


def replaced(text: str, name: str, entry: str) -> str | None:
    """The file with another entry of one stage; a new one comes last, as DVC has it."""
    found, made = spans(text), spans(HEAD + entry)
    if found is None or made is None or list(made) != [name]:
        return None
    start, end = found.get(name, (len(text), len(text)))
    return text[:start] + entry + text[end:]


def use_entries(name: str, write: Callable[[str, str], None]) -> None:
    """From now on DVC's lock file is read and written by the entry of this one stage, in this process.

    ``write`` puts a text in the place of a file.
    """
    from dvc.dvcfile import Lockfile
    from dvc.stage import serialize
    from dvc.utils.serialize import dumps_yaml, parse_yaml

    load_whole, dump_whole = Lockfile._load_yaml, Lockfile.dump_stages

    def load(self: Any, **options: Any) -> tuple[Any, str]:
        part = only(_read(self.path), name) if not options else None
        if part is None:
            return load_whole(self, **options)
        return self.validate(parse_yaml(part, self.path), self.relpath), part

    def dump(self: Any, stages: Any, **options: Any) -> None:
        text = _read(self.path) if len(stages) == 1 and stages[0].name == name else ""
        entry = dumps_yaml({"stages": serialize.to_lockfile(stages[0], **options)}) if text else ""
        made = replaced(text, name, entry.removeprefix("stages:\n"))
        if made is None:
            dump_whole(self, stages, **options)
        elif made != text:
            write(self.path, made)
            self.repo.scm_context.track_file(self.relpath)

    Lockfile._load_yaml, Lockfile.dump_stages = load, dump


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", newline="") as stream:
        return stream.read()
