"""What gRPC says when the engine is gone, and when it only could not do something."""

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from pilothouse.engine.failures import our_errors
from pilothouse.errors import EngineLost, PilothouseError


@pytest.mark.parametrize(
    ("code", "details", "lost"),
    [
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", True),
        (grpc.StatusCode.CANCELLED, "Channel closed.", True),
        (grpc.StatusCode.INTERNAL, "Internal error from Core", True),
        (grpc.StatusCode.INTERNAL, "grpc: error while marshaling", False),
    ],
)
def test_a_call_that_was_cut_off_is_the_engines_end(
    code: grpc.StatusCode, details: str, *, lost: bool
) -> None:
    with pytest.raises(PilothouseError) as raised, our_errors("Observe"):
        raise AioRpcError(code, Metadata(), Metadata(), details)
    assert isinstance(raised.value, EngineLost) is lost
