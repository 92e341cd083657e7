"""Start an experiment on your own text: read it, put it under DVC, and write params.yaml for it.

FILE is plain text, mail, CSV, Excel, JSON, Parquet, an exported chat, subtitles, Word, PDF, HTML or
Markdown. It can be a folder or an archive of such files, or the URL of a database, with --query.
The page docs/how-to/own-text.md lists all forms.
If it is not in data/raw, it is copied there, readable by you alone. DVC never pushes it. The
command adds the corpus to params.yaml, and makes it the corpus that is compared. All other settings
remain.

examples:
    palimpsest init mail ~/mail.txt
    palimpsest init tickets ~/tickets.xlsx --text-field description
    palimpsest run
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tasks.corpora.own_text import OwnTextOptions, said_of
from tasks.errors import CorpusError, ParameterError
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.options import Argument, Command

if TYPE_CHECKING:
    from tasks.corpora.division import DivisionTally
    from tasks.corpora.languages import Languages
    from tasks.corpora.sources.text_files import FilesCorpus

SUMMARY = "start an experiment on your own text: read it, version it, write params.yaml"

_FEWEST_SENTENCES = 30
_FEW_SENTENCES = 2000
"""Number of sentences below which intervals are wide."""
_MOST_TRAINED = 20_000
"""Most training sentences, so that the experiment ends within an hour on two cores."""
_MINUTES, _MINUTES_A_THOUSAND = 6.0, 0.6
"""Minutes of the default comparison on two cores: fixed, and for each thousand training sentences."""


class InitOptions(OwnTextOptions):
    """Options of the command: the text, and its name."""

    name: Annotated[str, Argument(positional=True)]
    """name of the corpus in params.yaml and in tables: letters, digits and underscores"""
    text: Annotated[str, Argument(positional=True, metavar="FILE")]
    """your text: a file, a folder, or the URL of a database"""
    force: bool = False
    """replace a corpus of this name, and changes of params.yaml that git does not have"""


def run(options: InitOptions) -> None:
    """Read the text, add it to DVC, write the parameters."""
    from flows.add_command import add
    from flows.graph.graph import project_folder
    from tasks.corpora.sources.text_files import files_left_out
    from tasks.files.atomic_file import atomic_writer
    from tasks.parameters.cells_file import write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH, parameters_of
    from tasks.parameters.problems import problem_of_name
    from tasks.profiles.profile_command import refuse_lost_changes, with_sections

    for problem in problem_of_name(options.name):
        raise ParameterError(problem)
    root = project_folder()
    file = root / DEFAULT_PATH
    base = file.read_text(encoding="utf-8")
    before = _source_in(base, options.name)
    if not options.force:
        refuse_lost_changes(file, "commit them, or --force")
    with options.reader_of(options.text) as settings:
        given = Path(settings.source)
        ignored = settings.open().ignored
        tally, languages = _looked_at(settings)
        target = _target(root, options.name, given)
        settings = settings.model_copy(update={"source": target.relative_to(root).as_posix()})
        text = _INTRODUCTION + with_sections(
            base, _sections(options.name, settings, tally, languages), ("compare", "corpora", "masking")
        )
        parameters = parameters_of(text, f"init {options.name}")
        _copy(given, target, replace=options.force)
    add(root, [settings.source])
    with atomic_writer(file) as stream:
        stream.write(text)
    write_cells(parameters, root)
    print("\n".join(_said(options.name, settings, tally, languages)))
    if ignored:
        print(f"warning: {files_left_out(ignored)}")
    if before.startswith("data/raw/") and before != settings.source and (root / before).exists():
        print(
            f"warning: {before} is private, and {options.name} does not read it any more. Delete it and its .dvc file "
            f"unless something else needs it. DVC's copy stays until 'palimpsest forget {options.name}'"
        )


def _source_in(parameters: str, name: str) -> str:
    """The source of a corpus in the text of ``params.yaml``; empty without one, or if the text is not valid."""
    from tasks.parameters.parameter_file import DEFAULT_PATH, parameters_of

    with suppress(ParameterError):
        corpus = parameters_of(parameters, DEFAULT_PATH).corpora.get(name)
        return corpus.source if corpus else ""
    return ""


def _looked_at(settings: "FilesCorpus") -> "tuple[DivisionTally, Languages]":
    """The parts into which the corpus is divided, and its languages."""
    from tasks.corpora.division import DivisionTally, divided
    from tasks.corpora.languages import language_shares

    tally = DivisionTally()
    sentences = divided(settings.open(), settings.cleaning, tally, settings.source)
    languages = language_shares(sentence for *_, sentence in sentences)
    total = sum(tally.sentences.values())
    if total < _FEWEST_SENTENCES:
        raise CorpusError(
            f"{settings.source!r} has {total} different sentences; to compare anything takes {_FEWEST_SENTENCES} at "
            "the very least, and some thousands to compare methods"
        )
    return tally, languages


def _target(root: Path, name: str, given: Path) -> Path:
    """The path of the text in the checkout: unchanged in ``data/raw``, else under its new name there."""
    raw = root / "data" / "raw"
    if given.resolve().parent == raw.resolve():
        return raw / given.name
    return raw / (name if given.is_dir() else f"{name}{given.suffix}")


def _copy(given: Path, target: Path, *, replace: bool) -> None:
    from tasks.files.atomic_file import PRIVATE_FOLDER_MODE

    if given.resolve() == target.resolve():
        return
    if target.exists():
        if not replace:
            raise ParameterError(f"{str(target)!r} exists; give another NAME, or --force to replace it")
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    target.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    target.parent.chmod(PRIVATE_FOLDER_MODE)
    if given.is_dir():
        shutil.copytree(given, target)
    else:
        shutil.copyfile(given, target)


_INTRODUCTION = """\
# What is compared, and how. Every key is explained in tasks/*/*settings.py; an unknown key is an error.

"""


def _sections(name: str, settings: "FilesCorpus", tally: "DivisionTally", languages: "Languages") -> str:
    """The text that replaces keys of ``compare`` and ``corpora``."""
    import yaml

    values = settings.model_dump(exclude_defaults=True)
    values["cleaning"] = {"seed": settings.cleaning.seed}
    if tally.sentences["train"] > _MOST_TRAINED:
        values["cleaning"] = {"train_sentences": _MOST_TRAINED, **values["cleaning"]}
    entry = yaml.safe_dump({name: values}, default_flow_style=None, sort_keys=False, width=110)
    indented = "".join(f"  {line}\n" for line in entry.splitlines())
    techniques = ", ".join(_techniques(languages))
    return f"""\
compare:
  datasets: [{name}]
  techniques: [{techniques}]
  baselines: [baseline1]
  # Fills of the masked text, in the order of the tables. Larger fillers: profiles/ and docs/research/experiments.md.
  fills:
    - {{filler: minilm, methods: [top_k, log_linear], audited: [log_linear]}}
    - {{methods: [unigram, surrogate], audited: [surrogate]}}
  seeds: [1]
  # Without recordings there are no word error rates.
  speech_datasets: []
  recognisers: []
  rescored_datasets: []
  taggers: []
  detectors: [{techniques}]
  gold_sets: [templates]

corpora:
{indented}
masking:
  # The technique meant for a release. As the reference reader it also says what the others leave unmasked.
  {EVERY_TAGGER}: {{kind: {EVERY_TAGGER}}}
"""


def _techniques(languages: "Languages") -> list[str]:
    """A list, a tagger, and all taggers together, the technique meant for a release. If much of the text is not
    the English that the taggers know, they are left out."""
    from tasks.corpora.languages import MUCH_FOREIGN

    known = sum(languages.foreign(["en"]).values()) <= MUCH_FOREIGN
    return ["allow_list", *(["word_classifier", EVERY_TAGGER] if known else ["vocabulary_threshold"])]


def _said(name: str, settings: "FilesCorpus", tally: "DivisionTally", languages: "Languages") -> list[str]:
    from tasks.privacy.applied_text import whole_text

    total = sum(tally.sentences.values())
    parts = tally.sentences
    spoken = ", ".join(f"{share:.0%} {language}" for language, share in list(languages.languages.items())[:4])
    scripts = ", ".join(script.capitalize() for script, share in languages.scripts.items() if share >= 0.01)
    trained = min(parts["train"], _MOST_TRAINED)
    minutes = _MINUTES + _MINUTES_A_THOUSAND * trained / 1000
    lines = [
        f"{name}: {total:,} different sentences in {tally.documents:,} documents, {sum(tally.words.values()):,} words; "
        f"left out: {said_of(tally.left_out)}",
        f"language: {spoken or 'unknown'}; script: {scripts or 'none'}",
        f"parts: {trained:,} sentences to adapt on, {parts['valid']:,} to stop by, {parts['test']:,} to measure with",
    ]
    if trained < parts["train"]:
        lines.append(
            f"The run sees a sample: {trained + parts['valid'] + parts['test']:,} of {total:,} sentences "
            "(cleaning.train_sentences in params.yaml). After it, this masks and fills all of them:\n"
            + whole_text("CELL", name, settings.model_dump())
        )
    lines += [f"warning: {warning}" for warning in tally.warnings]
    if total < _FEW_SENTENCES:
        lines.append("warning: so few sentences show only large differences; look at the intervals")
    if EVERY_TAGGER not in _techniques(languages):
        lines.append(
            "warning: much of it is not English. The taggers are left out: they know English names alone. The word "
            "lists are English too, and mask nearly every word of another language"
        )
    return [
        *lines,
        f"params.yaml compares {len(_techniques(languages))} ways to mask it and 4 to fill it, in about "
        f"{minutes:.0f} minutes on two cores.",
        "Next: 'palimpsest run'. It ends with which of them to use, and why.",
    ]


COMMAND = Command(InitOptions, run)
