"""The part of a CustomResourceDefinition that Pilothouse reads of its own CRDs."""

from pilothouse.api.meta import Condition, ObjectMeta, Wire


class CustomResourceDefinitionStatus(Wire, frozen=True):
    """Whether the API server serves it yet."""

    conditions: list[Condition] | None = None


class CustomResourceDefinition(Wire, frozen=True):
    """A CRD, without its schema."""

    metadata: ObjectMeta
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()

    @property
    def established(self) -> bool:
        """Whether objects of the kind can be written."""
        return any(
            one.type == "Established" and one.status == "True"
            for one in self.status.conditions or []
        )
