"""The errors a user can cause, one class per kind of cause.

The command line turns each of them into one line on standard error and exit status 1. A message names the thing (key
path, file and line, model), the bad value with ``!r``, the allowed values, and the remedy. It never quotes text of a
corpus: for a bad line, the message gives its number.
"""

PASSING = 75
"""Exit status of a command whose error may pass, so that the same command may succeed later (``EX_TEMPFAIL``)."""
_PASSING = (
    "OutOfMemoryError OperationalError ConnectTimeout ConnectError ReadTimeout ReadError RemoteDisconnected gaierror "
    "MemoryError BlockingIOError ConnectionError TimeoutError"
).split()
"""Names of error classes: memory, a busy SQLite database, the network."""


class PalimpsestError(Exception):
    """An error that a user can correct; the message is one line and complete."""


class ParameterError(PalimpsestError):
    """A key or value in ``params.yaml``, or an option of a command, is not allowed."""


class CorpusError(PalimpsestError):
    """A text, word-list, annotation or masked file is missing or malformed."""


class SpeechError(PalimpsestError):
    """A recording, a manifest of recordings or a published speech corpus is missing or malformed."""


class ModelError(PalimpsestError):
    """A model cannot be found, loaded or used for its purpose."""


class ResourceError(PalimpsestError):
    """The machine lacks something: disk, memory, a device, or a lock that another process holds."""


class PassingError(ResourceError):
    """A lock, a server or memory is not available now, but may be later; a run tries the stage again."""


class StageError(PalimpsestError):
    """A stage of the graph failed, or the graph itself cannot be read."""


def may_pass(error: BaseException) -> bool:
    """Whether the same command may succeed later."""
    return isinstance(error, PassingError) or any(kind.__name__ in _PASSING for kind in type(error).__mro__)
