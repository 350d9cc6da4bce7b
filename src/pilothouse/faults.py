"""The kinds of failure, in the words the brain reasons with.

The engine sends these by name (proto `Fault.Kind`); nothing below `engine/` knows the wire.
"""

from enum import StrEnum


class FaultKind(StrEnum):
    """What went wrong; the value is the reason a condition shows."""

    UNKNOWN = "ReconcileError"
    INVALID = "InvalidInput"
    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    CONFLICT = "FieldConflict"
    FORBIDDEN = "Forbidden"
    UNAUTHORIZED = "Unauthorized"
    REJECTED = "ObjectRejected"
    UNREACHABLE = "ClusterUnreachable"
    NAMESPACE_MISSING = "NamespaceMissing"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    CHART_NOT_FOUND = "ChartNotFound"
    CHART_UNAVAILABLE = "ChartUnavailable"
    CHART_INVALID = "ChartInvalid"
    CHART_NOT_VERIFIED = "ChartNotVerified"
    RENDER = "RenderFailed"
    VALUES = "InvalidValues"
    BUSY = "OperationInProgress"
    TIMEOUT = "TimedOut"
    CANCELLED = "Superseded"
    HOOK = "HookFailed"
    UNKNOWN_CLUSTER = "ClusterHandleLost"
    UNKNOWN_CHART = "ChartHandleLost"
    ENGINE_LOST = "EngineLost"


# There was no getting the chart, or not in a shape that may be used.
NO_CHART = frozenset(
    {
        FaultKind.CHART_NOT_FOUND,
        FaultKind.CHART_UNAVAILABLE,
        FaultKind.CHART_INVALID,
        FaultKind.CHART_NOT_VERIFIED,
    }
)
