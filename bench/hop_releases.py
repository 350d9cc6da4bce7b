"""Releases for the hop, as the controller has them: spec, and a status of four objects."""

from pathlib import Path

import yaml
from kube import BenchError, Kube
from releases import RELEASES

from pilothouse import api
from pilothouse.api.health import ResourceState
from pilothouse.api.kinds import RELEASE
from pilothouse.api.meta import Condition
from pilothouse.api.status import AtProvider, DeployedChart, LastAttempt, ReleaseStatus

CRD = Path(api.__file__).parent / "crds" / "releases.helm.crossplane.io.yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COUNT = 20
PATIENCE_SECONDS = 120.0


def make_releases(kube: Kube) -> None:
    """Create Releases in a cluster that may not know the kind yet."""
    kube.request("POST", CRDS, yaml.safe_load(CRD.read_text()))
    with kube.watching(CRDS) as watch:
        while True:
            seen = watch.next(PATIENCE_SECONDS)
            if seen is None:
                raise BenchError("the API server does not serve Releases")
            conditions = seen.object.get("status", {}).get("conditions") or ()
            if any((one["type"], one["status"]) == ("Established", "True") for one in conditions):
                break
    chart = {"name": "tiny", "repository": "http://127.0.0.1:1/charts", "version": "1.0.0"}
    for number in range(COUNT):
        manifest = {
            "apiVersion": RELEASE.api_version,
            "kind": RELEASE.kind,
            "metadata": {"name": release_name(number)},
            "spec": {
                "providerConfigRef": {"name": "default"},
                "forProvider": {"chart": chart, "namespace": "bench", "values": {"message": "m"}},
            },
        }
        kube.request("POST", RELEASES, manifest)


def status_at(turn: int) -> ReleaseStatus:
    """Return a status as a release of four objects has it; each turn changes what an upgrade does."""
    ready = "True" if turn % 2 else "False"
    moment = "2026-11-15T12:00:00Z"
    conditions = [
        Condition(
            type=kind,
            status=status,
            reason=reason,
            last_transition_time=moment,
            observed_generation=turn,
        )
        for kind, status, reason in (
            ("Synced", "True", "ReconcileSuccess"),
            ("Ready", ready, "Available" if turn % 2 else "Unavailable"),
        )
    ]
    kinds = (("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "Secret"))
    return ReleaseStatus(
        conditions=conditions,
        observed_generation=turn,
        at_provider=AtProvider(
            state="deployed", release_description="Upgrade complete", revision=turn, version="1.0.0"
        ),
        chart=DeployedChart(
            source="http://127.0.0.1:1/charts/tiny",
            version="1.0.0",
            digest="sha256:" + "0" * 64,
            record=f"00000000-0000-0000-0000-{turn % 10**12:012}",
            stamp="0" * 40,
        ),
        synced=True,
        last_attempt=LastAttempt(
            action="Upgrade",
            digest="0" * 40,
            reason=f"values changed: turn {turn}",
            started=moment,
            finished=moment,
        ),
        summary=f"{3 + turn % 2}/4",
        resources=[
            ResourceState(
                api_version=version, kind=kind, namespace="bench", name="tiny", state="Current"
            )
            for version, kind in kinds
        ],
        watch_mode="Cluster",
    )


def release_name(number: int) -> str:
    """Name one of them."""
    return f"hop-{number}"
