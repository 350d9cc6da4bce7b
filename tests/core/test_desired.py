"""The digest says "changed" exactly when what reaches the cluster changed."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import release

from pilothouse.api.release import ChartSpec
from pilothouse.api.status import AtProvider, DeployedChart, ReleaseStatus
from pilothouse.core.desired import (
    Sources,
    desired,
    needs_version,
)
from pilothouse.core.spelling import changes, duration, spelled

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
values = st.dictionaries(st.text(max_size=3), json_values, max_size=4)


@given(values)
def test_equal_values_have_equal_digests_whatever_their_order(given_values):
    turned = dict(reversed(given_values.items()))
    assert desired(release(given_values)).digest == desired(release(turned)).digest


@given(st.integers(2**53, 10**30), st.booleans())
def test_a_number_too_big_to_be_exact_is_what_a_float_makes_of_it(number, negative):
    number = -number if negative else number
    assert (
        spelled({"n": number})
        == spelled({"n": float(number)})
        == spelled({"n": int(float(number))})
    )


@given(values, values)
def test_different_values_have_different_digests(one, other):
    same = spelled(one) == spelled(other)
    assert (desired(release(one)).digest == desired(release(other)).digest) is same


@given(values, values)
def test_changes_names_something_exactly_when_there_is_a_difference(one, other):
    assert bool(changes(one, other)) is (spelled(one) != spelled(other))


def test_one_is_one_point_zero():
    assert desired(release({"n": 1})).digest == desired(release({"n": 1.0})).digest


def test_true_is_not_one():
    assert desired(release({"n": True})).digest != desired(release({"n": 1})).digest


@pytest.mark.parametrize("version", ["v1.0.0", "1.0.0+build5"])
def test_versions_compare_as_semver(version):
    assert desired(release(version=version)).digest == desired(release(version="1.0.0")).digest


def test_a_version_left_empty_stays_what_is_deployed():
    assert needs_version(desired(release(version="")))
    settled = desired(of_chart("tiny", status=SETTLED))
    assert not needs_version(settled)
    assert settled.digest == desired(release(version="1.4.2")).digest


def of_chart(name="", **asked):
    """A Release that names no version."""
    status, url = asked.pop("status"), asked.pop("url", "")
    one = release(version="", status=status)
    repository = "" if url else asked.pop("repository", one.spec.for_provider.chart.repository)
    chart = ChartSpec(repository=repository, name=name, url=url)
    wanted = msgspec.structs.replace(one.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(one.spec, for_provider=wanted)
    return msgspec.structs.replace(one, spec=spec)


PACKED = "http://127.0.0.1:1/tiny-1.4.2.tgz"
SETTLED = ReleaseStatus(
    at_provider=AtProvider(version="1.4.2", state="deployed"),
    chart=DeployedChart(source="http://127.0.0.1:1/charts/tiny", version="1.4.2"),
)
FROM_URL = msgspec.structs.replace(SETTLED, chart=DeployedChart(source=PACKED, version="1.4.2"))
ADOPTED = msgspec.structs.replace(SETTLED, chart=DeployedChart())
# An upgrade to another chart, which is version 0.3.0, has failed.
FAILED_ELSEWHERE = msgspec.structs.replace(
    SETTLED, at_provider=AtProvider(version="0.3.0", state="failed")
)


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        pytest.param(of_chart("tiny", status=SETTLED), "1.4.2", id="what is deployed stands"),
        pytest.param(of_chart("other", status=SETTLED), "", id="another chart, another number"),
        pytest.param(
            of_chart("tiny", status=SETTLED, repository="http://127.0.0.1:1/mirror"),
            *("",),
            id="another repository may not have it",
        ),
        pytest.param(of_chart("tiny", status=FROM_URL), "", id="from url to a repository"),
        pytest.param(of_chart(url=PACKED, status=FROM_URL), "1.4.2", id="the same url"),
        pytest.param(of_chart(url=f"{PACKED}2", status=FROM_URL), "", id="another url"),
        pytest.param(of_chart("tiny", status=ADOPTED), "", id="only the record tells of which"),
        pytest.param(of_chart(url=PACKED, status=ADOPTED), "1.4.2", id="an adopted url"),
        pytest.param(of_chart("tiny", status=FAILED_ELSEWHERE), "1.4.2", id="back from a failure"),
        pytest.param(
            of_chart("other", status=FAILED_ELSEWHERE), "", id="which is asked the record"
        ),
    ],
)
def test_a_deployed_version_is_one_of_its_chart_only(asked, version):
    assert desired(asked).chart.version == version
    assert desired(asked, version="2.0.0").chart.version == "2.0.0"


def test_patches_are_part_of_what_reaches_the_cluster():
    patched = desired(release(), Sources(patches_sha="abc"))
    assert patched.digest != desired(release()).digest


def test_composed_values_win_over_the_inline_ones():
    assert desired(release({"a": 1}), Sources(values={"a": 2})).values == {"a": 2}


@pytest.mark.parametrize("flag", ["take_ownership", "ssa_force_conflicts", "skip_crds"])
def test_apply_flags_are_part_of_the_question(flag):
    assert desired(release(**{flag: True})).digest != desired(release()).digest


def test_waiting_is_not_part_of_what_reaches_the_cluster():
    assert desired(release(wait=True)).digest == desired(release()).digest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90s", 90), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), (".5m", 30), ("1.h", 3600)],
        *[("2500us", 0.0025), ("2000µs", 0.002), ("90000000000ns", 90)],
        *[("", 300), ("0", 300), ("0s", 300)],
    ],
)
def test_durations_are_gos(text, seconds):
    assert duration(text, "f") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["5", "five", "5m!", "-5m", "m5", "2562048h", "99999999999h"])
def test_a_bad_duration_names_its_field(text):
    with pytest.raises(ValueError, match=r"spec\.forProvider\.waitTimeout"):
        desired(release(wait_timeout=text))


def test_long_lists_of_changes_are_cut():
    said = changes({}, {f"k{number}": 1 for number in range(9)})
    assert said == "k0, k1, k2, k3, k4 and 4 more"
