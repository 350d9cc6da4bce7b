"""What became of a Release: the part that Pilothouse writes."""

from typing import Annotated

from pilothouse.api.health import ResourceState
from pilothouse.api.meta import Condition, Wire, described


class AtProvider(Wire, frozen=True):
    """Helm's view of the release."""

    state: Annotated[str, described("Helm's status: deployed, failed, pending-install, …")] = ""
    release_description: Annotated[str, described("What Helm says of the newest revision.")] = ""
    revision: Annotated[int, described("Helm's newest revision.")] = 0
    version: Annotated[str, described("The chart version that is deployed.")] = ""
    digest: Annotated[str, described("The digest that the deployed chart was asked to have.")] = ""
    ownership_taken: Annotated[
        bool, described("The deployed revision adopted objects that others had made.")
    ] = False


class DeployedChart(Wire, frozen=True):
    """The chart that is deployed, and what became of it where it came from."""

    source: Annotated[str, described("Where it came from.")] = ""
    version: Annotated[str, described("Its version.")] = ""
    digest: Annotated[str, described("sha256 of the packaged chart.")] = ""
    range: Annotated[str, described("The range that its version was found in.")] = ""
    republished_digest: Annotated[
        str, described("The source has this digest under that version now; it is not deployed.")
    ] = ""
    checked: Annotated[
        str, described("A digest of the pin and the keys that it was checked with.")
    ] = ""
    record: Annotated[
        str, described("The uid of Helm's record of the revision that it was deployed with.")
    ] = ""
    stamp: Annotated[
        str, described("What that record was stamped with, which other Helm clients take off.")
    ] = ""


class DependencyState(ResourceState, frozen=True):
    """Something this Release depends on, and how it is."""

    provider_config: Annotated[
        str, described("ProviderConfig of its cluster; empty: the Release's own cluster.")
    ] = ""


class DriftedObject(Wire, frozen=True):
    """One object that is not as it was applied."""

    api_version: Annotated[str, described("API version of the object.")] = ""
    kind: Annotated[str, described("Kind of the object.")] = ""
    namespace: Annotated[str, described("Namespace; empty for cluster-scoped objects.")] = ""
    name: Annotated[str, described("Name of the object.")] = ""
    paths: Annotated[
        list[str],
        described("JSON pointers of what differs, at most 20; the empty one: it was deleted."),
    ] = []
    manager: Annotated[str, described("The field manager that changed it, where one says so.")] = ""
    state: Annotated[
        str,
        described(
            "Warn: told only. Fight: it was put back again and again. Failed: it cannot be put back."
        ),
    ] = ""
    message: Annotated[str, described("Why it cannot be put back.")] = ""


class LastAttempt(Wire, frozen=True):
    """The newest action, successful or not."""

    action: Annotated[str, described("Install, Upgrade, Uninstall, …")] = ""
    digest: Annotated[str, described("Digest of what was asked.")] = ""
    reason: Annotated[str, described("Why it was done.")] = ""
    started: Annotated[str | None, described("When it began.", format="date-time")] = None
    finished: Annotated[str | None, described("When it ended.", format="date-time")] = None
    error: Annotated[str, described("Why it failed; empty when it did not.")] = ""


class HookRun(Wire, frozen=True):
    """One hook of the chart that ran, and what it came to."""

    kind: Annotated[str, described("Kind of its object.")] = ""
    name: Annotated[str, described("Name of its object.")] = ""
    events: Annotated[list[str], described("What it ran for, such as pre-upgrade.")] = []
    phase: Annotated[str, described("Running, Succeeded or Failed.")] = ""
    started: Annotated[str | None, described("When it last began.", format="date-time")] = None
    finished: Annotated[str | None, described("When it ended.", format="date-time")] = None
    log: Annotated[str, described("The end of its log when it failed; at most 20 lines.")] = ""


class TestedHook(Wire, frozen=True):
    """One test of the chart, and what it came to."""

    name: Annotated[str, described("Kind and name of its object, such as Pod smoke.")] = ""
    phase: Annotated[
        str, described("Succeeded, Failed, or NotRun: one before it failed, so it had no turn.")
    ] = ""
    started: Annotated[str | None, described("When it began.", format="date-time")] = None
    finished: Annotated[str | None, described("When it ended.", format="date-time")] = None


class ChartTests(Wire, frozen=True):
    """The newest run of the chart's tests."""

    requested_at: Annotated[
        str, described("The pilothouse.dev/test-requested-at that it answers.")
    ] = ""
    phase: Annotated[str, described("Running, Succeeded or Failed.")] = ""
    revision: Annotated[int, described("The revision that was tested.")] = 0
    started: Annotated[str | None, described("When it began.", format="date-time")] = None
    finished: Annotated[str | None, described("When it ended.", format="date-time")] = None
    message: Annotated[str, described("How many passed, or why it failed.")] = ""
    results: Annotated[
        list[TestedHook], described("Each test, in the order they run; at most 50.")
    ] = []


# Nobody else writes parts of it, so the API server need not remember for each part who wrote it: those notes are
# otherwise half of every Release.
_ONE_FIELD = {"x-kubernetes-map-type": "atomic"}


class ReleaseStatus(Wire, frozen=True):
    """What is."""

    conditions: Annotated[
        list[Condition],
        described(
            "Synced: the spec has been carried out. Ready: it runs.",
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []
    observed_generation: Annotated[
        int, described("The newest generation Pilothouse has looked at.", format="int64")
    ] = 0
    at_provider: Annotated[AtProvider, described("Helm's view of the release.")] = AtProvider()
    chart: Annotated[DeployedChart, described("The chart that is deployed.", **_ONE_FIELD)] = (
        DeployedChart()
    )
    available_version: Annotated[
        str, described("A newer version of the chart, which is not deployed by itself.")
    ] = ""
    synced: Annotated[bool, described("The newest revision is what the spec asks for.")] = False
    patches_sha: Annotated[str, described("Digest of the patches that are deployed.")] = ""
    failed: Annotated[
        int, described("Failures that count against rollbackLimit.", format="int32")
    ] = 0
    last_handled_reconcile_at: Annotated[
        str, described("The newest crossplane.io/reconcile-requested-at that was answered.")
    ] = ""
    summary: Annotated[str, described("How many objects are ready, such as 4/4.")] = ""
    resources: Annotated[
        list[ResourceState],
        described("The release's objects, the worst first; at most 100, summary counts them all."),
    ] = []
    external: Annotated[
        list[ResourceState],
        described(
            "Objects of other controllers: those asked for, and autoscalers of its workloads."
        ),
    ] = []
    dependencies: Annotated[
        list[DependencyState], described("What this Release depends on, in the order of dependsOn.")
    ] = []
    watch_mode: Annotated[
        str,
        described(
            "How closely the credentials let Pilothouse look: Cluster, Namespace, or Poll (now and then)."
        ),
    ] = ""
    drift: Annotated[
        list[DriftedObject],
        described("Objects that others changed and that are not put back; at most 50."),
    ] = []
    hooks: Annotated[
        list[HookRun],
        described(
            "Hooks that ran in the newest install, upgrade or rollback; failed ones first, then "
            "running ones, at most 20.",
        ),
    ] = []
    test: Annotated[
        ChartTests,
        described("What the chart's tests came to; pilothouse.dev/test-requested-at asks."),
    ] = ChartTests()
    last_attempt: Annotated[LastAttempt, described("The newest action.", **_ONE_FIELD)] = (
        LastAttempt()
    )
    retries: Annotated[int, described("Failed attempts at the current spec.")] = 0
    next_attempt: Annotated[
        str | None, described("When the next attempt is due.", format="date-time")
    ] = None
