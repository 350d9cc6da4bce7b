"""managementPolicies on a real cluster: what is not allowed is not done, and said."""

import json

from stage import Stage, eventually, history


def change(stage: Stage, name: str, message: str) -> None:
    patch = {"spec": {"forProvider": {"values": {"message": message}}}}
    stage.hub.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps(patch))
    generation = stage.get(name)["metadata"]["generation"]
    stage.hub.kubectl(
        *("wait", f"--for=jsonpath={{.status.observedGeneration}}={generation}"),
        *(f"release/{name}", "--timeout=60s"),
    )


def test_create_without_update_makes_it_once(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("once", "hello", namespace, {"message": "1"}, policies=("Observe", "Create"))
    stage.wait("once", "Ready")
    change(stage, "once", "2")
    stage.wait("once", "Ready")
    assert len(history(helm4, hub, namespace, "once")) == 1
    stage.delete("once")
    assert "once" in helm4(hub, "list", "-n", namespace, "-q"), "nobody allowed to delete it"


def test_update_without_create_waits_for_somebody_to_install(
    stage: Stage, hub, helm4, namespace
) -> None:
    allowed = ("Observe", "Update", "Delete", "LateInitialize")
    written = {"message": "as written"}
    stage.release("guest", "hello", namespace, written, policies=allowed, version="")
    assert "not installed" in stage.refused("guest", "NotAllowed")
    assert "version" not in stage.get("guest")["spec"]["forProvider"]["chart"]
    source = ("hello", "--repo", stage.repository.url, "--version", "1.0.0", "-n", namespace)
    helm4(hub, "install", "guest", *source, "--set", "message=by hand")
    release = stage.wait("guest", "Ready")
    assert release["spec"]["forProvider"]["chart"]["version"] == "1.0.0", "what is there stands"
    assert len(history(helm4, hub, namespace, "guest")) == 2
    stage.delete("guest")
    assert "guest" not in helm4(hub, "list", "-n", namespace, "-q")


def test_everything_but_delete(stage: Stage, hub, helm4, namespace) -> None:
    allowed = ("Observe", "Create", "Update", "LateInitialize")
    stage.release("stays", "hello", namespace, {"message": "1"}, policies=allowed, version="")
    release = stage.wait("stays", "Ready")
    assert release["spec"]["forProvider"]["chart"]["version"] == "1.1.0"
    change(stage, "stays", "2")
    eventually(lambda: len(history(helm4, hub, namespace, "stays")) == 2)
    stage.delete("stays")
    assert "stays" in helm4(hub, "list", "-n", namespace, "-q")


def test_no_policies_pause_it_until_there_are_some(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("frozen", "hello", namespace, policies=())
    assert "managementPolicies is empty" in stage.refused("frozen", "ReconcilePaused")
    assert json.loads(helm4(hub, "list", "-n", namespace, "-o", "json")) == []
    hub.kubectl(
        *("patch", "release", "frozen", "--type=merge", "-p"),
        '{"spec":{"managementPolicies":["*"]}}',
    )
    stage.wait("frozen", "Ready")
    hub.kubectl(
        *("patch", "release", "frozen", "--type=merge", "-p"), '{"spec":{"managementPolicies":[]}}'
    )
    stage.refused("frozen", "ReconcilePaused")
    change_while_paused = '{"spec":{"forProvider":{"values":{"message":"later"}}}}'
    hub.kubectl("patch", "release", "frozen", "--type=merge", "-p", change_while_paused)
    # Another Release made meanwhile went through the same queue.
    stage.release("awake", "hello", namespace)
    stage.wait("awake", "Ready")
    assert len(history(helm4, hub, namespace, "frozen")) == 1
    hub.kubectl(
        *("patch", "release", "frozen", "--type=merge", "-p"),
        '{"spec":{"managementPolicies":["*"]}}',
    )
    eventually(lambda: len(history(helm4, hub, namespace, "frozen")) == 2)


def test_what_may_not_be_observed_is_refused_by_name(stage: Stage, namespace) -> None:
    stage.release("blind", "hello", namespace, policies=("Create", "Update"))
    assert "spec.managementPolicies" in stage.refused("blind", "InvalidInput")
