"""Which ProviderConfig a Release has that selects one, and what is said when there is none."""

import msgspec
import pytest
from make import release

from pilothouse.api.kinds import PROVIDER_CONFIG
from pilothouse.api.meta import ObjectMeta, OwnerReference
from pilothouse.api.provider import ProviderConfig, ProviderConfigSpec
from pilothouse.api.release import Release
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.fleet import Fleet
from pilothouse.errors import ClusterForgotten, Missing


def owned(uid: str) -> list[OwnerReference]:
    return [OwnerReference(uid=uid, controller=True)] if uid else []


def selecting(uid: str) -> Release:
    raw = msgspec.to_builtins(release())
    raw["spec"]["providerSelector"] = {"matchControllerRef": True}
    one = msgspec.convert(raw, Release)
    metadata = msgspec.structs.replace(one.metadata, owner_references=owned(uid))
    return msgspec.structs.replace(one, metadata=metadata)


def fleet(**configs: str) -> Fleet:
    cache = Cache(PROVIDER_CONFIG)
    for name, uid in configs.items():
        metadata = ObjectMeta(name=name, resource_version="1", owner_references=owned(uid))
        cache.put(
            PROVIDER_CONFIG.key(metadata),
            "1",
            ProviderConfig(metadata=metadata, spec=ProviderConfigSpec()),
        )
    return Fleet(None, cache, credentials=None, wake=None, wake_all=None)  # type: ignore[arg-type] # nothing is reached


def test_it_is_the_one_of_the_same_controller() -> None:
    known = fleet(edge="composite", other="stranger", nobodys="")
    assert known.config_of(selecting("composite")) == "edge"


def test_one_that_is_gone_is_certainly_gone() -> None:
    with pytest.raises(ClusterForgotten, match="matchControllerRef"):
        fleet(other="stranger").config_of(selecting("composite"))


def test_without_a_controller_nothing_is_certain() -> None:
    with pytest.raises(Missing) as raised:
        fleet(nobodys="").config_of(selecting(""))
    assert not isinstance(raised.value, ClusterForgotten)
