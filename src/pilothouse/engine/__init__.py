"""Door: the Go engine, the only thing that talks to Kubernetes."""

import os

# A dead engine is replaced by starting another process while gRPC's threads run. Its fork handlers would
# stop for those threads, now and then for ever; the child only executes a program, so none are needed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
