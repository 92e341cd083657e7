"""Write params.yaml for a profile: other sizes, models and corpora, with the same code and graph.

Profiles are files in profiles/. A section that a profile names replaces that section of
params.yaml. In the sections 'compare' and 'speech', only the keys that the profile names are
replaced. All other sections stay. cells.yaml is written too.

Use a clone for a large experiment, as in the example. The results of the default then remain.

'git checkout params.yaml' restores the default. DVC's cache still has its results.

Example:
  git clone . ../palimpsest-paper && cd ../palimpsest-paper
  palimpsest doctor --profile paper      lists everything that is missing, and how to get it
  palimpsest profile paper               writes params.yaml and cells.yaml
  palimpsest plan                        lists the stages that will run
"""

import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, Parameters, parameters_of
from tasks.spelling import nearest

DEFAULT_PROFILE = "default"
FOLDER = "profiles"

_SECTION = re.compile(r"^([A-Za-z_]\w*):", re.MULTILINE)
_KEY = re.compile(r"^  (\w+):", re.MULTILINE)


def profile_names(root: str | Path = ".") -> list[str]:
    """The names of the profiles; the default is ``params.yaml`` itself."""
    return [DEFAULT_PROFILE, *sorted(path.stem for path in (Path(root) / FOLDER).glob("*.yaml"))]


def profile_text(name: str, root: str | Path = ".") -> str:
    """The text of ``params.yaml`` with a profile, with comments; ``ParameterError`` if unknown."""
    root = Path(root)
    base_path = root / DEFAULT_PATH
    if not base_path.is_file():
        raise ParameterError(f"{str(base_path)!r} does not exist; run in the project's folder")
    base = base_path.read_text(encoding="utf-8")
    if name == DEFAULT_PROFILE:
        return base
    path = root / FOLDER / f"{name}.yaml"
    if not path.is_file():
        names = profile_names(root)
        raise ParameterError(f"there is no profile {name!r}{nearest(name, names)}; there are: {', '.join(names)}")
    replacing = _pieces(path.read_text(encoding="utf-8"), _SECTION)[1]
    if not replacing:
        raise ParameterError(f"{str(path)!r} names no section, such as 'compare:'")
    unknown = sorted(set(replacing) - set(Parameters.model_fields))
    if unknown:
        known = sorted(Parameters.model_fields)
        raise ParameterError(
            f"{str(path)!r}: unknown section {unknown[0]!r}{nearest(unknown[0], known)}; allowed: {', '.join(known)}"
        )
    introduction = (
        f"# Profile {name}: params.yaml with the sections of {FOLDER}/{name}.yaml in place of its own.\n"
        "# Every key is explained in tasks/*/*settings.py; an unknown key is an error.\n\n"
    )
    return introduction + with_sections(base, path.read_text(encoding="utf-8"), by_key=("compare", "speech"))


def with_sections(base: str, replacing: str, by_key: Collection[str]) -> str:
    """The sections of a ``params.yaml`` replaced by those of another text, and followed by new ones.

    Of sections in ``by_key`` single keys are replaced. Comments belong to the text after them.
    """
    sections, others = _pieces(base, _SECTION)[1], _pieces(replacing, _SECTION)[1]
    for name in set(by_key) & set(sections) & set(others):
        head, keys = _pieces(sections[name], _KEY)
        others[name] = head + "".join((keys | _pieces(others[name], _KEY)[1]).values())
    return "\n".join(text.rstrip("\n") + "\n" for text in (sections | others).values())


def read_profile(name: str, root: str | Path = ".") -> Parameters:
    """The whole tree of a profile, checked like ``params.yaml``; writes nothing."""
    return parameters_of(profile_text(name, root), f"profile {name!r}")


def refuse_lost_changes(path: Path, remedy: str) -> None:
    """Raise ``ParameterError`` if a file to be overwritten has changes that git could not restore."""
    if path.exists() and _git_lacks(path):
        raise ParameterError(f"{path.name!r} has changes that git has not got, and they would be lost; {remedy}")


def _git_lacks(path: Path) -> bool:
    try:
        status = subprocess.run(
            ["git", "status", "--porcelain", "--", path.name],
            cwd=path.resolve().parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return True
    # 'A ': as 'palimpsest new' has added it.
    return status.returncode != 0 or status.stdout[:2] not in ("", "A ")


def _pieces(text: str, key: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    """The text before the first key, and for each key its lines with the comments above it."""
    starts = []
    for match in key.finditer(text):
        start = match.start()
        while start:
            line = text.rfind("\n", 0, start - 1) + 1
            if not text[line:start].lstrip(" ").startswith("#"):
                break
            start = line
        starts.append((match.group(1), start))
    ends = [*(start for _, start in starts[1:]), len(text)]
    pieces = {name: text[start:end] for (name, start), end in zip(starts, ends, strict=False)}
    return text[: starts[0][1]] if starts else text, pieces


SUMMARY = "write params.yaml for a profile, such as the paper's sizes and corpora"


class ProfileOptions(Options):
    """Options of the command: the profile."""

    name: Annotated[str | None, Argument(positional=True)] = None
    """the profile; without a name, the profiles are listed"""
    force: bool = False
    """replace params.yaml even if it has changes that git does not have"""


def run(options: ProfileOptions) -> None:
    """Write the parameters after the check."""
    from tasks.corpora.text_lines import line_writer
    from tasks.parameters.cells_file import write_cells

    if options.name is None:
        for name in profile_names():
            print(name)
        return
    if options.name == DEFAULT_PROFILE:
        raise ParameterError("the default profile is params.yaml as it was shipped: 'git checkout params.yaml'")
    parameters = read_profile(options.name)
    text = profile_text(options.name)
    if not options.force:
        refuse_lost_changes(Path(DEFAULT_PATH), "commit them, or give --force")
    with line_writer(DEFAULT_PATH) as stream:
        stream.write(text)
    write_cells(parameters, Path())
    print(f"{DEFAULT_PATH}: profile {options.name}; 'palimpsest plan' says what would run", file=sys.stderr)


COMMAND = Command(ProfileOptions, run)
