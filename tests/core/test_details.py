"""What a status says of single objects."""

import msgspec
from make import NOW, objects, record, release

from pilothouse.api.status import ReleaseStatus
from pilothouse.core.desired import Defaults, Sources, desired
from pilothouse.core.observed import Health, ObjectRef, Objects, ObjectState, Observed
from pilothouse.core.plan import Rest
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.state import classify

WEB = ObjectRef("apps/v1", "Deployment", "web", "web")


def quiet(
    seen: Objects | None, *, readiness: str = "", default: str = "Objects", secret: str = ""
) -> ReleaseStatus:
    wanted_release = release()
    spec = msgspec.structs.replace(wanted_release.spec, readiness=readiness)
    wanted_release = msgspec.structs.replace(wanted_release, spec=spec)
    sources = Sources(values={}, secrets=frozenset({secret}))
    wanted = desired(wanted_release, sources, Defaults(readiness=default))
    observed = Observed(record=record(1, "deployed", wanted.digest), objects=seen)
    state = classify(wanted, observed, NOW)
    return conclude_quiet(wanted_release, wanted, observed, state, Rest(), NOW)


def ready(status: ReleaseStatus) -> tuple[str, str]:
    found = next(one for one in status.conditions if one.type == "Ready")
    return found.status, found.message


def test_every_object_is_in_the_status() -> None:
    status = quiet(Objects(1, 2, 1, (ObjectState(WEB, Health.FAILED, "it broke"),)))
    assert [(one.kind, one.name, one.state, one.message) for one in status.resources] == [
        ("Deployment", "web", "Failed", "it broke")
    ]
    assert status.summary == "1/2"
    assert ready(status) == ("False", "1/2 objects ready; Deployment web is Failed: it broke")


def test_objects_of_another_revision_are_not_told() -> None:
    status = quiet(Objects(7, 1, 1, (ObjectState(WEB, Health.CURRENT),)))
    assert status.resources == []
    assert ready(status)[0] == "False"


def test_what_came_from_a_secret_is_masked() -> None:
    broken = ObjectState(WEB, Health.FAILED, "cannot log in with hunter2")
    status = quiet(Objects(1, 1, 0, (broken,)), secret="hunter2")  # noqa: S106 - the point
    assert status.resources[0].message == "cannot log in with ***"
    assert "hunter2" not in ready(status)[1]


def test_an_overlong_message_is_cut() -> None:
    status = quiet(Objects(1, 1, 0, (ObjectState(WEB, Health.FAILED, "x" * 1000),)))
    assert len(status.resources[0].message) == 300


def test_helm_readiness_asks_no_object() -> None:
    troubled = objects(1, Health.FAILED)
    assert ready(quiet(troubled))[0] == "False"
    assert ready(quiet(troubled, readiness="Helm")) == ("True", "")
    assert ready(quiet(None, readiness="Helm")) == ("True", "")
    assert ready(quiet(troubled, default="Helm"))[0] == "True"
    assert ready(quiet(troubled, readiness="Objects", default="Helm"))[0] == "False"
