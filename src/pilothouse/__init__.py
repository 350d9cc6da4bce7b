"""Pilothouse keeps Helm releases, on any number of clusters, the way their owners wrote them down."""

__version__ = "0.1.0"
