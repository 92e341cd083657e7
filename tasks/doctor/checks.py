"""What an experiment needs before any of its stages starts: the checks that ``doctor``, ``plan`` and ``run`` share."""

from pathlib import Path

from tasks.doctor.data_findings import data_checks
from tasks.doctor.finding import Check
from tasks.doctor.model_findings import model_checks
from tasks.parameters.parameter_file import Parameters


def checks(parameters: Parameters, root: Path) -> list[Check]:
    """Data and models, in the order in which the graph needs them; nothing is looked at yet."""
    return [*data_checks(parameters, root), *model_checks(parameters, root)]
