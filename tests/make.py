"""Builders for tests: name what matters, default the rest."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pilothouse.api.meta import ObjectMeta
from pilothouse.api.release import (
    EXTERNAL_NAME,
    FINALIZER,
    ChartSpec,
    Release,
    ReleaseParameters,
    ReleaseSpec,
)
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.observed import Health, ObjectRef, Objects, ObjectState, Record

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def release(
    values: dict[str, Any] | None = None,
    *,
    version: str = "1.0.0",
    generation: int = 1,
    status: ReleaseStatus | None = None,
    deleted: bool = False,
    finalizers: Sequence[str] = (FINALIZER,),
    annotations: dict[str, str] | None = None,
    rollback_limit: int | None = None,
    policies: list[str] | None = None,
    deletion_policy: str = "",
    **parameters: Any,
) -> Release:
    """A Release of the chart `tiny`."""
    return Release(
        metadata=ObjectMeta(
            name="shop",
            uid="uid-shop",
            resource_version="1",
            generation=generation,
            finalizers=list(finalizers),
            annotations={EXTERNAL_NAME: "shop"} | (annotations or {}),
            deletion_timestamp="2026-11-15T11:00:00Z" if deleted else None,
        ),
        spec=ReleaseSpec(
            for_provider=ReleaseParameters(
                chart=ChartSpec(
                    repository="http://127.0.0.1:1/charts", name="tiny", version=version
                ),
                namespace="web",
                values=values or {},
                **parameters,
            ),
            rollback_limit=rollback_limit,
            management_policies=["*"] if policies is None else policies,
            deletion_policy=deletion_policy,
        ),
        status=status or ReleaseStatus(),
    )


def record(revision: int = 1, status: str = "deployed", digest: str = "", **more: Any) -> Record:
    """A revision made by us when it has a digest."""
    owner = more.pop("owner", "us" if digest else "")
    return Record(
        revision=revision,
        status=status,
        digest=digest,
        owner=owner,
        uid=more.pop("uid", f"uid-{revision}"),
        created=more.pop("created", NOW - timedelta(minutes=1)),
        **more,
    )


def objects(revision: int = 1, *troubled: Health, total: int = 4) -> Objects:
    """The objects of a revision; as many are troubled as given."""
    states = tuple(
        ObjectState(ObjectRef("v1", "Pod", "web", f"pod-{number}"), health, "not yet")
        for number, health in enumerate(troubled)
    )
    return Objects(revision, total, total - len(states), states)


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 15, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment
