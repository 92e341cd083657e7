"""Limits on how many stages with a tag run at once, as Prefect's own tag limits."""

from collections.abc import Mapping


def set_tag_limits(limits: Mapping[str, int]) -> None:
    """Let Prefect's server know the limits; ``params.yaml`` wins over a limit that the server has already."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        for tag, limit in limits.items():
            client.create_concurrency_limit(tag=tag, concurrency_limit=limit)
