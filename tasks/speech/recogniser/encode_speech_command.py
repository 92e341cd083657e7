"""Run a recogniser's encoder over the recordings of a manifest, once; every system decodes from the file it writes.

  palimpsest encode-speech --recogniser models/recogniser --manifest test/manifest.jsonl --output test.encoded

Utterances are encoded whole, or with --streaming as if they were being spoken, a segment at a time: what comes out is
the same up to rounding. An utterance that is too short for one encoded frame is kept without frames, and counted: its
words will be missing, not its place in the test set. The file is private (mode 0600), since it says what was spoken.
"""

import argparse

SUMMARY = "encode recordings with a recogniser, to be decoded by any system"
READS = ("recogniser", "manifest")
WRITES = ("output",)
_BATCH_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.records.cell import add_cell_options

    parser.add_argument("--params", help="parameter file; only its section resources is read")
    parser.add_argument("--recogniser", required=True, help="recogniser folder, made by train-recogniser")
    parser.add_argument("--manifest", required=True, help="recordings: a file of JSON lines")
    parser.add_argument("--output", required=True, help="file to write (safetensors)")
    parser.add_argument("--report", help="report file to write (JSON)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    parser.add_argument(
        "--store", choices=("float16", "float32"), default="float16", help="number type in the file (default: float16)"
    )
    parser.add_argument(
        "--maximum-seconds",
        type=float,
        default=120.0,
        help="longest recording that is accepted; memory grows with its square, with --streaming with its length "
        "(default: 120)",
    )
    parser.add_argument(
        "--streaming",
        action="store_true",
        help="encode each recording segment by segment: slower, for long recordings and to see what a live system gets",
    )
    add_cell_options(parser, "dataset")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result: none."""
    return []


def run(arguments: argparse.Namespace) -> None:
    """Encode the recordings and write file and report."""
    import sys

    from tasks.errors import ParameterError
    from tasks.records.cell import cell_of
    from tasks.records.stage_report import recorded_stage
    from tasks.threads import available_cores, threads_of
    from tasks.torch_setup import set_up_torch

    if not arguments.maximum_seconds > 0:
        raise ParameterError(f"--maximum-seconds {arguments.maximum_seconds!r} is not allowed; give more than 0")
    threads = threads_of(arguments, available_cores())
    set_up_torch(threads)
    with recorded_stage(
        "encode-speech",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={
            "store": arguments.store,
            "maximum_seconds": arguments.maximum_seconds,
            "streaming": arguments.streaming,
        },
        inputs=[arguments.recogniser, arguments.manifest],
        outputs=[arguments.output],
    ) as report:
        from tasks.speech.audio.manifest import read_manifest
        from tasks.speech.recogniser.encoded_speech import write_encoded
        from tasks.speech.recogniser.encoding import encode_utterances
        from tasks.speech.recogniser.folder import load_recogniser

        recogniser = load_recogniser(arguments.recogniser)
        utterances = read_manifest(arguments.manifest)
        encoded = encode_utterances(
            recogniser, utterances, arguments.maximum_seconds, _BATCH_SECONDS, streaming=arguments.streaming
        )
        synthetic = any(utterance.synthetic for utterance in utterances)
        write_encoded(
            arguments.output,
            encoded.frames,
            recogniser_hash=recogniser.hash,
            seconds=encoded.seconds,
            frame_seconds=recogniser.frame_seconds,
            synthetic=synthetic,
            store=arguments.store,
        )
        audio_seconds = sum(encoded.seconds.values())
        report.measure(
            utterances=len(utterances),
            without_frames=encoded.without_frames,
            mixed_down=encoded.tally["mixed_down"],
            resampled=encoded.tally["resampled"],
            synthetic=synthetic,
            recogniser_hash=recogniser.hash,
            audio_seconds=round(audio_seconds, 3),
            encode_seconds=round(encoded.encode_seconds, 3),
            real_time_factor=encoded.encode_seconds / audio_seconds,
            frame_seconds=recogniser.frame_seconds,
            threads=threads,
        )
        warnings = []
        if encoded.without_frames:
            warnings.append(
                f"{encoded.without_frames} utterances are too short to be encoded; their words will be missing"
            )
        if encoded.tally["mixed_down"]:
            warnings.append(f"{encoded.tally['mixed_down']} recordings have several channels, which were mixed down")
        for warning in warnings:
            report.warn(warning)
        if synthetic:
            report.warn("the speech is synthetic")
    print(
        f"encode-speech: {len(utterances):,} utterances ({encoded.without_frames:,} without frames), "
        f"{audio_seconds / 60:.1f} minutes of {'synthetic ' if synthetic else ''}speech, real-time factor "
        f"{encoded.encode_seconds / audio_seconds:.4f}; {arguments.output}",
        file=sys.stderr,
    )
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
