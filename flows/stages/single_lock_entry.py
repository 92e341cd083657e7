"""The entries of ``dvc.lock`` as text: one stage's is replaced without parsing the others.

DVC 3.67 parses and rewrites the whole file after each stage, so a stage costs more in a larger graph. It also truncates
the file before it fills it, so a kill in between would lose the record of every stage. DVC's output has one form: a
line for each stage, indented by two, and deeper lines below it. Only text of that form is handled here; any other (a
person's comments, a merge, anchors, data sets) is left to DVC.

Imports nothing of this project: the supervisor loads it by its path.
"""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dvc.stage import Stage

HEAD = "schema: '2.0'\nstages:\n"
"""First lines of DVC's lock file."""
PARTIAL = ".partial"
"""Ending of a lock file that is being written."""
_ENTRY = re.compile(r"^  (?! )(.*)$", re.MULTILINE)
_KEY = re.compile(r"[A-Za-z0-9_][^\s:#'\"]*:")
_NOT_INDENTED = re.compile(r"^(?!  |\Z)(?=.)", re.MULTILINE)


def spans(text: str) -> dict[str, tuple[int, int]] | None:
    """Begin and end of each stage's entry, in their order; ``None`` if the text is not in DVC's form."""
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


def replaced(text: str, name: str, entry: str) -> str | None:
    """The file with another entry of one stage; a new one comes last, as in DVC."""
    found, made = spans(text), spans(HEAD + entry)
    if found is None or made is None or list(made) != [name]:
        return None
    start, end = found.get(name, (len(text), len(text)))
    return text[:start] + entry + text[end:]


def use_entries(name: str) -> None:
    """Make DVC in this process write its lock file by the entry of this stage, and replace it atomically."""
    from dvc.dvcfile import Lockfile
    from dvc.stage import serialize
    from dvc.utils.serialize import dumps_yaml

    dump_whole = Lockfile.dump_stages

    def dump(self: Lockfile, stages: "Sequence[Stage]", **options: object) -> None:
        text, made = _read(self.path), None
        if len(stages) == 1 and stages[0].name == name:
            entry = dumps_yaml({"stages": serialize.to_lockfile(stages[0], **options)}).removeprefix("stages:\n")
            made = replaced(text, name, entry) if text else HEAD + entry
        if made is None:
            dump_whole(self, stages, **options)
        elif made != text:
            write_whole(self.path, made)
            self.repo.scm_context.track_file(self.relpath)

    Lockfile.dump_stages = dump


def write_whole(target: str, text: str) -> None:
    """Replace a file by a text atomically: a reader sees the old one or the new one."""
    partial = target + PARTIAL
    with open(partial, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(partial, os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o644)
    os.replace(partial, target)


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", newline="") as stream:
        return stream.read()
