"""Other people run helm too."""

from stage import Stage, eventually, history


def hello(stage: Stage) -> tuple[str, ...]:
    return ("hello", "--repo", stage.repository.url, "--version", "1.0.0")


def test_an_equal_release_is_adopted_without_a_new_revision(
    stage: Stage, hub, helm3, helm4, namespace
) -> None:
    for name, helm in (("by-three", helm3), ("by-four", helm4)):
        helm(hub, "install", name, *hello(stage), "-n", namespace, "--set", "message=hi")
        stage.release(name, "hello", namespace, {"message": "hi"})
        stage.wait(name, "Ready")
        assert len(history(helm4, hub, namespace, name)) == 1


def test_a_hand_made_upgrade_is_taken_back(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("mine", "hello", namespace, {"message": "as written"})
    stage.wait("mine", "Ready")
    helm4(hub, "upgrade", "mine", *hello(stage), "-n", namespace, "--set", "message=by hand")
    eventually(lambda: len(history(helm4, hub, namespace, "mine")) == 3, what="a third revision")
    message = hub.kubectl("get", "cm", "mine", "-n", namespace, "-o", "jsonpath={.data.message}")
    assert message == "as written"
    eventually(
        lambda: any("values changed: message" in one["message"] for one in stage.events("mine")),
        what="an Event that says what had changed",
    )


def test_a_hand_made_uninstall_is_repaired(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("again", "hello", namespace)
    stage.wait("again", "Ready")
    helm4(hub, "uninstall", "again", "-n", namespace)
    eventually(lambda: "again" in helm4(hub, "list", "-n", namespace, "-q"), what="installed again")
    stage.wait("again", "Ready")
