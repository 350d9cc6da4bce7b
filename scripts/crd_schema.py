"""Turn the structs of `api/` into CustomResourceDefinitions: structural, described, with columns."""

from pathlib import Path
from typing import Any

import yaml
from msgspec import inspect

from pilothouse.api.kinds import (
    NAMESPACED_GROUP,
    NAMESPACED_PROVIDER_CONFIG_USAGE,
    NAMESPACED_RELEASE,
    RELEASE,
    SERVED,
    Kind,
)

HEADER = "# Generated from src/pilothouse/api by `make gen`. Do not edit.\n"
# References in a namespaced Release stay in its namespace, so they name none.
_LOCAL_REFERENCES = (
    "configMapKeyRef",
    "secretKeyRef",
    "pullSecretRef",
    "secretRef",
    "writeConnectionSecretToRef",
)


def schema(info: inspect.Type) -> dict[str, Any]:
    """Return the structural OpenAPI schema of a type."""
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return schema(inner) | (extra or {})
        case inspect.UnionType(types=types):
            rest = [one for one in types if not isinstance(one, inspect.NoneType)]
            if len(rest) != 1:
                msg = f"a CRD field cannot be one of several types: {types}"
                raise TypeError(msg)
            return schema(rest[0])
        case inspect.StructType():
            return _struct(info)
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer"}
        case inspect.ListType(item_type=item):
            return {"type": "array", "items": schema(item)}
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object"}
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": schema(value)}
        case inspect.AnyType():
            return {}
        case _:
            msg = f"no CRD schema for {info}"
            raise TypeError(msg)


def _struct(info: inspect.StructType) -> dict[str, Any]:
    properties = {field.encode_name: schema(field.type) for field in info.fields}
    required = sorted(field.encode_name for field in info.fields if field.required)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    rules = [rule._asdict() for rule in getattr(info.cls, "RULES", ())]
    if rules:
        made["x-kubernetes-validations"] = rules
    return made | getattr(info.cls, "SCHEMA", {})


def crd(kind: Kind[Any]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "categories": list(kind.categories),
            },
            "versions": [
                *(_version(kind, name, stored=False) for name in kind.also_served),
                _version(kind, kind.version, stored=True),
            ],
        },
    }


def _version(kind: Kind[Any], name: str, *, stored: bool) -> dict[str, Any]:
    root = inspect.type_info(kind.struct)
    assert isinstance(root, inspect.StructType)
    parts = {
        field.encode_name: schema(field.type)
        for field in root.fields
        if field.encode_name not in {"apiVersion", "kind", "metadata"}
    }
    _adapt(kind, name, parts)
    required = sorted(
        field.encode_name for field in root.fields if field.required and field.encode_name in parts
    )
    return {
        "name": name,
        "served": True,
        "storage": stored,
        **({"subresources": {"status": {}}} if "status" in parts else {}),
        "additionalPrinterColumns": [
            {"name": one.name, "type": one.type, "jsonPath": one.path}
            | ({"priority": one.priority} if one.priority else {})
            for one in kind.columns
        ],
        "schema": {
            "openAPIV3Schema": {
                "description": " ".join((kind.struct.__doc__ or "").split()),
                "type": "object",
                "required": required,
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    **parts,
                },
            }
        },
    }


def _adapt(kind: Kind[Any], version: str, parts: dict[str, Any]) -> None:
    """Make of the one struct what each kind and version says of it."""
    if kind in {RELEASE, NAMESPACED_RELEASE}:
        values = parts["spec"]["properties"]["forProvider"]["properties"]["values"]
        if version != "v1alpha1":  # which also takes them as text
            values["type"] = "object"
    if kind is RELEASE:
        _make_cluster_scoped(parts["spec"])
    elif kind is NAMESPACED_RELEASE:
        _make_namespaced(parts["spec"])
    elif kind is NAMESPACED_PROVIDER_CONFIG_USAGE:
        parts["providerConfigRef"] = _namespaced_config_reference("The configuration that is used.")
    elif kind.group == NAMESPACED_GROUP:
        # The older spelling was never part of this group.
        del parts["spec"]["properties"]["credentialsSecretRef"]
        del parts["spec"]["x-kubernetes-validations"]
        parts["spec"]["required"] = ["credentials"]


def _make_cluster_scoped(spec: dict[str, Any]) -> None:
    """Require the namespaces that nothing else could tell."""
    wanted = spec["properties"]["forProvider"]
    wanted["required"] = ["chart", "namespace"]
    pull = wanted["properties"]["chart"]["properties"]["pullSecretRef"]
    for reference in (pull, spec["properties"]["writeConnectionSecretToRef"]):
        reference["required"] = ["name", "namespace"]


def _make_namespaced(spec: dict[str, Any]) -> None:
    """Turn the cluster-scoped spec into the namespaced one: what differs upstream, and nothing else."""
    fields = spec["properties"]
    for gone in ("deletionPolicy", "reclaimPolicy", "providerSelector"):
        fields.pop(gone, None)
    fields["providerConfigRef"] = _namespaced_config_reference("The cluster to release to.") | {
        "default": {"kind": "ClusterProviderConfig", "name": "default"}
    }
    _keep_references_local(spec)


def _namespaced_config_reference(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "required": ["kind", "name"],
        "properties": {
            "kind": {
                "type": "string",
                "description": "ClusterProviderConfig, or ProviderConfig in the same namespace.",
            },
            "name": {"type": "string", "description": "Name of the configuration."},
        },
    }


def _keep_references_local(found: Any) -> None:
    if isinstance(found, list):
        for one in found:
            _keep_references_local(one)
    if not isinstance(found, dict):
        return
    for name, inner in found.items():
        if name in _LOCAL_REFERENCES and "properties" in inner:
            inner["properties"].pop("namespace", None)
        _keep_references_local(inner)


def write_all(directory: Path) -> None:
    """Write one file per kind we serve."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in SERVED:
        text = yaml.safe_dump(crd(kind), sort_keys=False, width=100)
        (directory / f"{kind.qualified}.yaml").write_text(HEADER + text)
