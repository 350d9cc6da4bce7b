"""Talk to an API server over plain HTTP, and know which requests were our own.

Everything asked here is counted, so that a measurement can take it out.
"""

import base64
import contextlib
import http.client
import json
import queue
import re
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

AT_ONCE = 20
MERGE = "application/merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
# These grow with time, whoever is at work.
HEARTBEATS = frozenset({"leases", "nodes", "nodes/status"})
_REQUEST_SECONDS = 60.0
_COUNTER = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_BAD_REQUEST = 400


class BenchError(Exception):
    """The measurement cannot go on; the message is one sentence."""


class RefusedError(BenchError):
    """The API server answered, and not with what was asked for."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Requests:
    """What an API server has answered, by verb and resource, at one moment."""

    seen: Counter[tuple[str, str]]
    own: Counter[str]

    def since(self, earlier: "Requests") -> "Requests":
        """Return what came after an earlier look."""
        return Requests(self.seen - earlier.seen, self.own - earlier.own)

    def total(self) -> int:
        """Count all but heartbeats and what the bench itself asked, its POSTs excepted.

        A watch counts when it ends.
        """
        own = sum(count for method, count in self.own.items() if method != "POST")
        return sum(self.by_kind().values()) - own

    def settled(self) -> bool:
        """Whether nobody asked for anything; a watch that ends has its own reasons."""
        others = sum(n for kind, n in self.by_kind().items() if kind[0] != "WATCH")
        return others <= sum(n for method, n in self.own.items() if method != "WATCH")

    def by_kind(self) -> Counter[tuple[str, str]]:
        """Return the counts without heartbeats."""
        return Counter({kind: n for kind, n in self.seen.items() if kind[1] not in HEARTBEATS})

    def writes(self) -> Counter[tuple[str, str]]:
        """Return the writes alone."""
        return Counter({kind: n for kind, n in self.by_kind().items() if kind[0] in WRITES})


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as a watch showed it, and when."""

    moment: float
    type: str
    object: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])


class Kube:
    """A client of one API server; threads may share it."""

    def __init__(self, kubeconfig: Path) -> None:
        server, self._tls = _read(kubeconfig)
        address = urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or 443
        self._local = threading.local()
        self._lock = threading.Lock()
        self._own: Counter[str] = Counter()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
        tries: int = 10,
    ) -> Any:
        """Ask, and again when told to come back later; the answer decoded, or as text when it is no JSON."""
        if path.startswith("/api"):  # the server counts no others, such as /metrics
            with self._lock:
                self._own[method] += 1
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect(_REQUEST_SECONDS)
        headers = {"Content-Type": content, "Accept": accept}
        data = json.dumps(body) if body is not None else None
        try:
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
            except http.client.RemoteDisconnected:
                # The server closed a connection that had been idle for long: nothing was asked yet.
                connection.close()
                connection.request(method, path, data, headers)
                response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BenchError(f"{method} {path} failed: {error}") from error
        if response.status == HTTPStatus.TOO_MANY_REQUESTS and tries > 1:
            # As the server does for a kind that it has only just begun to serve.
            time.sleep(float(response.headers.get("Retry-After", "1")))
            return self.request(method, path, body, content=content, accept=accept, tries=tries - 1)
        if response.status >= _BAD_REQUEST:
            raise RefusedError(
                f"{method} {path}: {response.status} {answer[:300]!r}", response.status
            )
        is_json = response.headers.get_content_type() == "application/json"
        return json.loads(answer) if is_json else answer.decode()

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        """Return a connection of its own."""
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout, context=self._tls
        )

    def requests(self) -> Requests:
        """Read the API server's own counters."""
        text = self.request("GET", "/metrics", accept="text/plain")
        seen: Counter[tuple[str, str]] = Counter()
        for labels, value in _COUNTER.findall(text):
            label = dict(_LABEL.findall(labels))
            resource = "/".join(filter(None, (label["resource"], label["subresource"])))
            seen[label["verb"], resource] += int(float(value))
        with self._lock:
            return Requests(seen, Counter(self._own))

    def requests_at_rest(self, patience: float = 20.0) -> Requests:
        """Read the counters when the stragglers are in: controllers go on after all is ready."""
        until = time.monotonic() + patience
        last = self.requests()
        while time.monotonic() < until:
            time.sleep(1.0)
            now = self.requests()
            if now.since(last).settled():
                return now
            last = now
        return last

    def versions(self, path: str) -> dict[str, str]:
        """Return the resource version of every object in a collection."""
        listed = self.request("GET", path, accept=METADATA_ONLY)
        metadata = [item["metadata"] for item in listed["items"]]
        return {f"{one.get('namespace')}/{one['name']}": one["resourceVersion"] for one in metadata}

    @contextlib.contextmanager
    def watching(self, path: str) -> Iterator["Watch"]:
        """Follow a collection: all that is there, then every change."""
        watch = Watch(self, path)
        try:
            yield watch
        finally:
            watch.close()
            with self._lock:
                self._own["WATCH"] += watch.opened


class Watch:
    """One watch, read by a thread, so that the moments are those of arrival."""

    def __init__(self, kube: Kube, path: str) -> None:
        self.opened = 0
        self._kube, self._path = kube, path
        self._arrived: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
        self._closed = False
        listed = kube.request("GET", path)
        self._version = listed["metadata"]["resourceVersion"]
        for item in listed["items"]:
            self._arrived.put(Seen(time.monotonic(), "ADDED", item))
        self._open()
        self._thread = threading.Thread(target=self._read, name=f"watch {path}", daemon=True)
        self._thread.start()

    def next(self, timeout: float) -> Seen | None:
        """Return the next event; None when there was none in time."""
        try:
            seen = self._arrived.get(timeout=timeout)
        except queue.Empty:
            return None
        if seen is None:
            raise BenchError(f"the watch of {self._path} ended")
        return seen

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=5)
        self._connection.close()

    def _open(self) -> None:
        self._connection = self._kube.connect(None)
        self._connection.request("GET", f"{self._path}?watch=1&resourceVersion={self._version}")
        self.opened += 1
        # Reading the response may take the socket away from the connection; closing needs it.
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        if self._response.status >= _BAD_REQUEST:
            raise BenchError(f"watch {self._path}: {self._response.status}")

    def _read(self) -> None:
        try:
            while not self._closed:
                with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                    self._read_to_end()
                # On a busy machine the API server drops a watcher that is slow: go on after the last event.
                self._connection.close()
                if not self._closed:
                    self._open()
        except (BenchError, OSError, http.client.HTTPException) as error:
            if not self._closed:
                print(f"the watch of {self._path} ended: {error}", file=sys.stderr)
        finally:
            self._arrived.put(None)

    def _read_to_end(self) -> None:
        while line := self._response.readline():
            moment, event = time.monotonic(), json.loads(line)
            if event["type"] == "ERROR":
                raise BenchError(event["object"].get("message", "no reason given"))
            self._version = event["object"]["metadata"]["resourceVersion"]
            self._arrived.put(Seen(moment, event["type"], event["object"]))


def in_parallel(call: Callable[[Any], object], arguments: Iterable[Any]) -> None:
    """Call for each argument, 20 at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(call, arguments):
            pass


def _read(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    config = yaml.safe_load(kubeconfig.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    tls = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority"))
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as place:
        # The ssl module reads these from files only.
        certificate, key = Path(place) / "certificate", Path(place) / "key"
        key.touch(mode=0o600)
        certificate.write_text(_pem(user, "client-certificate"))
        key.write_text(_pem(user, "client-key"))
        tls.load_cert_chain(certificate, key)
    return str(cluster["server"]), tls


def _named(entries: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _pem(entry: dict[str, str], name: str) -> str:
    if inline := entry.get(f"{name}-data"):
        return base64.b64decode(inline).decode()
    return Path(entry[name]).read_text()
