package fault

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// Trailer is where a failed call carries its serialised Fault.
const Trailer = "pilothouse-fault-bin"

// ToStatus turns an error into what a gRPC handler returns: a status, and the fault in the trailer. It serves
// unary calls and streams alike (pass the stream's context), and is nil for a nil error.
func ToStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e := From(err)
	if raw, marshalErr := proto.Marshal(e.Proto()); marshalErr == nil {
		// Fails only outside a call, where there is no one to tell.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(Trailer, string(raw)))
	}
	return status.Error(code(e.Kind), e.Message)
}

func code(kind Kind) codes.Code {
	switch kind {
	case enginev1.Fault_INVALID, enginev1.Fault_REJECTED, enginev1.Fault_CHART_INVALID, enginev1.Fault_CHART_NOT_VERIFIED,
		enginev1.Fault_RENDER, enginev1.Fault_VALUES:
		return codes.InvalidArgument
	case enginev1.Fault_NOT_FOUND, enginev1.Fault_NAMESPACE_MISSING, enginev1.Fault_CHART_NOT_FOUND:
		return codes.NotFound
	case enginev1.Fault_ALREADY_EXISTS:
		return codes.AlreadyExists
	case enginev1.Fault_CONFLICT:
		return codes.Aborted
	case enginev1.Fault_FORBIDDEN:
		return codes.PermissionDenied
	case enginev1.Fault_UNAUTHORIZED:
		return codes.Unauthenticated
	case enginev1.Fault_UNREACHABLE, enginev1.Fault_CHART_UNAVAILABLE:
		return codes.Unavailable
	case enginev1.Fault_TIMEOUT:
		return codes.DeadlineExceeded
	case enginev1.Fault_CANCELLED:
		return codes.Canceled
	case enginev1.Fault_NAMESPACE_TERMINATING, enginev1.Fault_BUSY, enginev1.Fault_HOOK,
		enginev1.Fault_UNKNOWN_CLUSTER, enginev1.Fault_UNKNOWN_CHART:
		return codes.FailedPrecondition
	}
	return codes.Unknown
}
