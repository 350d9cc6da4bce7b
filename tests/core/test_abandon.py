"""A Release whose cluster is certainly gone goes after a while; one whose cluster is silent waits."""

from datetime import timedelta

import pytest
from make import NOW, release

from pilothouse.core.abandon import PATIENCE, conclude_abandoned, farewell


def test_certainty_takes_time():
    early = farewell('ProviderConfig "x" not found', NOW, NOW + PATIENCE / 2, PATIENCE)
    assert not early.now
    assert early.until == NOW + PATIENCE
    assert "12:10:00 UTC" in early.message
    late = farewell('ProviderConfig "x" not found', NOW, NOW + PATIENCE, PATIENCE)
    assert late.now


def test_what_may_come_back_is_waited_for():
    told = farewell("no answer", None, NOW + timedelta(days=1), PATIENCE)
    assert not told.now
    assert told.until is None
    assert "pilothouse.dev/abandon=true" in told.message


def test_the_operator_may_forbid_it():
    assert not farewell("gone", NOW, NOW + timedelta(days=1), None).now


def test_the_message_stays_the_same_while_waiting():
    first = farewell("gone", NOW, NOW, PATIENCE)
    second = farewell("gone", NOW, NOW + PATIENCE / 3, PATIENCE)
    assert first.message == second.message


@pytest.mark.parametrize(
    ("cluster", "said"),
    [("selected", "on the cluster of selected as it is"), ("", "on its cluster as it is")],
)
def test_what_is_left_is_told_with_the_cluster_it_is_on(cluster, said):
    done = conclude_abandoned(release(deleted=True), cluster, "gone", NOW)
    assert done.entry
    assert done.entry.cluster == cluster
    assert done.notice
    assert said in done.notice.message
