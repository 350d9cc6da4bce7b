"""Make the namespace a release is to live in."""

from pilothouse.api.kinds import NAMESPACE
from pilothouse.errors import AlreadyExists
from pilothouse.ports import ObjectStore

# The label provider-helm puts on namespaces it makes; tools that look for it keep working.
LABELS = {"app.kubernetes.io/managed-by": "provider-helm"}


async def create_namespace(objects: ObjectStore, name: str) -> None:
    """Create the namespace; one that appeared meanwhile is as good."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": LABELS},
    }
    try:
        await objects.create(NAMESPACE, manifest)
    except AlreadyExists:
        return
