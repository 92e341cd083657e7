"""One stage's entry of ``dvc.lock``, replaced as text.

DVC 3.67 parses and writes the whole file after each stage by a slow library: 2.1 s of processor time at 5,700 lines,
against some hundredths here. It also truncates the file first, so a kill could lose the record of every stage. DVC's
output has one form. Any other (a person's comments, a merge, anchors) is left to DVC.
"""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dvc.stage import Stage

HEAD = "schema: '2.0'\nstages:\n"
"""First lines of DVC's lock file."""
_BELOW = r":\n(?:(?:    .*)?\n)+"
_FORM = re.compile(rf"{re.escape(HEAD)}(?:  [A-Za-z0-9_][^\s:#'\"]*{_BELOW})*")


def replaced(text: str, name: str, entry: str) -> str | None:
    """The file with another entry of one stage, a new one at the end; ``None`` if it is not in DVC's form."""
    own = re.compile(f"^  {re.escape(name)}{_BELOW}", re.MULTILINE)
    if "&id" in text or not _FORM.fullmatch(text) or not own.fullmatch(entry):
        return None
    found = own.search(text, len(HEAD))
    start, end = found.span() if found else (len(text), len(text))
    return text[:start] + entry + text[end:]


def write_one_entry(name: str) -> None:
    """Make DVC in this process write the entry of this stage alone, and put ``dvc.lock`` in place as a whole."""
    from dvc.dvcfile import Lockfile
    from dvc.stage import serialize
    from dvc.utils.serialize import dumps_yaml

    dump_whole = Lockfile.dump_stages

    def dump(self: Lockfile, stages: "Sequence[Stage]", **options: object) -> None:
        text, made = HEAD, None
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8", newline="") as stream:
                text = stream.read()
        if len(stages) == 1 and stages[0].name == name:
            entry = dumps_yaml({"stages": serialize.to_lockfile(stages[0], **options)}).removeprefix("stages:\n")
            made = replaced(text, name, entry)
        if made is None:
            dump_whole(self, stages, **options)
        elif made != text:
            partial = f"{self.path}.partial"
            with open(partial, "w", encoding="utf-8") as stream:
                stream.write(made)
            os.chmod(partial, os.stat(self.path).st_mode & 0o777 if os.path.exists(self.path) else 0o644)
            os.replace(partial, self.path)
            self.repo.scm_context.track_file(self.relpath)

    Lockfile.dump_stages = dump
