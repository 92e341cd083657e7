"""The extra of palimpsest that a missing package belongs to."""

from importlib.metadata import PackageNotFoundError, metadata, requires


def remedy(module: str | None) -> str | None:
    """The error message for a module that is not installed, or None if no extra of palimpsest has it."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(line) for line in requires("palimpsest") or ()]
        extras = metadata("palimpsest").get_all("Provides-Extra") or ()
    except PackageNotFoundError:
        return None
    package = (module or "").split(".")[0]
    for extra in extras:
        for requirement in requirements:
            named = requirement.name.lower().replace("-", "_") == package
            if named and requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
                return (
                    f"the package {requirement.name!r} is not installed. This command needs it. "
                    f"Run: pip install 'palimpsest[{extra}]'"
                )
    return None
