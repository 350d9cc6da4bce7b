"""Door: the archive, what outlives a cluster."""
