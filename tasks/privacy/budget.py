"""What may still leave of a corpus: the epsilons that were spent, the budget, and by whose key words were counted."""

from collections.abc import Sequence

from tasks.errors import ParameterError
from tasks.privacy.ledger import Release, epsilon_spent


def check_budget(
    releases: Sequence[Release], *, counts: str | None, epsilon: float | None, budget: float | None
) -> None:
    """``ParameterError`` where one more release of a corpus would exceed the budget of epsilon for a unit.

    ``releases``: those of the corpus so far; ``counts``: id of the noisy counts, which cost nothing where they have
    left already; ``epsilon``: of these counts, or ``None`` for a fill that has none; ``budget``: ``None`` for no limit.
    """
    if budget is None:
        return
    unbounded = [release.name for release in releases if release.epsilon is None]
    if unbounded or epsilon is None:
        what = f"release {unbounded[0]!r} has" if unbounded else "this fill has"
        raise ParameterError(
            f"{what} no epsilon, so that no sum stays within release.epsilon_budget={budget:g}; "
            "set it to null, or release fills with prior: counted alone"
        )
    spent = epsilon_spent(releases) or 0.0
    total = spent if counts in {release.counts for release in releases} else spent + epsilon
    if total > budget * (1 + 1e-9):
        names = ", ".join(repr(release.name) for release in releases)
        raise ParameterError(
            f"epsilon {epsilon:g} and {spent:g} of releases {names or 'before'} are {total:g}, above "
            f"release.epsilon_budget={budget:g}; take a smaller epsilon, counts that have left already, or raise the "
            "budget"
        )


def check_key(releases: Sequence[Release], *, key: str | None, other_keys: Sequence[str]) -> None:
    """``ParameterError`` where counts of a corpus left by another key than this clone's, and nobody says so.

    ``key``: id of this clone's, or ``None`` where it has none yet.
    """
    for release in releases:
        if release.counts is not None and release.key != key and release.key not in other_keys:
            raise ParameterError(
                f"release {release.name!r} of corpus {release.dataset!r} was counted by key {release.key!r}, and this "
                f"clone's is {key!r}: a second noise for the same words; bring back the folder data/private/keys of "
                f"then, or set release.other_keys: ['{release.key}'] to have their epsilons added up"
            )
