"""Events, on a real API server."""

import secrets

import msgspec
from make import release

from pilothouse.api.kinds import EVENT, RELEASE
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.core.outcome import Notice
from pilothouse.engine.client import EngineClient


async def test_the_same_notice_about_the_same_spec_is_one_event(engine: EngineClient, at) -> None:
    objects, uid = Objects(engine, at), secrets.token_hex(8)
    writer = ReleaseWriter(objects, Cache(RELEASE), "tester")

    def of_generation(generation: int):
        made = release(generation=generation)
        return msgspec.structs.replace(
            made, metadata=msgspec.structs.replace(made.metadata, name=f"told-{uid}", uid=uid)
        )

    again = Notice("CorrectedDrift", "put back: /data/colour")
    for notice in (again, Notice("CorrectedDrift", "put back: /data/shape"), again, again):
        await writer.tell(of_generation(1), notice)
    await writer.tell(of_generation(2), again)
    found = await objects.list(EVENT, "default")
    ours = [one for one in found if one.metadata.name.startswith(f"told-{uid}.")]
    assert sorted(one.count for one in ours) == [1, 1, 3]
