"""The ``palimpsest`` command: one sub-command per step, each in a module of its own.

A command's module has a ``SUMMARY`` (one line for ``palimpsest --help``) and a ``COMMAND``: that of a stage
(``tasks.command``), or another one (``tasks.options``). Only the module of the requested command is imported, and heavy
libraries only when it runs: every stage is a process, so start-up counts.

Other packages add commands through the entry-point group ``palimpsest.commands``.
"""

import argparse
import errno
import importlib
import os
import resource
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tasks import missing_package, process_environment
from tasks.errors import PASSING, PalimpsestError, may_pass
from tasks.files.private_folders import close_private_folders

COMMANDS: dict[str, str] = {
    "cells": "tasks.parameters.cells_command",
    "corpora": "tasks.corpora.corpora",
    "count-words": "tasks.corpora.count_words",
    "languages": "tasks.languages.languages",
    "conclusion": "tasks.languages.conclusion",
    "generate-mixed": "tasks.mixed_text.generate_mixed",
    "compare-mixed": "tasks.mixed_text.compare_mixed",
    "vocabulary": "tasks.language_model.vocabulary_command",
    "generate-labelled": "tasks.labelled_text.generate_labelled",
    "mask": "tasks.masking.mask",
    "preview": "tasks.masking.preview_command",
    "check-gold": "tasks.masking_evaluation.check_gold",
    "evaluate-masking": "tasks.masking_evaluation.evaluate_masking",
    "train-tagger": "tasks.tagger_training.train_tagger",
    "train-filler": "tasks.filling.fillers.train_filler",
    "tune-filler": "tasks.filling.fillers.tune_filler",
    "fill": "tasks.filling.fill",
    "apply": "tasks.applied.apply_command",
    "examples": "tasks.filling.examples",
    "fluency": "tasks.fluency.fluency",
    "pretrain": "tasks.language_model.pretrain",
    "adapt": "tasks.language_model.adapt",
    "perplexity": "tasks.language_model.perplexity_command",
    "unmasked": "tasks.review.unmasked_command",
    "audit": "tasks.audit.audit",
    "audit-tagger": "tasks.audit.audit_tagger",
    "persons": "tasks.persons.persons_command",
    "compare-anonymisers": "tasks.anonymisers.compare_anonymisers_command",
    "unlearn": "tasks.unlearning.unlearn",
    "distil": "tasks.distillation.distil",
    "attack": "tasks.unlearning.attack",
    "compare-unlearning": "tasks.unlearning.compare_unlearning",
    "train-toxicity": "tasks.toxicity.train_toxicity",
    "toxicity": "tasks.toxicity.toxicity",
    "speech-corpus": "tasks.speech.audio.speech_corpus_command",
    "train-recogniser": "tasks.speech.recogniser.train_recogniser_command",
    "encode-speech": "tasks.speech.recogniser.encode_speech_command",
    "reference-text": "tasks.speech.word_errors.reference_text_command",
    "word-error-rate": "tasks.speech.word_errors.word_error_rate_command",
    "fuse": "tasks.speech.fusion.fuse_command",
    "tune-fusion": "tasks.speech.fusion.tune_fusion_command",
    "stream": "tasks.speech.stream_command",
    "whisper-nbest": "tasks.speech.whisper.whisper_nbest_command",
    "transcribe": "tasks.speech.transcribe_command",
    "check-nbest": "tasks.speech.rescoring.check_nbest_command",
    "rescore": "tasks.speech.rescoring.rescore_command",
    "summarise": "tasks.results.summary.summarise_command",
    "findings": "tasks.results.findings.findings_command",
    "publish": "tasks.results.tracking.publish_command",
    "where-from": "tasks.results.origin.where_from_command",
    "restore": "tasks.results.origin.restore_command",
    "ledger": "tasks.privacy.ledger_command",
    "new": "tasks.project.new_command",
    "profile": "tasks.profiles.profile_command",
    "doctor": "tasks.doctor.doctor_command",
    "completion": "tasks.completion_command",
}
"""Commands of this package, in the order of the graph: name to module."""

PLUGIN_GROUP = "palimpsest.commands"
START, EXPERIMENT = "Start here", "Experiment"
"""Groups whose commands ``palimpsest --help`` explains; it only names the other commands."""
GROUPS: dict[str, str] = {
    START: "new try init doctor profile",
    EXPERIMENT: "plan run review apply release ledger forget where-from restore up down",
    "Single steps": (
        "mask preview train-tagger evaluate-masking unmasked train-filler tune-filler fill examples fluency "
        "pretrain adapt perplexity audit audit-tagger persons compare-anonymisers train-toxicity toxicity "
        "summarise findings publish report compare-detectors serve"
    ),
    "Speech": (
        "transcribe speech-corpus train-recogniser encode-speech tune-fusion fuse stream "
        "whisper-nbest check-nbest rescore reference-text word-error-rate"
    ),
    "Languages": "languages conclusion generate-mixed compare-mixed",
    "Forgetting": "unlearn distil attack compare-unlearning",
    "Data": "add corpora count-words vocabulary generate-labelled check-gold cells",
    "Shell": "completion",
}
OTHERS = "Of other packages"


def plugin_commands() -> dict[str, str]:
    """Commands of other installed packages: name to module."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=PLUGIN_GROUP)}


def load_command(name: str) -> ModuleType | None:
    """The module of one command, or ``None`` if no package has it."""
    module_name = COMMANDS.get(name) or plugin_commands().get(name)
    return importlib.import_module(module_name) if module_name else None


def grouped_commands() -> dict[str, dict[str, str]]:
    """All commands by group: name to module; those of other packages last."""
    modules = {**COMMANDS, **plugin_commands()}
    groups = {
        title: {name: modules.pop(name) for name in names.split() if name in modules} for title, names in GROUPS.items()
    }
    return {**groups, OTHERS: modules} if modules else groups


def _print_overview(*, everything: bool) -> None:
    print("usage: palimpsest COMMAND [options]\n")
    print("Mask private words in text, fill the masks with a language model's substitutes, adapt language")
    print("models on the result, and measure what it costs and what still leaks.\n")
    for title, modules in grouped_commands().items():
        if everything or title in (START, EXPERIMENT):
            print(f"{title}:")
            for name, module_name in modules.items():
                print(f"  {name:<21}{importlib.import_module(module_name).SUMMARY}")
        else:
            print(textwrap.fill(f"{title}: {', '.join(modules)}", 98, subsequent_indent="  ", break_on_hyphens=False))
    print("\nYour own text: 'palimpsest try FILE', then 'palimpsest init NAME FILE' and 'palimpsest run'.")
    print("'palimpsest COMMAND --help' explains one command, 'palimpsest --help --all' lists all.")


def command_parser(name: str, module: ModuleType) -> argparse.ArgumentParser:
    """The argument parser of one command."""
    parser: argparse.ArgumentParser = module.COMMAND.parser(f"palimpsest {name}", module.__doc__)
    return parser


def _fail(message: str, status: int = 1) -> int:
    print(f"palimpsest: error: {message}", file=sys.stderr)
    return status


def internal_error(error: BaseException) -> int:
    """Report a defect without its message, which could quote private text; stack frames are safe.

    Return 70, or ``PASSING`` if the same command may succeed later.
    """
    status = PASSING if may_pass(error) else 70
    if os.environ.get("PALIMPSEST_DEBUG") == "1":
        traceback.print_exception(error)
        return status
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    print(
        f"palimpsest: internal error: {type(error).__name__} at {place}. The message is withheld because it may "
        "quote private text; set PALIMPSEST_DEBUG=1 to see it.",
        file=sys.stderr,
    )
    return status


def _carry_out(arguments: list[str]) -> object:
    """Run the requested command; return the exit status, if it is not 0."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _print_overview(everything=arguments[1:] == ["--all"])
        return 0
    name, rest = arguments[0], arguments[1:]
    if name == "--version":
        from importlib.metadata import version

        print(f"palimpsest {version('palimpsest')}")
        return 0
    if "DVC_STAGE" in os.environ:
        # The folder where DVC was started. A DVC experiment has another root than its working folder.
        for checkout in {os.getcwd(), os.environ["DVC_ROOT"]}:
            close_private_folders(Path(checkout))
    module = load_command(name)
    if module is None:
        from tasks.spelling import nearest

        known = [*COMMANDS, *plugin_commands()]
        return _fail(f"unknown command {name!r}{nearest(name, known)}; 'palimpsest --help' lists them")
    return module.COMMAND.parse(command_parser(name, module).parse_args(rest)).run()


def _close_output() -> None:
    """Close standard output after its reader has gone, so that Python does not write to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: list[str] | None = None) -> int:
    """Run one command; return the exit status (0 done, 1 user error, 2 wrong usage, 70 defect, 75 may pass)."""
    return guarded(lambda: _carry_out(sys.argv[1:] if argv is None else argv))


def guarded(action: Callable[[], object]) -> int:
    """Carry out an action of a process of its own, print its error as one line, and return the exit status."""
    process_environment.set_variables()
    # Memory holds private text: a crash must not write it to the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        try:
            done = action()
            return done if isinstance(done, int) else 0
        finally:
            if sys.stdout is not None:
                # A missing reader or a full disk is detected here at the latest.
                sys.stdout.flush()
    except PalimpsestError as error:
        return _fail(str(error), PASSING if may_pass(error) else 1)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _close_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            if error.filename is None:
                _close_output()
            target = "standard output" if error.filename is None else repr(error.filename)
            return _fail(f"the disk is full while writing {target}; free some space and run it again")
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return _fail(f"no permission for {error.filename!r}: {error.strerror}")
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            return _fail(f"no such file: {error.filename!r}")
        return internal_error(error)
    except ModuleNotFoundError as error:
        message = missing_package.remedy(error.name)
        return _fail(message) if message else internal_error(error)
    except Exception as error:
        return internal_error(error)


if __name__ == "__main__":
    sys.exit(main())
