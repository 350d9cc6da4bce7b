"""Protobuf to core values and back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pilothouse.api.kinds import Kind
from pilothouse.core.attention import Attention
from pilothouse.core.desired import ReleaseName
from pilothouse.core.drift_known import Difference
from pilothouse.core.observed import Health, ObjectRef, ObjectState, Record, WatchMode
from pilothouse.core.outcome import Fault
from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.faults import FaultKind
from pilothouse.ports import (
    Comparison,
    Credentials,
    HttpAnswer,
    HttpAsk,
    NamespaceSight,
    ObjectsChange,
    RecordChange,
    Sighting,
    WatchBatch,
)

_HEALTH: Mapping[int, Health] = {
    pb.ObjectState.UNKNOWN: Health.UNKNOWN,
    pb.ObjectState.CURRENT: Health.CURRENT,
    pb.ObjectState.IN_PROGRESS: Health.IN_PROGRESS,
    pb.ObjectState.FAILED: Health.FAILED,
    pb.ObjectState.TERMINATING: Health.TERMINATING,
    pb.ObjectState.NOT_FOUND: Health.NOT_FOUND,
}
_WATCH: Mapping[int, WatchMode] = {
    pb.CLUSTER: WatchMode.CLUSTER,
    pb.NAMESPACE: WatchMode.NAMESPACE,
    pb.POLL: WatchMode.POLL,
}
_FAULT_KIND: Mapping[int, FaultKind] = {
    number: FaultKind[name] for name, number in pb.Fault.Kind.items()
}


def fault(message: pb.Fault) -> Fault:
    """Read a fault; a kind this brain does not know is UNKNOWN."""
    return Fault(_FAULT_KIND.get(message.kind, FaultKind.UNKNOWN), message.message)


@cache
def resource(kind: Kind[Any]) -> pb.Resource:
    """Name a kind the way the engine wants it."""
    return pb.Resource(group=kind.group, version=kind.version, plural=kind.plural)


def connect_request(credentials: Credentials) -> pb.ConnectRequest:
    """Ask for a cluster handle."""
    request = pb.ConnectRequest(trusted=credentials.trusted, context=credentials.context)
    if credentials.in_cluster:
        request.in_cluster = True
    else:
        request.kubeconfig = credentials.kubeconfig
    if credentials.identity:
        request.identity.type = credentials.identity
        request.identity.credentials = credentials.identity_credentials
        request.identity.injected = not credentials.identity_credentials
    return request


def watch_batch(batch: pb.WatchBatch) -> WatchBatch:
    """Read a batch of changes; objects stay raw."""
    return WatchBatch(
        changes=tuple(
            (change.object, change.type == pb.WatchBatch.GONE) for change in batch.changes
        ),
        reset=batch.reset,
        synced=batch.synced,
        fault=fault(batch.fault) if batch.HasField("fault") else None,
        recovered=batch.recovered,
    )


def record(message: pb.Record) -> Record:
    """Read a release record."""
    return Record(
        revision=message.revision,
        status=message.status,
        digest=message.stamp_digest,
        owner=message.stamp_owner,
        source=message.stamp_source,
        created=moment(message.created_unix_ms),
        uid=message.uid,
        chart_name=message.chart_name,
        chart_version=message.chart_version,
        description=message.description,
    )


def sighting(batch: pb.ObserveBatch) -> Sighting:
    """Read what the eyes saw."""
    return Sighting(
        records=tuple(
            RecordChange(
                ReleaseName(change.record.namespace, change.record.name),
                record(change.record),
                gone=change.gone,
            )
            for change in batch.records
        ),
        objects=tuple(_objects(change) for change in batch.objects),
        reset=batch.reset,
        records_synced=batch.records_synced,
        fault=fault(batch.fault) if batch.HasField("fault") else None,
        recovered=batch.recovered,
        namespaces=tuple(
            NamespaceSight(
                one.namespace, one.synced, fault(one.fault) if one.HasField("fault") else None
            )
            for one in batch.namespaces
        ),
    )


def attention(said: Attention) -> pb.Attention:
    """Say how a release is to be looked at."""
    return pb.Attention(
        namespace=said.release.namespace,
        name=said.release.name,
        health_checks=[
            pb.HealthCheck(
                origin=one.origin,
                api_version=one.api_version,
                kind=one.kind,
                current=one.current,
                failed=one.failed,
            )
            for one in said.checks
        ],
        external=[ref(one) for one in said.external],
        token=said.token,
        # No release is without a namespace.
        alone=not said.release.namespace,
    )


def _objects(message: pb.ReleaseObjects) -> ObjectsChange:
    return ObjectsChange(
        release=ReleaseName(message.namespace, message.name),
        revision=message.revision,
        complete=message.complete,
        states=tuple(_state(one) for one in message.states),
        external=tuple(_state(one) for one in message.external),
        watch=_WATCH.get(message.watch, WatchMode.CLUSTER),
        token=message.token,
    )


def _state(one: pb.ObjectState) -> ObjectState:
    return ObjectState(
        object_ref(one.ref),
        _HEALTH.get(one.state, Health.UNKNOWN),
        one.message,
        altered=one.altered,
        sight=one.sight,
        scaled=one.scaled,
    )


def ref(one: ObjectRef) -> pb.Ref:
    """Name one object."""
    return pb.Ref(
        api_version=one.api_version, kind=one.kind, namespace=one.namespace, name=one.name
    )


def object_ref(one: pb.Ref) -> ObjectRef:
    """Read an object's name."""
    return ObjectRef(one.api_version, one.kind, one.namespace, one.name)


def comparison(one: pb.Comparison) -> Comparison:
    """Read what is different about one object."""
    return Comparison(
        object_ref(one.ref),
        tuple(Difference(found.path, found.manager) for found in one.differences),
        missing=one.missing,
        expires=one.expires,
        scaled=one.scaled,
        fault=one.fault.message if one.HasField("fault") else "",
    )


def moment(unix_ms: int) -> datetime | None:
    """Read a moment; 0 is none."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC) if unix_ms else None


def http_request(ask: HttpAsk) -> pb.HttpRequest:
    """Ask for one request to be sent."""
    return pb.HttpRequest(
        method=ask.method,
        url=ask.url,
        headers=[pb.HttpHeader(name=name, value=value) for name, value in ask.headers],
        body=ask.body,
        timeout_ms=int(ask.timeout.total_seconds() * 1000),
        max_reply_bytes=ask.reply_bytes,
        max_redirects=ask.redirects,
        ca_bundle=ask.ca_bundle,
        insecure_skip_tls_verify=ask.insecure_skip_tls_verify,
        client_certificate=ask.client_certificate,
        client_key=ask.client_key,
        tls_server_name=ask.tls_server_name,
    )


def http_answer(reply: pb.HttpReply) -> HttpAnswer:
    """Read a server's answer."""
    headers = tuple((header.name.lower(), header.value) for header in reply.headers)
    return HttpAnswer(reply.status, headers, reply.body, reply.truncated)
