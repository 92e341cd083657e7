"""The command ``train-recogniser`` where the recogniser is a pretrained one: its files become a folder like ours."""

import argparse
import sys

from tasks.errors import ParameterError
from tasks.records.stage_report import recorded_stage
from tasks.settings.checks import as_plain
from tasks.speech.recogniser.settings import EmformerBundle, RecogniserTraining

_OF_TRAINING = ("manifest", "text", "valid", "resume_from")


def run_bundle_stage(arguments: argparse.Namespace, source: EmformerBundle) -> None:
    """Write the bundle as a recogniser folder. Raises ``ParameterError`` where an option of training was given."""
    given = [name for name in (*_OF_TRAINING, *RecogniserTraining.model_fields) if getattr(arguments, name, None)]
    # An experiment names the training speech whatever the recogniser is: there it is a dependency that is not read.
    if given and not arguments.params:
        raise ParameterError(f"--{given[0].replace('_', '-')} has no meaning for a pretrained recogniser; leave it out")
    with recorded_stage(
        "train-recogniser", arguments.report, parameters=as_plain(source), outputs=[arguments.output]
    ) as report:
        from tasks.speech.recogniser.folder import save_recogniser
        from tasks.speech.recogniser.model import parameter_count
        from tasks.speech.recogniser.pretrained import NAME, load_bundle

        recogniser = load_bundle(source)
        found = save_recogniser(arguments.output, recogniser, store=source.store, private=arguments.private)
        count = parameter_count(recogniser.model)
        report.measure(
            recogniser_hash=found,
            parameters_count=count,
            units=len(recogniser.units),
            units_hash=recogniser.units.hash,
            synthetic=False,
            trained=False,
        )
    print(f"train-recogniser: {NAME}, {count:,} weights; recogniser in {arguments.output}", file=sys.stderr)
