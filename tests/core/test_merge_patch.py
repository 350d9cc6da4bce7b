"""A merge patch says what differs, all of it and nothing else."""

import types
import typing
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.api.health import ResourceState
from pilothouse.api.meta import Condition, Wire
from pilothouse.api.status import AtProvider, LastAttempt, ReleaseStatus
from pilothouse.core.merge_patch import difference

# Few of each, so that two values often have something in common.
WORDS = st.sampled_from(["", "a", "b"])
NUMBERS = st.integers(0, 2)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field; a type that is not known here needs a thought about how it is patched."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return st.lists(values(inner[0]), max_size=2)
    if origin in {types.UnionType, typing.Union}:
        return st.one_of(*map(values, inner))
    if isinstance(hint, type) and issubclass(hint, Wire):
        fields = {name: values(of) for name, of in typing.get_type_hints(hint).items()}
        return st.builds(hint, **fields)
    return {str: WORDS, int: NUMBERS, bool: st.booleans(), type(None): st.none()}[hint]


STATUSES = values(ReleaseStatus)


def patched(target: Any, patch: Any) -> Any:
    """As RFC 7386 has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), value)
    return result


@given(STATUSES, STATUSES)
def test_a_patched_status_is_the_other(before, after):
    stored = patched(msgspec.to_builtins(before), difference(before, after))
    assert stored == msgspec.to_builtins(after)


@given(STATUSES, STATUSES)
def test_nothing_that_is_equal_is_in_it(before, after):
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    for name in difference(before, after):
        assert old.get(name) != new.get(name)


@given(STATUSES)
def test_equal_statuses_need_no_patch(status):
    again = msgspec.convert(msgspec.to_builtins(status), ReleaseStatus)
    assert difference(status, again) == {}


def test_only_what_differs_is_sent():
    ready = Condition(type="Ready", status="True", reason="Available", last_transition_time="t")
    objects = [ResourceState(api_version="v1", kind="ConfigMap", name="a", state="Current")]
    before = ReleaseStatus(
        conditions=[ready],
        summary="1/1",
        resources=objects,
        at_provider=AtProvider(state="deployed", revision=1),
        last_attempt=LastAttempt(action="Install", started="t"),
    )
    after = msgspec.structs.replace(
        before,
        summary="",
        at_provider=AtProvider(state="deployed", revision=2),
        last_attempt=LastAttempt(action="Upgrade"),
    )
    assert difference(before, after) == {
        "summary": None,
        "atProvider": {"revision": 2},
        "lastAttempt": {"action": "Upgrade", "started": None},
    }
