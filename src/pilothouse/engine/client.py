"""The engine's verbs as coroutines."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import msgspec

from pilothouse.api.kinds import Kind
from pilothouse.api.meta import FIELD_MANAGER
from pilothouse.core.attention import Attention
from pilothouse.core.desired import ChartAsk, ReleaseName
from pilothouse.core.drift_known import Correction
from pilothouse.core.observed import Decoded, ObjectRef, Suspect
from pilothouse.core.outcome import Outcome
from pilothouse.core.versions import Found, Query
from pilothouse.engine import chart_codec, codec, run_codec
from pilothouse.engine.failures import our_errors
from pilothouse.engine.line import SERVICE, EngineLine
from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.errors import Missing
from pilothouse.faults import FaultKind
from pilothouse.ports import (
    Assignment,
    Comparison,
    Composed,
    Credentials,
    Document,
    HttpAnswer,
    HttpAsk,
    Order,
    Progress,
    ResolvedChart,
    Sighting,
    WatchBatch,
)

AnyKind = Kind[Any]


class EngineClient(EngineLine):
    """Every verb, as a coroutine."""

    async def get(self, at: Credentials, kind: AnyKind, name: str, namespace: str = "") -> bytes:
        """Read one object."""
        request = pb.GetRequest(
            cluster=await self.connect(at),
            resource=codec.resource(kind),
            namespace=namespace,
            name=name,
        )
        return await self._object(pb.ObjectCall(get=request))

    async def get_by_kind(
        self, at: Credentials, api_version: str, kind: str, name: str, namespace: str
    ) -> bytes:
        """Read one object of a kind whose plural only the cluster knows."""
        group, _, version = api_version.rpartition("/")
        request = pb.GetRequest(
            cluster=await self.connect(at),
            resource=pb.Resource(group=group, version=version, kind=kind),
            namespace=namespace,
            name=name,
        )
        return await self._object(pb.ObjectCall(get=request))

    async def create(
        self, at: Credentials, kind: AnyKind, manifest: bytes, namespace: str = ""
    ) -> bytes:
        """Create one object."""
        request = pb.CreateRequest(
            cluster=await self.connect(at),
            resource=codec.resource(kind),
            namespace=namespace,
            object=manifest,
        )
        return await self._object(pb.ObjectCall(create=request))

    async def merge(
        self,
        at: Credentials,
        kind: AnyKind,
        where: tuple[str, str],
        patch: bytes,
        subresource: str = "",
    ) -> bytes:
        """Merge-patch the object at (namespace, name)."""
        # The most frequent call. A request that is made in its place is not copied there.
        call = pb.ObjectCall()
        request = call.patch
        request.cluster = await self.connect(at)
        request.resource.CopyFrom(codec.resource(kind))
        request.namespace, request.name = where
        request.subresource = subresource
        request.type = pb.PatchRequest.MERGE
        request.patch = patch
        request.field_manager = FIELD_MANAGER
        return await self._object(call)

    async def delete(self, at: Credentials, kind: AnyKind, name: str, namespace: str = "") -> None:
        """Delete one object."""
        request = pb.DeleteRequest(
            cluster=await self.connect(at),
            resource=codec.resource(kind),
            namespace=namespace,
            name=name,
        )
        await self._object(pb.ObjectCall(delete=request))

    async def resolve_chart(self, chart: ChartAsk) -> ResolvedChart:
        """Find a chart and bring it into the engine's cache."""
        request = pb.ResolveChartRequest(source=chart_codec.chart_source(chart))
        reply = await self._unary("ResolveChart", request, pb.ResolveChartReply)
        return ResolvedChart(
            reply.name, reply.version, reply.digest, reply.republished, tuple(reply.warnings)
        )

    async def find_versions(
        self, chart: ChartAsk, queries: Sequence[Query], max_age: timedelta
    ) -> list[Found]:
        """Ask a chart's repository which versions it has; nothing is downloaded."""
        request = pb.FindVersionsRequest(
            source=chart_codec.chart_source(chart),
            queries=[
                pb.FindVersionsRequest.Query(name=one.name, version=one.version, held=one.held)
                for one in queries
            ],
            max_age_ms=int(max_age.total_seconds() * 1000),
        )
        reply = await self._unary("FindVersions", request, pb.FindVersionsReply)
        return [chart_codec.found(answer) for answer in reply.answers]

    async def compose(
        self,
        documents: Sequence[Document],
        assignments: Sequence[Assignment],
        patches: Sequence[Document],
    ) -> Composed:
        """Put values and patches together as Helm does; raises InvalidInput, naming the origin."""
        request = pb.ComposeRequest(
            documents=[_document(one) for one in documents],
            assignments=[
                pb.ComposeRequest.Assignment(origin=one.origin, name=one.name, value=one.value)
                for one in assignments
            ],
            patches=[_document(one) for one in patches],
        )
        reply = await self._unary("Compose", request, pb.ComposeReply)
        # 1.0 and 1 stay apart (a document's number, an assignment's): templates print large ones differently.
        return Composed(msgspec.json.decode(reply.values), reply.patches_sha, tuple(reply.patches))

    async def decode(self, at: Credentials, release: ReleaseName, revision: int) -> Decoded:
        """Read one revision whole."""
        request = pb.HistoryRequest(
            cluster=await self.connect(at),
            namespace=release.namespace,
            name=release.name,
            revision=revision,
            with_config=True,
        )
        reply = await self._unary("History", request, pb.HistoryReply)
        if not reply.records:
            msg = f"revision {revision} of {release} is gone"
            raise Missing(msg, FaultKind.NOT_FOUND)
        found = reply.records[-1]
        values = msgspec.json.decode(found.config) if found.config else {}
        return Decoded(
            found.revision, found.chart_name, found.chart_version, values or {}, found.description
        )

    async def http(self, ask: HttpAsk) -> HttpAnswer:
        """Send one request to a user's address; any status is an answer."""
        reply = await self._unary("Http", codec.http_request(ask), pb.HttpReply)
        return codec.http_answer(reply)

    async def compare(
        self, at: Credentials, release: ReleaseName, revision: int, suspects: Sequence[Suspect]
    ) -> list[Comparison]:
        """Ask what applying these objects, or all of them, again would change."""
        request = pb.CompareRequest(
            cluster=await self.connect(at),
            namespace=release.namespace,
            name=release.name,
            revision=revision,
            objects=[codec.ref(one.ref) for one in suspects],
        )
        reply = await self._unary("Compare", request, pb.CompareReply)
        return [codec.comparison(one) for one in reply.objects]

    async def repair(
        self,
        at: Credentials,
        release: ReleaseName,
        revision: int,
        corrections: Sequence[Correction],
    ) -> dict[ObjectRef, str]:
        """Apply objects again; return why some could not be."""
        request = pb.RepairRequest(
            cluster=await self.connect(at),
            namespace=release.namespace,
            name=release.name,
            revision=revision,
            objects=[
                pb.RepairRequest.Part(ref=codec.ref(one.ref), leave=one.leave)
                for one in corrections
            ],
        )
        reply = await self._unary("Repair", request, pb.RepairReply)
        return {
            codec.object_ref(one.ref): one.fault.message
            for one in reply.objects
            if one.HasField("fault")
        }

    async def watch(
        self, at: Credentials, kind: AnyKind, *, field_selector: str = "", metadata: bool = False
    ) -> AsyncGenerator[WatchBatch, None]:
        """Follow a kind until the engine dies (EngineLost) or the caller leaves."""
        request = pb.WatchRequest(
            cluster=await self.connect(at),
            resource=codec.resource(kind),
            field_selector=field_selector,
            metadata_only=metadata,
        )
        async with aclosing(self._watch(pb.ObjectCall(watch=request))) as batches:
            async for batch in batches:
                yield codec.watch_batch(batch)

    async def list(
        self, at: Credentials, kind: AnyKind, namespace: str
    ) -> AsyncGenerator[bytes, None]:
        """Read every object of a kind in a namespace, once."""
        request = pb.ListRequest(
            cluster=await self.connect(at), resource=codec.resource(kind), namespace=namespace
        )
        async with aclosing(self._stream("List", request, pb.ListPage)) as pages:
            async for page in pages:
                for raw in page.objects:
                    yield raw

    async def observe(
        self, at: Credentials, news: Callable[[], Awaitable[Sequence[Attention | ReleaseName]]]
    ) -> AsyncGenerator[Sighting, None]:
        """Watch every release of a cluster and their objects.

        `news` is asked again and again how to look at them; a bare name is looked after no longer.
        """
        first = pb.ObserveRequest(cluster=await self.connect(at))

        async def requests() -> AsyncGenerator[pb.ObserveRequest, None]:
            yield first
            while True:
                yield pb.ObserveRequest(attend=[_attention(one) for one in await news()])

        living = await self._living()
        with our_errors("Observe"):
            call = living.channel.stream_stream(
                SERVICE + "Observe",
                request_serializer=pb.ObserveRequest.SerializeToString,
                response_deserializer=pb.ObserveBatch.FromString,
            )(requests())
            try:
                async for batch in call:
                    yield codec.sighting(batch)
            finally:
                call.cancel()

    async def check_expressions(self, expressions: Sequence[tuple[str, str]]) -> None:
        """Refuse what is not CEL; raises InvalidInput, naming the field it is in."""
        request = pb.CheckExpressionsRequest(
            expressions=[
                pb.CheckExpressionsRequest.Expression(origin=origin, text=text)
                for origin, text in expressions
            ]
        )
        await self._unary("CheckExpressions", request, pb.CheckExpressionsReply)

    async def run(self, at: Credentials, order: Order) -> AsyncGenerator[Progress | Outcome, None]:
        """Do an action. Leaving early ends its waits, never an apply under way."""
        request = run_codec.run_request(order)
        request.cluster = await self.connect(at)
        async with aclosing(self._stream("Run", request, pb.RunEvent)) as events:
            async for event in events:
                yield run_codec.run_event(event)


def _attention(one: Attention | ReleaseName) -> pb.Attention:
    if isinstance(one, ReleaseName):
        return pb.Attention(namespace=one.namespace, name=one.name, gone=True)
    return codec.attention(one)


def _document(document: Document) -> pb.ComposeRequest.Document:
    return pb.ComposeRequest.Document(origin=document.origin, text=document.text)
