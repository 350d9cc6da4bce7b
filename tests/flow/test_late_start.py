"""A controller that is started before its management cluster answers."""

from pathlib import Path

from road import detour, road_to
from stage import ControllerProcess, eventually


def test_a_controller_waits_for_its_cluster(hub, controller: ControllerProcess, tmp_path: Path):
    assert controller.process
    with road_to(hub.server) as road:
        road.cut()
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(detour(hub, road.address))
        # The other controller of this cluster is at work.
        options = ("--observe-only", "--kubeconfig", str(kubeconfig))
        late = ControllerProcess(hub, tmp_path, options=options)
        late.start()
        try:
            eventually(
                lambda: late.log.read_text().count("waiting for the management cluster"),
                what="a line that says what it waits for",
            )
            road.mend()
            eventually(lambda: "event=watching" in late.log.read_text(), what="it works")
        finally:
            code = late.stop()
        assert code == 0, late.log.read_text()
