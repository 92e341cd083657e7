"""Make synthetic text that mixes two languages.

Choose one of three sources:

- --text: lines in one language each, which the command splices.
- --answers: answers of a language model of your own.
- --recorded: text that was recorded, as JSON lines with a "text" or as plain lines.

--text needs --mixed, a corpus that mixes the languages, masked or not. The command counts there
where and how often people switch, and splices lines accordingly. --write-statistics saves these
counts, and --mixed reads them too.

--dictionary has lines of word<TAB>translation, in either direction. A spliced-in passage, an
island, then begins with a translation of the word that it replaces. With a dictionary, text in one
language is enough: islands then consist of words of the dictionary only.

--answers names a file. Prompts without an answer in it are sent to endpoint.url, which uses
OpenAI's protocol. Without an address the file must have all answers, and the result is always the
same.

Some lines are left out and counted. They are in one language or have much of a third one, they
repeat themselves or an earlier line, or they are refusals.

The output has words of the text, and the statistics have numbers about it. Both are as private as
the text.

Examples:
  palimpsest generate-mixed --pair en,es --mixed masked.txt --text talk.txt --output synthetic.txt
  palimpsest generate-mixed --pair en,es --answers answers.jsonl --output synthetic.txt \\
    --set endpoint.url=http://127.0.0.1:8080/v1 --set endpoint.model=NAME
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError, ParameterError
from tasks.mixed_text.language_model_text import EndpointSettings
from tasks.options import READ, WRITE, Role
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    from tasks.languages.mixing import Mixing
    from tasks.mixed_text.switching import SwitchStatistics

SUMMARY = "make synthetic text that mixes two languages, from text or by a language model"
_SAMPLE = 20_000
_THIRD_TIMES, _THIRD_LEAST, _THIRD_WORDS, _THIRD_SHARE = 30.0, 1e-5, 3, 0.3
"""A word is of a third language if it is so many times as frequent there as in both of the pair, and at least so
frequent. A line is if it has at least so many such words and such a share of them."""
_REPEATED = 3
"""A line repeats itself if it has the same three words this often."""
_REFUSALS = (
    "i'm sorry, but",
    "i am sorry, but",
    "i cannot ",
    "i can't help",
    "i can't assist",
    "as an ai",
    "i'm unable to",
)


class GenerateMixedSettings(Settings):
    """Number of lines, and their source."""

    lines: int = Field(default=1000, ge=1)
    """Lines that are spliced from text; recorded and written lines are all used."""
    endpoint: EndpointSettings = EndpointSettings()
    """A language model of your own, for --answers."""
    seed: Seed = 1
    """Seed of all draws."""


class GenerateMixedFiles(StageFiles):
    """Sources of the text, and the output."""

    pair: str
    """the two languages as ISO 639-1 codes, such as en,es"""
    output: Annotated[str, WRITE]
    """file for the lines, which only you can read"""
    text: Annotated[list[str], READ] = Field(default_factory=list)
    """texts whose lines in one language are spliced"""
    mixed: Annotated[str | None, READ] = None
    """text that mixes the languages, masked or not, to learn where people switch; or a file of --write-statistics"""
    write_statistics: Annotated[str | None, WRITE] = None
    """file for the counts from --mixed: numbers over words of published lists"""
    dictionary: Annotated[str | None, READ] = None
    """pairs of a word and its translation, one a line with a tab between"""
    recorded: Annotated[str | None, READ] = None
    """recorded text instead of --text: JSON lines with a "text", or plain lines"""
    answers: Annotated[str | None, Role(writes=True)] = None
    """file with answers of a language model, instead of --text; missing answers are requested and added"""


def generate_mixed(
    settings: GenerateMixedSettings, files: GenerateMixedFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Make, check and write lines.

    Raises ``ParameterError`` if no source is given, ``CorpusError`` if a file has the wrong form, and ``ModelError`` if
    the endpoint does not answer.
    """
    from tasks.corpora.text_lines import write_lines
    from tasks.languages.word_lists import codes_of

    codes = codes_of(files.pair)
    if len(codes) != 2:
        raise ParameterError(f"--pair {files.pair!r}: give two languages, such as en,es")
    fit, mixing, dropped = _checked(_lines(settings, files, codes), codes)
    write_lines(files.output, fit, private=True)
    report = Report(seed=settings.seed).measure(synthetic=True, dropped=dict(dropped), **mixing.fields())
    said = ", ".join(f"{count:,} {fault}" for fault, count in dropped.items()) or "none"
    rate = f"{mixing.switches / mixing.pairs:.3f}" if mixing.pairs else "no"
    print(f"{len(fit):,} synthetic lines, {rate} switches a pair of words; dropped: {said}", file=sys.stderr)
    if not fit:
        report.warn("no line passed the checks")
    return report


def _lines(settings: GenerateMixedSettings, files: GenerateMixedFiles, codes: Sequence[str]) -> list[str]:
    from tasks.mixed_text.language_model_text import prompts_of, written_lines

    if [bool(files.text), bool(files.recorded), bool(files.answers)].count(True) != 1:
        raise ParameterError("give one of --text, --recorded and --answers as the source of the lines")
    if files.recorded:
        return list(_recorded(files.recorded))
    if files.answers:
        first, second = map(_name, codes)
        return list(written_lines(settings.endpoint, prompts_of(settings.endpoint, first, second), files.answers))
    from tasks.mixed_text.switching import Splicer

    statistics = _statistics(files, codes)
    dictionary = _dictionary(files.dictionary, codes) if files.dictionary else {}
    lines = _by_language(files.text, codes)
    if not lines[codes[0]] and not lines[codes[1]]:
        raise CorpusError(f"text {files.text[0]!r} has no line in one of the languages {', '.join(codes)} alone")
    if not all(lines.values()) and not dictionary:
        missing = next(code for code, found in lines.items() if not found)
        raise CorpusError(f"text {files.text[0]!r} has no line in {missing}; give text of it, or a --dictionary")
    spliced = islice(Splicer(statistics, lines, dictionary, settings.seed), settings.lines)
    return [" ".join(words) for words, _ in spliced]


def _recorded(path: str) -> Iterator[str]:
    """``CorpusError`` for a JSON line without a text."""
    from tasks.corpora.text_lines import NoJson, read_json_line, read_lines

    for number, line in enumerate(read_lines(path, "recorded text"), start=1):
        try:
            words = (read_json_line(line)["text"] if line.startswith("{") else line).split()
        except (NoJson, LookupError, TypeError, AttributeError):
            raise CorpusError(f"recorded text {path!r}, line {number}: no JSON object with a 'text'") from None
        if words:
            yield " ".join(words)


def _statistics(files: GenerateMixedFiles, codes: Sequence[str]) -> "SwitchStatistics":
    from tasks.corpora.text_lines import read_lines
    from tasks.languages.word_languages import WordLanguages
    from tasks.mixed_text.switching import SwitchStatistics

    if not files.mixed:
        raise ParameterError("--text needs --mixed, a text to learn from where people switch")
    if next(iter(read_lines(files.mixed)), "").startswith("{"):
        found = SwitchStatistics.read(files.mixed)
        if sorted(found.languages) != sorted(codes):
            raise CorpusError(f"statistics {files.mixed!r} are of {', '.join(found.languages)}, not of {codes!r}")
        return found
    words = (line.split() for line in read_lines(files.mixed))
    model = WordLanguages(codes, islice(words, _SAMPLE))
    found = SwitchStatistics.learn(codes, model.tag(line.split() for line in read_lines(files.mixed)))
    if files.write_statistics:
        found.write(files.write_statistics)
    return found


def _dictionary(path: str, codes: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Translations in both directions; ``CorpusError`` for a line that is not a pair of words."""
    from tasks.corpora.text_lines import read_lines
    from tasks.languages.word_languages import form_of

    found: dict[tuple[str, str], list[str]] = {}
    for number, line in enumerate(read_lines(path, "dictionary"), start=1):
        words = [part.strip() for part in line.split("\t")]
        if len(words) != 2 or any(len(word.split()) != 1 for word in words):
            raise CorpusError(
                f"dictionary {path!r}, line {number}: needs a word of {codes[0]}, a tab and a word of {codes[1]}"
            )
        for code, one, other in ((codes[1], *words), (codes[0], *reversed(words))):
            found.setdefault((code, form_of(one)), []).append(form_of(other))
    return found


def _by_language(paths: Sequence[str], codes: Sequence[str]) -> dict[str, list[list[str]]]:
    """Words of the lines that are in one language."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.languages.mixing import spoken
    from tasks.languages.word_languages import WordLanguages

    found: dict[str, list[list[str]]] = {code: [] for code in codes}
    lines = [line.split() for path in paths for line in read_corpus(path)]
    model = WordLanguages(codes, lines[:_SAMPLE])
    for line in model.tag(lines):
        languages = set(spoken(line.languages))
        if len(languages) == 1:
            found[languages.pop()].append(line.words)
    return found


def _name(code: str) -> str:
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    return str(LANGUAGES.get(code, code)).title()


def _checked(lines: Sequence[str], codes: Sequence[str]) -> tuple[list[str], "Mixing", Counter[str]]:
    """The lines without a fault, in order, with their counts, and the dropped lines by fault."""
    from tasks.languages.mixing import Mixing, spoken
    from tasks.languages.word_languages import WordLanguages, form_of

    words = [line.split() for line in lines]
    forms = [[form for word in line if (form := form_of(word))] for line in words]
    third = _third_languages(forms, codes)
    fit, mixing, dropped, seen = list[str](), Mixing(tuple(codes)), Counter[str](), set[tuple[str, ...]]()
    model = WordLanguages(codes, words[:_SAMPLE])
    for line, own, of_third, tagged in zip(lines, forms, third, model.tag(words), strict=True):
        threes = Counter(zip(own, own[1:], own[2:], strict=False))
        if line.lower().replace("’", "'").startswith(_REFUSALS):
            dropped["refusals"] += 1
        elif of_third:
            dropped["in a third language"] += 1
        elif len(set(spoken(tagged.languages))) < 2:
            dropped["in one language"] += 1
        elif tuple(own) in seen or max(threes.values(), default=0) >= _REPEATED:
            dropped["repeated"] += 1
        else:
            seen.add(tuple(own))
            fit.append(line)
            mixing.add(tagged.languages)
    return fit, mixing, dropped


def _third_languages(lines: Sequence[Sequence[str]], codes: Sequence[str]) -> list[bool]:
    """Whether each line has many words of one third language, by the small published lists."""
    from wordfreq import available_languages, get_frequency_dict

    from tasks.languages.word_lists import word_list

    if not all(map(word_list, codes)):
        return [False] * len(lines)
    limit = {
        word: max(_THIRD_LEAST, _THIRD_TIMES * max(word_list(code).get(word, 0.0) for code in codes))
        for line in lines
        for word in line
    }
    found = [False] * len(lines)
    for other in sorted(set(available_languages("small")) - set(codes)):
        frequency = get_frequency_dict(other, "small")
        foreign = {word for word, least in limit.items() if frequency.get(word, 0.0) >= least}
        for number, line in enumerate(lines):
            hits = sum(word in foreign for word in line)
            found[number] = found[number] or (hits >= _THIRD_WORDS and hits >= _THIRD_SHARE * len(line))
    return found


COMMAND = StageCommand(
    name="generate_mixed",
    stage=generate_mixed,
    settings=GenerateMixedSettings,
    files=GenerateMixedFiles,
    section={},
)
