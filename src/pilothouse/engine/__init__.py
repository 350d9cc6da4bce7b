"""Door: the Go engine, the only thing that talks to Kubernetes."""
