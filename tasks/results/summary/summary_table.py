"""The table: techniques across, methods down, one table per dataset; as Markdown and in the terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from tasks.records.cells import NO_LANGUAGE_MODEL
from tasks.results.summary.estimate import Estimate, direction, estimate
from tasks.results.summary.speech_columns import is_synthetic, masked_word_error_columns
from tasks.results.summary.summary_rows import masked_word_columns

Row = Mapping[str, Any]

METHOD_NAMES = {
    NO_LANGUAGE_MODEL: "No language model",
    "pretrained": "Pretrained",
    "oracle": "Oracle",
    "baseline0": "Baseline0",
    "baseline1": "Baseline1",
    "top_1": "Top-1",
    "top_k": "Top-K",
    "top_k_left_to_right": "Top-K, left to right",
    "sample": "Sample",
    "unigram": "Unigram",
    "log_linear": "Log-linear",
    "counted": "Log-linear, noisy counts",
    "counted_beyond": "Log-linear, noisy counts, beyond the filler",
    "domain_unigram": "Unigram of the domain",
    "surrogate": "Surrogate",
}
BELOW, ABOVE, OTHER_PROTOCOL = "▼", "▲", "‡"
LEGEND = (
    f"{BELOW} below, {ABOVE} above Baseline1 of the same technique: the interval of the paired ratio excludes 1. "
    "Several seeds: mean ± standard deviation; of ratios the interval over sentences and seeds."
)
SPEECH_LEGEND = f" Word error rates: {BELOW} below, {ABOVE} above that of the pretrained model."
ABSENT = "–"
_MARKS = (BELOW, ABOVE, OTHER_PROTOCOL)


@dataclass(frozen=True)
class Line:
    """One line of the table: a method with its rows of every technique."""

    method: str
    filler: str | None
    by_technique: dict[str, list[Row]]
    """The rows of all seeds by technique; pretrained and Oracle stand under every technique."""
    label: str


@dataclass(frozen=True)
class Table:
    """All lines of one dataset."""

    dataset: str
    techniques: list[str]
    lines: list[Line]
    recogniser_alone: Line | None = None
    """The recogniser without a language model, where the dataset has speech: it has word error rates only."""

    @property
    def rows(self) -> list[Row]:
        """All rows, once under each technique."""
        return [row for line in self.lines for found in line.by_technique.values() for row in found]

    @property
    def kind_of_speech(self) -> str:
        """``synthetic speech`` or ``recorded speech``; empty where there is none."""
        if self.recogniser_alone is None:
            return ""
        return "synthetic speech" if is_synthetic(self.rows) else "recorded speech"

    def masked_fraction(self, technique: str) -> float | None:
        """Share of the training words that the technique masked."""
        for line in self.lines:
            for row in line.by_technique[technique]:
                if row["technique"] == technique:
                    return row["masked_fraction"]
        return None


def tables(rows: Sequence[Row]) -> list[Table]:
    """The rows of the summary as one table per dataset, in the order in which they stand."""
    return [
        _table(dataset, [row for row in rows if row["dataset"] == dataset]) for dataset in _distinct(rows, "dataset")
    ]


def _table(dataset: str, rows: Sequence[Row]) -> Table:
    techniques = [technique for technique in _distinct(rows, "technique") if technique is not None]
    fillers = [filler for filler in _distinct(rows, "filler") if filler is not None]
    lines = []
    for filler, method in _in_order(rows, [None, *techniques]):
        mine = [row for row in rows if (row["filler"], row["method"]) == (filler, method)]
        by_technique = {
            technique: [_under(row, technique) for row in mine if row["technique"] in (technique, None)]
            for technique in techniques
        }
        label = method_name(method) + (f", {filler}" if filler and len(fillers) > 1 else "")
        lines.append(Line(method, filler, by_technique, label))
    alone = next((line for line in lines if line.method == NO_LANGUAGE_MODEL), None)
    return Table(dataset, techniques, [line for line in lines if line is not alone], alone)


def _in_order(rows: Sequence[Row], techniques: Sequence[str | None]) -> list[tuple[str | None, str]]:
    """Fillers and methods in the order of the rows; one that only a later technique has stands where it has it."""
    found: list[tuple[str | None, str]] = []
    for technique in techniques:
        place = len(found)
        for name in dict.fromkeys((row["filler"], row["method"]) for row in rows if row["technique"] == technique):
            if name not in found:
                found.insert(place, name)
            place = found.index(name) + 1
    return found


def _under(row: Row, technique: str) -> Row:
    """A row as it stands under a technique: pretrained and Oracle have numbers of the words that each one masks."""
    if row["technique"]:
        return row
    of_text = masked_word_columns(row.get("masked_words", {}), technique)
    return {**row, **of_text, **masked_word_error_columns(row.get("masked_word_errors", {}), technique)}


def _distinct(rows: Sequence[Row], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))


def method_name(method: str) -> str:
    """How the paper writes a method; a name of the user's own stays as it is."""
    return METHOD_NAMES.get(method, method)


def technique_name(technique: str) -> str:
    """``allow_list`` as ``allow list``."""
    return technique.replace("_", " ")


def number_text(number: Estimate | None, digits: int = 1) -> str:
    """``445.1 [430, 460]``, ``445.1 ± 3.2`` over several seeds, a dash where there is none."""
    if number is None:
        return ABSENT
    value = _value(number.value, digits)
    if number.deviation is not None:
        return f"{value} ± {_value(number.deviation, digits)}"
    if number.low is None or number.high is None:
        return value
    return f"{value} [{_limit(number.low, digits)}, {_limit(number.high, digits)}]"


def ratio_text(number: Estimate | None) -> str:
    """``1.42 [1.39, 1.45]``; of several seeds the interval says more than the deviation."""
    return number_text(number and replace(number, deviation=None), digits=2)


def _value(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.{digits}f}"


def _limit(value: float, digits: int) -> str:
    """Limits of an interval need no more than three digits."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:.{digits}f}"


def follows_protocol(rows: Sequence[Row]) -> bool:
    """Whether all rows follow the protocol of their dataset's Oracle; others do not compare with the table's."""
    return not any(row.get("protocol_differs") for row in rows)


def mark(rows: Sequence[Row], field: str) -> str:
    """``▼`` or ``▲`` where the rows differ from Baseline1, else nothing; ``field`` is a column with perplexities.

    ``‡`` where they follow another protocol than Oracle.
    """
    if not follows_protocol(rows):
        return OTHER_PROTOCOL
    ratio = "ratio_to_baseline1" + field.removeprefix("perplexity")
    return {-1: BELOW, 1: ABOVE, 0: ""}[direction(rows, ratio)]


@dataclass(frozen=True)
class Section:
    """One table of a dataset: the same lines and columns, another measure."""

    title: str
    cell: Callable[[Line, str], str]
    """The text of a line's cell under a technique."""
    printed: bool = True
    """Whether the terminal shows it too."""
    of_speech: bool = False
    """Whether it is about speech: the recogniser alone has a line in it."""

    def heading(self, table: Table) -> str:
        """The title, which says of speech whether it is synthetic."""
        return f"{self.title}, {table.kind_of_speech}" if self.of_speech else self.title

    def lines(self, table: Table) -> list[Line]:
        """The lines that the table of this measure has; none where nothing was measured."""
        alone = [table.recogniser_alone] if table.recogniser_alone is not None else []
        if self.of_speech:
            return [*alone, *table.lines] if alone else []
        return table.lines

    def texts(self, table: Table) -> list[list[str]]:
        """All cells, line by line."""
        return [[self.cell(line, technique) for technique in table.techniques] for line in self.lines(table)]


def _perplexity(field: str) -> Callable[[Line, str], str]:
    def cell(line: Line, technique: str) -> str:
        rows = line.by_technique[technique]
        return f"{number_text(estimate(rows, field))} {mark(rows, field)}".rstrip()

    return cell


def _ratio_to_oracle(field: str) -> Callable[[Line, str], str]:
    return lambda line, technique: ratio_text(estimate(line.by_technique[technique], field))


def _error_rate(field: str) -> Callable[[Line, str], str]:
    """A rate in per cent, with the mark of where it stands to the recogniser with the pretrained language model."""

    def cell(line: Line, technique: str) -> str:
        rows = line.by_technique[technique]
        rate = estimate(rows, field)
        text = number_text(rate and rate.times(100))
        sign = (
            {-1: BELOW, 1: ABOVE, 0: ""}[direction(rows, "wer_difference_to_pretrained", neutral=0)]
            if field == "wer"
            else ""
        )
        return f"{text} {sign}".rstrip()

    return cell


SECTIONS = (
    Section("Perplexity on the unmasked test text, all words", _perplexity("perplexity")),
    Section("Perplexity over words of the vocabulary alone", _perplexity("perplexity_known")),
    Section("Times Oracle's perplexity, all words", _ratio_to_oracle("ratio_to_oracle"), printed=False),
    Section("Times Oracle's perplexity, words of the vocabulary", _ratio_to_oracle("ratio_to_oracle_known")),
    Section(
        "Perplexity over test words that the technique would mask, words of the vocabulary",
        _perplexity("perplexity_masked_known"),
        printed=False,
    ),
    Section(
        "Perplexity over all that the technique leaves, words of the vocabulary",
        _perplexity("perplexity_rest_known"),
        printed=False,
    ),
    Section(
        "Perplexity, all words, with the markers' probability given to all other tokens",
        _perplexity("perplexity_without_markers"),
        printed=False,
    ),
    Section("Bits per character, all words", _ratio_to_oracle("bits_per_character"), printed=False),
    Section("Word error rate in per cent", _error_rate("wer"), of_speech=True),
    Section(
        "Word error rate in per cent on words that the technique would mask", _error_rate("wer_masked"), of_speech=True
    ),
)


def headings(table: Table) -> list[str]:
    """A heading for each technique: its name and the share of words that it masked."""
    return [_heading(table, technique) for technique in table.techniques]


def _heading(table: Table, technique: str) -> str:
    share = table.masked_fraction(technique)
    return technique_name(technique) + (f" ({share:.1%} masked)" if share is not None else "")


def other_protocols(table: Table) -> str:
    """A sentence that names what keeps numbers of the table from being compared; nothing where all compare."""
    fields = list(dict.fromkeys(name for row in table.rows for name in row.get("protocol_differs", [])))
    if not fields:
        return ""
    return f" {OTHER_PROTOCOL} measured by another protocol than Oracle's ({', '.join(fields)}): does not compare."


def share_of_unknown_words(table: Table) -> str:
    """A sentence; nothing where no share was measured."""
    rates = [row["oov_rate"] for line in table.lines for rows in line.by_technique.values() for row in rows]
    known = [rate for rate in rates if rate is not None]
    return f"{max(known):.1%} of the test words are outside the vocabulary. " if known else ""


def lists_note(table: Table) -> str:
    """A sentence on what can be won by choosing among n-best lists; nothing where rates come from no lists."""
    lines = [table.recogniser_alone] if table.recogniser_alone is not None else []
    row = next((row for line in lines for rows in line.by_technique.values() for row in rows), {})
    if row.get("wer_best_of_lists") is None:
        return ""
    return (
        " The rates come from choosing among n-best lists: an insertion bonus alone gives "
        f"{row['wer_insertion_bonus_alone']:.1%}, the best hypothesis of every list {row['wer_best_of_lists']:.1%}; "
        f"{row['best_first_share']:.1%} of the lists begin with theirs."
    )


def notes(table: Table) -> str:
    """What a reader must know of the numbers of a dataset."""
    of_speech = SPEECH_LEGEND + lists_note(table) if table.recogniser_alone is not None else ""
    return f"{share_of_unknown_words(table)}{LEGEND}{of_speech}{other_protocols(table)}"


def print_tables(rows: Sequence[Row], stream: IO[str] | None = None) -> None:
    """Print the tables of all datasets, in colour where the stream is a terminal."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        # Without a terminal rich takes 80 columns and would break the cells.
        console.width = 400
    for table in tables(rows):
        for section in SECTIONS:
            lines = section.lines(table)
            if not section.printed or not lines:
                continue
            title = section.heading(table)
            title = f"{table.dataset}: {title[0].lower()}{title[1:]}"
            grid = Grid(title=title, title_justify="left", title_style="bold")
            grid.add_column("method", no_wrap=True)
            for heading in headings(table):
                grid.add_column(heading.replace(" (", "\n("), justify="right")
            texts = section.texts(table)
            marked = any(text.endswith(_MARKS) for row in texts for text in row)
            for line, following, row in zip(lines, [*lines[1:], None], texts, strict=True):
                group_ends = following is not None and _group(following) != _group(line)
                cells = [_coloured(text, Text, marked) for text in row]
                grid.add_row(Text(line.label), *cells, end_section=group_ends)
            console.print(grid)
        console.print(Text(notes(table), style="dim"), soft_wrap=True)


def _group(line: Line) -> str:
    if line.method in (NO_LANGUAGE_MODEL, "pretrained", "oracle"):
        return "reference"
    if line.method.startswith("baseline"):
        return "baseline"
    return "filler" if line.filler else "control"


def _coloured(text: str, kind: Callable[..., Any], marked: bool) -> Any:
    # A blank stands for an absent mark, so that the numbers of a column stand below each other.
    text = f"{text}  " if marked and not text.endswith(_MARKS) else text
    value, bracket, interval = text.partition(" [")
    coloured = kind(value, style="bold")
    coloured.append(bracket + interval, style="not bold dim")
    return coloured
