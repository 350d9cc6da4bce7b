"""Let a controller take copied releases for its own."""

import time
from pathlib import Path

from controller import running_controller
from kube import BenchError, Kube, Seen
from measure import Progress, until_quiet
from releases import RELEASES

from pilothouse.dev.cluster import DevCluster

QUIET_SECONDS = 6.0
# For thousands of releases, at the first start over which all are compared.
PATIENCE_SECONDS = 3600.0


def adopt(hub: DevCluster, kube: Kube, directory: Path, number: int, count: int) -> None:
    """Run the controller until all copies and their pattern are ready, as they were copied."""
    with (
        kube.watching(RELEASES) as watch,
        running_controller(hub.kubeconfig, directory, number) as controller,
    ):
        controller.until_watching()
        latest: dict[str, Seen] = {}
        unready: set[str] = set()
        until = time.monotonic() + PATIENCE_SECONDS
        with Progress("adopting copies") as progress:
            while len(latest) <= count or unready:
                seen = watch.next(QUIET_SECONDS)
                if seen:
                    latest[seen.name] = seen
                    (unready.discard if _is_ready(seen) else unready.add)(seen.name)
                progress.tell(f"{len(latest) - len(unready)} of {count + 1}")
                controller.check()
                if time.monotonic() > until:
                    raise BenchError(f"{len(unready)} of {len(latest)} copies are not ready")
        until_quiet(lambda: controller.usage().cpu_s, window=QUIET_SECONDS)
        while seen := watch.next(0):
            latest[seen.name] = seen
    revisions = [one.object["status"]["atProvider"]["revision"] for one in latest.values()]
    upgraded = len(revisions) - revisions.count(1)
    if upgraded:
        raise BenchError(f"{upgraded} copies were upgraded")


def _is_ready(seen: Seen) -> bool:
    conditions = seen.object.get("status", {}).get("conditions") or ()
    good = {each["type"] for each in conditions if each["status"] == "True"}
    return good >= {"Ready", "Synced"}
