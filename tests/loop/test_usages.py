"""What a Release uses is written when it changes, and asked about never."""

from typing import Any

import msgspec
import pytest
from make import release

from pilothouse.api.meta import Condition, Key
from pilothouse.api.references import ProviderConfigReference
from pilothouse.api.release import FINALIZER, Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.errors import Unavailable
from pilothouse.faults import FaultKind
from pilothouse.loop.survey import Memory
from pilothouse.loop.usages import Usages

SHOP = Key("releases.helm.crossplane.io", "", "shop")


class Bookkeeping:
    """One process: what it remembers, and what it writes."""

    def __init__(self) -> None:
        self.remembered = Memory()
        self.written: list[str] = []
        self.refuses: Exception | None = None
        self.usages = Usages(self, self)  # type: ignore[arg-type]

    def memory(self, _: Key) -> Memory:
        return self.remembered

    def config_of(self, one: Release) -> str:
        return one.spec.provider_config_ref.name

    async def claim(self, one: Release, config: str) -> Release:
        self.written.append(f"claim {config}")
        return one

    async def use(self, _: Release, config: str) -> None:
        if self.refuses:
            raise self.refuses
        self.written.append(config)

    async def keep(self, *ones: Release) -> list[str]:
        before = len(self.written)
        for one in ones:
            await self.usages.keep(SHOP, one)
        return self.written[before:]


def using(config: str, *, synced: int = 0, generation: int = 1, **more: Any) -> Release:
    """A Release; `synced` is the generation that was done with."""
    told = Condition(
        type="Synced",
        status="True",
        reason="ReconcileSuccess",
        last_transition_time="2026-11-15T12:00:00Z",
        observed_generation=synced,
    )
    status = ReleaseStatus(conditions=[told] if synced else [])
    one = release(generation=generation, status=status, **more)
    named = ProviderConfigReference(name=config)
    return msgspec.structs.replace(
        one, spec=msgspec.structs.replace(one.spec, provider_config_ref=named)
    )


def unclaimed(one: Release) -> Release:
    assert one.metadata.finalizers == [FINALIZER]
    return msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, finalizers=[])
    )


async def test_a_change_is_written_once() -> None:
    one = Bookkeeping()
    assert await one.keep(unclaimed(using("a")), using("a"), using("a")) == ["claim a"]
    moved = using("b", generation=2)
    assert await one.keep(moved, moved) == ["b"]
    assert await one.keep(using("a", generation=3)) == ["a"]


async def test_after_a_restart_nothing_is_asked_about_what_was_done_with() -> None:
    assert await Bookkeeping().keep(using("a", synced=1)) == []
    again = Bookkeeping()
    moved = using("b", synced=1, generation=2)
    assert await again.keep(moved, moved) == ["b"], "edited while nobody was there"
    unfinished = using("a")
    assert await Bookkeeping().keep(unfinished, unfinished) == ["a"]


async def test_what_could_not_be_written_is_written_later() -> None:
    one = Bookkeeping()
    await one.keep(using("a", synced=1))
    one.refuses = Unavailable("away", FaultKind.UNREACHABLE)
    moved = using("b", generation=2)
    with pytest.raises(Unavailable):
        await one.keep(moved)
    one.refuses = None
    assert await one.keep(moved, moved) == ["b"]


@pytest.mark.parametrize("more", [{"deleted": True}, {"policies": []}])
async def test_what_goes_or_is_paused_is_left_alone(more) -> None:
    assert await Bookkeeping().keep(using("b", generation=2, **more)) == []
