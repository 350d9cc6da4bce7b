"""Judge what a soak left behind: every release as written, Ready, and no revision that nothing asked for."""

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from kube import Kube
from releases import CONFIG_MAPS, RELEASES, SECRETS
from unrest import ACCOUNTS, DEPLOYMENTS, SERVICES, Written

IMAGE, PORT = "registry.example/tiny:1.0", 80
_DONE = frozenset({"deployed", "superseded"})
# What Helm says of a revision that went well. Its status does not always tell: when the end of a process comes between
# superseding the old revision and deploying the new one, the next upgrade supersedes what was cut short, too.
_WENT_WELL = frozenset({"Install complete", "Upgrade complete"})
_RECORDS = f"{SECRETS}?labelSelector=owner%3Dhelm"


@dataclass(frozen=True, slots=True)
class Record:
    """One revision as Helm stores it."""

    name: str
    revision: int
    status: str
    message: str
    description: str

    @classmethod
    def of(cls, secret: dict[str, Any]) -> Self:
        """Read it from its Secret."""
        labels = secret["metadata"]["labels"]
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        record = json.loads(gzip.decompress(packed))
        return cls(
            labels["name"],
            int(labels["version"]),
            labels["status"],
            (record.get("config") or {}).get("message", ""),
            record["info"].get("description", ""),
        )

    @property
    def good(self) -> bool:
        """Whether it was ever deployed."""
        return self.status in _DONE and self.description in _WENT_WELL


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is not as it is to be, one sentence each."""

    not_as_written: tuple[str, ...]
    not_ready: tuple[str, ...]
    unasked: tuple[str, ...]
    # Revisions that ended without being deployed: a process they needed was gone.
    cut_short: tuple[str, ...]
    revisions: int

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for; what was done too much stays done."""
        return not self.not_as_written and not self.not_ready


def look(kube: Kube, written: Mapping[str, Written], ends: int) -> Aftermath:
    """Read everything there is and compare it with what was written."""
    records = _records(kube)
    too_many, cut_short = [], []
    for name, wanted in written.items():
        found = records.get(name, [])
        too_many += [f"{name}: {text}" for text in unasked(found, wanted, ends)]
        cut_short += [
            f"{name}: revision {one.revision}: {one.description}" for one in found if not one.good
        ]
    return Aftermath(
        not_as_written=tuple(_differences(kube, written)),
        not_ready=tuple(_not_ready(kube, written)),
        unasked=tuple(too_many),
        cut_short=tuple(cut_short),
        revisions=sum(
            max((one.revision for one in found), default=0) for found in records.values()
        ),
    )


def _differences(kube: Kube, written: Mapping[str, Written]) -> Iterator[str]:
    shown = {
        "ConfigMap": (CONFIG_MAPS, lambda one: (one.get("data") or {}).get("message")),
        "Deployment": (DEPLOYMENTS, _deployment),
        "Service": (SERVICES, _service),
        "ServiceAccount": (ACCOUNTS, lambda one: one["metadata"]["name"]),
    }
    for kind, (path, show) in shown.items():
        found = {one["metadata"]["name"]: show(one) for one in _items(kube, path)}
        for name, wanted in written.items():
            expected = {
                "ConfigMap": wanted.message,
                "Deployment": (wanted.replicas, IMAGE),
                "Service": ([PORT], {"app": name}),
                "ServiceAccount": name,
            }[kind]
            if name not in found:
                yield f"{name}: its {kind} is missing"
            elif found[name] != expected:
                yield f"{name}: its {kind} has {found[name]!r}, written was {expected!r}"


def _deployment(one: dict[str, Any]) -> tuple[int, str]:
    spec = one["spec"]
    return spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]


def _service(one: dict[str, Any]) -> tuple[list[int], dict[str, str]]:
    return [port["port"] for port in one["spec"]["ports"]], one["spec"].get("selector") or {}


def _not_ready(kube: Kube, written: Mapping[str, Written]) -> Iterator[str]:
    found = {one["metadata"]["name"]: one for one in _items(kube, RELEASES)}
    for name in written:
        release = found.get(name)
        if release is None:
            yield f"{name}: the Release is missing"
            continue
        generation = release["metadata"]["generation"]
        conditions = {one["type"]: one for one in release["status"].get("conditions") or ()}
        for kind in ("Synced", "Ready"):
            one = conditions.get(kind, {"status": "missing"})
            if one["status"] != "True":
                yield f"{name}: {kind} is {one['status']}: {one.get('message') or one.get('reason')}"
            elif one.get("observedGeneration") not in {None, generation}:
                yield f"{name}: {kind} speaks of generation {one['observedGeneration']} of {generation}"
        if conditions.get("Drifted", {}).get("status") == "True":
            yield f"{name}: Drifted: {conditions['Drifted'].get('message')}"


def unasked(found: list[Record], written: Written, ends: int) -> Iterator[str]:
    """Every revision must be one that was asked for, and each was asked for once.

    A revision that was cut short is asked for again; each end of a process can cut one short.
    """
    good = [one for one in found if one.good]
    cut_short = len(found) - len(good)
    newest = max((one.revision for one in found), default=0)
    edits = len(written.messages) - 1
    if not edits and newest != 1:
        yield f"never edited, but at revision {newest}"
    if newest - cut_short > 1 + edits:
        yield f"{newest - cut_short} revisions for {edits} edits"
    if cut_short > ends:
        yield f"{cut_short} revisions cut short by {ends} ends of processes"
    messages = [one.message for one in good]
    for message in {one for one in messages if messages.count(one) > 1}:
        yield f"{messages.count(message)} revisions for the one edit {message!r}"
    for message in set(messages) - written.messages:
        yield f"a revision for {message!r}, which nobody wrote"
    for one in found:
        if one.status.startswith("pending"):
            yield f"revision {one.revision} is {one.status}"


def _records(kube: Kube) -> dict[str, list[Record]]:
    found: defaultdict[str, list[Record]] = defaultdict(list)
    for secret in _items(kube, _RECORDS):
        record = Record.of(secret)
        found[record.name].append(record)
    return found


def _items(kube: Kube, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = kube.request("GET", path)["items"]
    return items
