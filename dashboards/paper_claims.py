"""The paper's claims for the report page: the verdicts of ``palimpsest findings`` on one dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.language_model.settings import EvaluationSettings
from tasks.results.findings.findings_claims import Finding, findings
from tasks.results.findings.findings_comparison import Experiment


def verdicts(rows: Sequence[Mapping[str, Any]], scores: str | Path | None) -> list[Finding]:
    """The eight claims of the paper, in its order; ``scores`` as of ``Experiment``."""
    return findings(Experiment(rows, scores, EvaluationSettings()))
