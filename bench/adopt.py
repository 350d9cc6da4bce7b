"""Let a controller take copied releases for its own."""

import time
from pathlib import Path

from controller import running_controller
from kube import BenchError, Kube
from measure import Progress, until_quiet
from releases import RELEASES

from pilothouse.dev.cluster import DevCluster

QUIET_SECONDS = 6.0
# For thousands of releases, at the first start over which all are compared.
PATIENCE_SECONDS = 3600.0


def adopt(hub: DevCluster, kube: Kube, directory: Path, number: int, count: int) -> None:
    """Run the controller until all copies and their pattern are ready, as they were copied."""
    with running_controller(hub.kubeconfig, directory, number) as controller:
        controller.until_watching()
        until = time.monotonic() + PATIENCE_SECONDS
        with Progress("adopting copies") as progress:
            while missing := _unready(kube):
                progress.tell(f"{count + 1 - len(missing)} of {count + 1}")
                controller.check()
                if time.monotonic() > until:
                    raise BenchError(f"{len(missing)} copies are not ready; {missing[0]}")
                time.sleep(QUIET_SECONDS)
        until_quiet(lambda: controller.usage().cpu_s, window=QUIET_SECONDS)
    releases = kube.request("GET", RELEASES)["items"]
    upgraded = [one for one in releases if one["status"]["atProvider"]["revision"] != 1]
    if upgraded:
        raise BenchError(f"{len(upgraded)} copies were upgraded")


def _unready(kube: Kube) -> list[str]:
    """Name the releases that are not ready, and why."""
    found = []
    for one in kube.request("GET", RELEASES)["items"]:
        conditions = one.get("status", {}).get("conditions") or ()
        good = {each["type"] for each in conditions if each["status"] == "True"}
        if not good >= {"Ready", "Synced"}:
            said = [each.get("message") for each in conditions if each["status"] != "True"]
            found.append(f"{one['metadata']['name']}: {said}")
    return found
