"""A synthetic corpus as a stage: made, reported and summed up in a line."""

import sys
from collections.abc import Mapping

from tasks.files.paths_apart import refuse_shared_paths
from tasks.records.stage_report import recorded_stage
from tasks.settings.checks import as_plain
from tasks.speech.synthesis.settings import SynthesisSettings
from tasks.speech.synthesis.synthetic_corpus import synthesise_corpus
from tasks.torch_setup import set_up_torch


def synthesise_as_stage(
    stage: str,
    *,
    text: str,
    output: str,
    settings: SynthesisSettings,
    report_path: str | None,
    private: bool,
    cell: Mapping[str, str] | None = None,
) -> None:
    """Write the recordings, the manifest and the report, and say what was done on standard error."""
    refuse_shared_paths([("text", text)], [("--output", output)], replaced=True)
    set_up_torch(1)
    with recorded_stage(
        stage,
        report_path,
        cell=cell,
        parameters=as_plain(settings),
        seed=settings.seed,
        inputs=[text],
        outputs=[output],
    ) as report:
        tally = synthesise_corpus(text, output, settings, private=private)
        report.measure(
            synthetic=True,
            synthetic_utterances=tally.utterances,
            lines=tally.lines,
            utterances=tally.utterances,
            words=tally.words,
            audio_seconds=round(tally.seconds, 3),
            speakers=len(tally.speakers),
            left_out=dict(tally.left_out),
        )
    print(
        f"synthetic speech: {tally.utterances:,} utterances, {tally.seconds / 60:.1f} minutes, {len(tally.speakers)} "
        f"voices; {sum(tally.left_out.values()):,} of {tally.lines:,} lines left out",
        file=sys.stderr,
    )
