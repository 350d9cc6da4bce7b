"""The one place where the engine's faults and gRPC's statuses become our errors."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from pilothouse.core.outcome import Fault
from pilothouse.engine import codec
from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.errors import (
    AlreadyExists,
    Conflict,
    EngineLost,
    InvalidInput,
    Missing,
    NotPermitted,
    PilothouseError,
    Unavailable,
)
from pilothouse.faults import FaultKind

# What grpc.aio says when the other end of a stream is gone; the engine itself never says that.
_CUT_OFF = "Internal error from Core"
_FAULT_TRAILER = "pilothouse-fault-bin"
_CLASS: dict[FaultKind, type[PilothouseError]] = {
    FaultKind.INVALID: InvalidInput,
    FaultKind.NOT_FOUND: Missing,
    FaultKind.ALREADY_EXISTS: AlreadyExists,
    FaultKind.CONFLICT: Conflict,
    FaultKind.FORBIDDEN: NotPermitted,
    FaultKind.UNAUTHORIZED: NotPermitted,
    FaultKind.CHART_INVALID: InvalidInput,
    FaultKind.CHART_NOT_VERIFIED: InvalidInput,
    FaultKind.CHART_NOT_FOUND: InvalidInput,
    FaultKind.RENDER: InvalidInput,
    FaultKind.VALUES: InvalidInput,
    FaultKind.REJECTED: InvalidInput,
    FaultKind.UNREACHABLE: Unavailable,
    FaultKind.CHART_UNAVAILABLE: Unavailable,
    # Handles of an engine that has been replaced since they were given out: look again.
    FaultKind.UNKNOWN_CLUSTER: EngineLost,
    FaultKind.UNKNOWN_CHART: EngineLost,
}


@contextmanager
def our_errors(verb: str) -> Iterator[None]:
    """Raise our errors where gRPC raises its own."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise _translate(verb, error) from None
    except (grpc.aio.UsageError, grpc.aio.InternalError) as error:
        # The channel of a dead engine was closed under the call.
        msg = f"the engine went away during {verb}"
        raise EngineLost(msg, FaultKind.ENGINE_LOST) from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # grpc.aio cancels the calls of a channel that is closed, though nobody cancelled this task.
        msg = f"the engine went away during {verb}"
        raise EngineLost(msg, FaultKind.ENGINE_LOST) from None


def _translate(verb: str, error: grpc.aio.AioRpcError) -> PilothouseError:
    for key, value in error.trailing_metadata() or ():
        if key == _FAULT_TRAILER and isinstance(value, bytes):
            return as_error(codec.fault(pb.Fault.FromString(value)))
    gone = error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    if gone or error.details() == _CUT_OFF:
        return EngineLost(f"the engine went away during {verb}", FaultKind.ENGINE_LOST)
    return PilothouseError(f"{verb} failed in the engine: {error.details()}")


def as_error(fault: Fault) -> PilothouseError:
    """Return the exception for a fault."""
    return _CLASS.get(fault.kind, PilothouseError)(fault.message, fault.kind)
