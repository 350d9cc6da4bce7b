"""A way to a cluster that stories can spoil."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator

from pilothouse.dev.cluster import DevCluster


def detour(cluster: DevCluster, address: str) -> bytes:
    """The kubeconfig of a cluster, with another address."""
    kubeconfig = cluster.kubeconfig.read_text()
    return re.sub(r"https://127\.0\.0\.1:\d+", f"https://{address}", kubeconfig).encode()


class Road:
    """The way to a cluster, which can be cut, mended and silenced, and on which all that comes is counted."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._cut = self._silent = False
        self.journeys = 0
        # Many threads carry, and to append is safe.
        self._heard: list[int] = []
        threading.Thread(target=self._accept, name="road", daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def heard(self) -> int:
        """How many bytes the cluster has sent so far."""
        return sum(self._heard)

    def cut(self) -> None:
        self._cut = True
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._cut = False

    def silence(self) -> None:
        """From now on all that is said on it is taken and lost."""
        self._silent = True

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self._cut:
                    here.close()
                    continue
                self.journeys += 1
                there = socket.create_connection(("127.0.0.1", self._to))
                for one, other, heard in ((here, there, []), (there, here, self._heard)):
                    self._open.add(one)
                    way = (one, other, heard)
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, heard: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                heard.append(len(data))
                if not self._silent:
                    other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
        self._open.discard(one)
        one.close()


@contextlib.contextmanager
def road_to(server: str) -> Iterator[Road]:
    road = Road(int(server.rsplit(":", 1)[1]))
    try:
        yield road
    finally:
        road.close()
