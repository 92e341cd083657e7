"""Training that may be interrupted: what is kept on the way, and how the next run goes on from it."""

DEFAULT_WORK_FOLDER = ".palimpsest/checkpoints"
"""Where checkpoints lie: outside the outputs, because DVC deletes the outputs of a stage before it runs."""
