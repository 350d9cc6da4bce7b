"""Releases of the bench: create, follow, edit and delete them, as a user would."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from controller import Controller
from kube import MERGE, BenchError, Kube, Seen, Watch, in_parallel
from measure import PROGRESS_SECONDS, Progress

NAMESPACE = "bench"
_GROUP = "helm.crossplane.io"
RELEASES = f"/apis/{_GROUP}/v1beta1/releases"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_CONFIGS = f"/apis/{_GROUP}/v1beta1/providerconfigs"
_USAGES = f"/apis/{_GROUP}/v1beta1/providerconfigusages"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS = ("releases.helm.crossplane.io", "providerconfigs.helm.crossplane.io")
# For all of something, and for one thing.
PATIENCE_SECONDS, EDIT_SECONDS = 900.0, 60.0
COLLECTOR_SECONDS = 180.0


def to_default(_number: int) -> str:
    """Name the ProviderConfig of every Release."""
    return "default"


@dataclass(frozen=True, slots=True)
class Bench:
    """A cluster with a controller and a chart repository."""

    kube: Kube
    controller: Controller
    repository: str

    def prepare(self) -> None:
        """Give the Releases to come somewhere to go."""
        self._until_served()
        create_namespace(self.kube)
        self.kube.request(
            "POST",
            _CONFIGS,
            {
                "apiVersion": "helm.crossplane.io/v1beta1",
                "kind": "ProviderConfig",
                "metadata": {"name": "default"},
                "spec": {"credentials": {"source": "InjectedIdentity"}},
            },
        )
        self._until_collected()

    def install(
        self, chart: str, prefix: str, count: int, config: Callable[[int], str] = to_default
    ) -> float:
        """Create Releases of one chart and return the seconds until all are ready."""
        return self.install_several([chart], prefix, count, config)

    def install_several(
        self,
        charts: Sequence[str],
        prefix: str,
        count: int,
        config: Callable[[int], str] = to_default,
    ) -> float:
        """Create Releases of these charts in turn and return the seconds until all are ready."""
        names = [f"{prefix}{number}" for number in range(count)]
        with self.kube.watching(RELEASES) as watch:
            started = time.monotonic()
            in_parallel(
                lambda number: self.kube.request(
                    "POST",
                    RELEASES,
                    self._manifest(
                        charts[number % len(charts)], f"{prefix}{number}", number, config(number)
                    ),
                ),
                range(count),
            )
            return self._until(watch, names, _is_ready, f"installing {charts[0]}") - started

    def edit(self, name: str, value: str, watch: Watch) -> float:
        """Edit one Release's values; return the seconds until its ConfigMap, which is watched, has them."""
        patch = {"spec": {"forProvider": {"values": {"message": value}}}}
        started = time.monotonic()
        self.kube.request("PATCH", f"{RELEASES}/{name}", patch, content=MERGE)
        while time.monotonic() - started < EDIT_SECONDS:
            seen = watch.next(PROGRESS_SECONDS)
            self.controller.check()
            if seen and seen.name == name and seen.object.get("data", {}).get("message") == value:
                return seen.moment - started
        raise BenchError(f"the edit of {name} did not reach the cluster in {EDIT_SECONDS:.0f} s")

    def remove(self, names: Sequence[str]) -> float:
        """Delete Releases and return the seconds until all are gone."""
        with self.kube.watching(RELEASES) as watch:
            started = time.monotonic()
            in_parallel(lambda name: self.kube.request("DELETE", f"{RELEASES}/{name}"), names)
            gone = self._until(watch, names, lambda seen: seen.type == "DELETED", "deleting")
            return gone - started

    def _manifest(self, chart: str, name: str, number: int, config: str) -> dict[str, Any]:
        return {
            "apiVersion": "helm.crossplane.io/v1beta1",
            "kind": "Release",
            "metadata": {"name": name},
            "spec": {
                "providerConfigRef": {"name": config},
                "forProvider": {
                    "chart": {"name": chart, "repository": self.repository, "version": "1.0.0"},
                    "namespace": NAMESPACE,
                    "values": {"message": f"m{number}"},
                },
            },
        }

    def _until(
        self, watch: Watch, names: Sequence[str], done: Callable[[Seen], bool], what: str
    ) -> float:
        """Return the moment at which the last of the names was seen done."""
        missing, last = set(names), time.monotonic()
        states: dict[str, str] = {}
        until = last + PATIENCE_SECONDS
        with Progress(what) as progress:
            while missing:
                seen = watch.next(PROGRESS_SECONDS)
                if seen:
                    states[seen.name] = _state(seen)
                    if done(seen) and seen.name in missing:
                        missing.remove(seen.name)
                        last = seen.moment
                progress.tell(f"{len(names) - len(missing)} of {len(names)}")
                self.controller.check()
                if time.monotonic() > until:
                    one = min(missing)
                    raise BenchError(
                        f"{what}: {len(missing)} of {len(names)} are not done after "
                        f"{PATIENCE_SECONDS:.0f} s; {one}: {states.get(one, 'never seen')}"
                    )
        return last

    def _until_served(self) -> None:
        """Wait until the kinds that the controller brings can be used."""
        missing = set(_KINDS)
        until = time.monotonic() + EDIT_SECONDS
        with self.kube.watching(_CRDS) as watch:
            while missing:
                seen = watch.next(PROGRESS_SECONDS)
                if seen and _has_condition(seen, "Established"):
                    missing.discard(seen.name)
                self.controller.check()
                if time.monotonic() > until:
                    raise BenchError(f"the controller did not bring {', '.join(sorted(missing))}")

    def _until_collected(self) -> None:
        """Wait until the cluster's garbage collector knows the new kinds.

        It looks for new ones every 30 s, and then asks for every owner that it has not seen yet: that
        is no request of the controller's, and must not fall into its idle time.
        """
        owner = {"apiVersion": f"{_GROUP}/v1beta1", "kind": "Release", "name": "never-was"}
        orphan = {
            "apiVersion": f"{_GROUP}/v1beta1",
            "kind": "ProviderConfigUsage",
            "metadata": {"name": "orphan", "ownerReferences": [{**owner, "uid": "0-0"}]},
            "providerConfigRef": {"name": "never-was"},
            "resourceRef": owner,
        }
        started = time.monotonic()
        with (
            self.kube.watching(_USAGES) as watch,
            Progress("waiting for the collector") as progress,
        ):
            self.kube.request("POST", _USAGES, orphan)
            while not (seen := watch.next(PROGRESS_SECONDS)) or seen.type != "DELETED":
                progress.tell("")
                if time.monotonic() - started > COLLECTOR_SECONDS:
                    raise BenchError(f"nothing was collected in {COLLECTOR_SECONDS:.0f} s")


def create_namespace(kube: Kube) -> None:
    """Make the namespace of all releases beforehand, so that it is nobody's cost."""
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})


def _is_ready(seen: Seen) -> bool:
    return _has_condition(seen, "Ready")


def _has_condition(seen: Seen, wanted: str) -> bool:
    conditions = seen.object.get("status", {}).get("conditions") or ()
    return any(one["type"] == wanted and one["status"] == "True" for one in conditions)


def _state(seen: Seen) -> str:
    conditions = seen.object.get("status", {}).get("conditions") or ()
    messages = (one.get("message") for one in conditions if one["status"] != "True")
    return "; ".join(filter(None, messages)) or seen.type.lower()
