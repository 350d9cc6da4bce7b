"""Door: clusters, through the engine. Typed objects, caches of them, eyes on releases."""
