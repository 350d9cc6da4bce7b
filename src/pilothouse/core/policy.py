"""What Pilothouse may do with a Helm release, by the Release's managementPolicies and deletionPolicy."""

from dataclasses import dataclass

from pilothouse.api.release import Release

ALL = "*"
_CHANGES = frozenset({ALL, "Create", "Update", "Delete"})


@dataclass(frozen=True, slots=True)
class Policies:
    """What is allowed; looking is always allowed."""

    create: bool = True
    update: bool = True
    delete: bool = True
    late_initialize: bool = True


def policies_of(release: Release) -> Policies:
    """Read the policies. Raises ValueError for a combination that makes no sense."""
    spec = release.spec
    given = set(spec.management_policies)
    orphan = spec.deletion_policy == "Orphan" or spec.reclaim_policy in {"Retain", "Orphan"}
    if not given or ALL in given:
        return Policies(delete=not orphan)
    if "Observe" not in given and not release.metadata.deletion_timestamp:
        msg = "spec.managementPolicies: what may not be observed cannot be managed; add Observe"
        raise ValueError(msg)
    # Named policies are the newer word: as upstream, they win over deletionPolicy.
    return Policies(
        create="Create" in given,
        update="Update" in given,
        delete="Delete" in given,
        late_initialize="LateInitialize" in given,
    )


def seniority(release: Release) -> tuple[str, bool, str]:
    """Return what puts the first of two Releases first.

    Kubernetes tells ages in seconds, so of two that are equally old the one that has acted comes first.
    """
    metadata = release.metadata
    idle = not release.status.last_attempt.action
    return metadata.creation_timestamp or "", idle, metadata.uid


def writes(release: Release) -> bool:
    """Whether a Release may ever change its Helm release; one that only observes claims nothing.

    Without any policy it is paused, and keeps what it has.
    """
    return not release.spec.management_policies or not changes_nothing(release)


def changes_nothing(release: Release) -> bool:
    """Whether no policy is named that lets a Helm release be changed; api/release.py has the same rule."""
    return _CHANGES.isdisjoint(release.spec.management_policies)
