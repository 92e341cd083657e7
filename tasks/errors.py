"""The errors a user can cause, one class per thing that can be wrong.

The command line turns each of them into one line on standard error and exit status 1. A message names the
thing (key path, file and line, model), the bad value with ``!r``, what is allowed, and the remedy. It never
quotes text of a corpus: where a line is at fault, the message gives its number.
"""


class PalimpsestError(Exception):
    """Something a user can put right; the message is one line and complete."""


class ParameterError(PalimpsestError):
    """A key or value in ``params.yaml``, or an option of a command, is not allowed."""


class CorpusError(PalimpsestError):
    """A text, word-list, annotation or masked file is missing or is not what it should be."""


class SpeechError(PalimpsestError):
    """A recording, a manifest of recordings or a published speech corpus is missing or is not what it should be."""


class ModelError(PalimpsestError):
    """A model cannot be found, loaded or used for what is asked of it."""


class ResourceError(PalimpsestError):
    """The machine lacks something: disk, memory, a device, or a lock that another process holds."""


class StageError(PalimpsestError):
    """A stage of the graph failed, or the graph itself cannot be read."""
