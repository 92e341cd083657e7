"""Recall of the release technique for the 18 identifiers of HIPAA's Safe Harbor method (45 CFR 164.514(b)(2)).

An identifier counts as found if every one of its words is masked. Three kinds of text:

- ``forms``: sentences of this module with values by Faker (synthetic). No tagger that ships has learned from them. They
  cover identifiers that no labelled corpus here has, such as medical record numbers.
- ``templates``: ``data/labelled/test.jsonl`` of a run (synthetic). No tagger that ships has seen its templates.
- ``--held-out``: real and synthetic labelled text. The taggers that ship have learned from it and find nearly all,
  which says nothing. So it is read by presidio and a conditional random field that was trained without it
  (``build_shipped crf --held-out``): a lower bound of ``every_tagger``, which adds the word classifier. The
  field's threshold was chosen on these texts.

Intervals are Wilson's at 95 % and take identifiers for independent; sentences of one form are alike, so they are
somewhat narrow. The output has numbers and labels only, never text.

    python -m benchmarks.build_shipped crf --gold GOLD --held-out held_out --output crf
    python -m benchmarks.identifier_recall --templates data/labelled/test.jsonl --held-out held_out --crf crf
    python -m benchmarks.identifier_recall --page docs/privacy.md    # the table, from the stored numbers
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from faker import Faker

from benchmarks.readme_tables import with_table
from tasks.filling.restoration import wilson_interval
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.judged_line import judged_lines
from tasks.masking_evaluation.label_classes import LabelMapping
from tasks.records.stage_report import write_json
from tasks.settings.checks import check_settings

RESULTS = Path(__file__).parent / "results" / "identifier_recall.json"
RELEASED = "every_tagger"
LOWER_BOUND = "crf or presidio"
SENTENCES = 60
"""Of each label of the forms."""
DATA = yaml.safe_load(Path(__file__).with_name("identifiers.yaml").read_text(encoding="utf-8"))
IDENTIFIERS: Mapping[str, tuple[str, str, str]] = DATA["identifiers"]
VALUES: Mapping[str, Callable[[Any], str]] = {
    "DATE_OF_BIRTH": lambda fake: fake.date_of_birth(minimum_age=18, maximum_age=95).strftime("%m/%d/%Y"),
    "AGE_OVER_89": lambda fake: str(fake.random_int(90, 104)),
    "FAX": lambda fake: fake.numerify("(###) ###-####"),
    "US_SSN": lambda fake: fake.ssn(),
    "MEDICAL_RECORD": lambda fake: fake.random_element(
        (fake.numerify("#######"), fake.bothify("MR-######"), fake.numerify("##-##-##"))
    ),
    "HEALTH_PLAN": lambda fake: fake.bothify("???#########").upper(),
    "MEDICAL_LICENSE": lambda fake: fake.bothify("??#######").upper(),
    "VIN": lambda fake: fake.vin(),
    "SERIAL_NUMBER": lambda fake: fake.bothify("??-####-####").upper(),
    "UUID": lambda fake: fake.uuid4(),
    "PASSPORT": lambda fake: fake.bothify("?########").upper(),
    "USER_NAME": lambda fake: "@" + fake.user_name(),
}


def forms() -> Iterator[LabelledLine]:
    """Sentences with one identifier each; the same at every call."""
    fake = Faker("en_US")
    fake.seed_instance(1)
    number = 0
    for label, sentences in DATA["forms"].items():
        for index in range(SENTENCES):
            number += 1
            before, _, after = sentences[index % 3].partition("{}")
            written = VALUES[label](fake)
            span = LabelledSpan(len(before), len(before) + len(written), label)
            yield LabelledLine(before + written + after, (span,), number)


def measured(lines: Iterable[LabelledLine], technique: Any) -> dict[str, dict[str, int]]:
    """Identifiers and those masked whole, by label."""
    gold = list(lines)
    found = list(technique.findings([line.text for line in gold]))
    labels: dict[str, Counter[str]] = {}
    for line in judged_lines(gold, found, LabelMapping({})):
        for span in line.spans:
            labels.setdefault(span.label, Counter()).update(identifiers=1, found=line.all_masked(span.words))
    return {label: dict(counts) for label, counts in sorted(labels.items())}


def table(results: Mapping[str, Any]) -> str:
    """The Markdown table of docs/privacy.md, from the stored numbers."""
    head = "| | identifier | marker | every_tagger, new synthetic text | lower bound, held-out text |"
    rows = [head, "|---|---|---|---:|---:|"]
    for letter, (name, marker, labels) in IDENTIFIERS.items():
        synthetic = _recall(results, labels.split(), RELEASED)
        held_out = _recall(results, labels.split(), LOWER_BOUND)
        rows.append(f"| {letter} | {name} | {marker or 'not text: not covered'} | {synthetic} | {held_out} |")
    texts = {name: text for name, text in results["texts"].items() if text["technique"] == LOWER_BOUND}
    people = IDENTIFIERS["A"][2].split()
    names = [f"`{name}` {_recall({'texts': {name: text}}, people, LOWER_BOUND)}" for name, text in texts.items()]
    return "\n".join(rows) + f"\n\nNames in the held-out texts: {'; '.join(names)}."


def _recall(results: Mapping[str, Any], labels: list[str], technique: str) -> str:
    counts = Counter[str]()
    for text in results["texts"].values():
        if text["technique"] == technique:
            for label in labels:
                counts.update(text["labels"].get(label, {}))
    if not counts["identifiers"]:
        return "–"
    low, high = wilson_interval(counts["found"], counts["identifiers"]) or (0.0, 1.0)
    share = counts["found"] / counts["identifiers"]
    return f"{share:.1%} [{low:.1%}, {high:.1%}] of {counts['identifiers']:,}".replace("%", " %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", type=Path, metavar="FILE", help="test part of the labelled text of a run")
    parser.add_argument("--held-out", type=Path, metavar="FOLDER", help="labelled files that --crf never learned from")
    parser.add_argument("--crf", metavar="FOLDER", help="a conditional random field for --held-out")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table between its marks, measure nothing")
    arguments = parser.parse_args()
    if arguments.page:
        page = arguments.page.read_text(encoding="utf-8")
        written = with_table(page, "identifiers", table(json.loads(RESULTS.read_text(encoding="utf-8"))))
        arguments.page.write_text(written, encoding="utf-8")
        return
    texts: list[tuple[str, str, Iterable[LabelledLine]]] = [("forms", RELEASED, forms())]
    if arguments.templates:
        texts.append(("templates", RELEASED, read_labelled(arguments.templates)))
    if arguments.held_out:
        texts += [(path.stem, LOWER_BOUND, read_labelled(path)) for path in sorted(arguments.held_out.glob("*.jsonl"))]
    taggers = [{"kind": "crf", "model": arguments.crf}, {"kind": "presidio"}]
    parts = [{"kind": "entity_tagger", "tagger": tagger} for tagger in taggers]
    settings: dict[str, dict[str, Any]] = {
        RELEASED: {"kind": RELEASED},
        LOWER_BOUND: {"kind": "combination", "rule": "union", "parts": parts},
    }
    results: dict[str, Any] = {}
    for name, technique, lines in texts:
        built = check_settings(AnyTechnique, settings[technique], technique).build(None, 1)
        results[name] = {"technique": technique, "labels": measured(lines, built)}
    write_json(RESULTS, {"texts": results})


if __name__ == "__main__":
    main()
