"""How spaCy is used: without the components that other packages register with it.

Call ``set_up_spacy`` before the first pipeline is loaded or made.
"""

_FOREIGN = "presidio_analyzer"


def set_up_spacy() -> None:
    """Leave presidio out of what spaCy imports whenever a pipeline is made.

    presidio-analyzer registers a pipeline component, and spaCy imports every registered component with its first
    pipeline: with it come transformers and PyTorch, seconds and hundreds of megabytes for a component that nobody
    asked for, and beside a CPU build of PyTorch an ``OSError`` of torchaudio (see ``torch_setup``).
    """
    from importlib.metadata import EntryPoints
    from itertools import chain

    import catalogue

    registered = catalogue.AVAILABLE_ENTRY_POINTS
    entries = registered if isinstance(registered, EntryPoints) else chain.from_iterable(registered.values())
    catalogue.AVAILABLE_ENTRY_POINTS = EntryPoints(
        entry for entry in entries if entry.value.partition(".")[0] != _FOREIGN
    )
