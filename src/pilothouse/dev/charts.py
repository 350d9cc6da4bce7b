"""A chart repository on loopback: packs charts, writes the index, serves both."""

import contextlib
import gzip
import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

MADE = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Repository:
    """A directory of packed charts, and the address it is served at."""

    directory: Path
    url: str
    requests: list[str]

    def add(self, chart: Path, **metadata: Any) -> str:
        """Pack a chart, with other metadata if given, and put it into the index; return its file name."""
        return add_chart(self.directory, chart, **metadata)


def pack(chart: Path, **metadata: Any) -> tuple[dict[str, Any], bytes]:
    """Return a chart's metadata and its .tgz, the same bytes for the same files."""
    described: dict[str, Any] = yaml.safe_load((chart / "Chart.yaml").read_text()) | metadata
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in sorted(one for one in chart.rglob("*") if one.is_file()):
            content = path.read_bytes()
            if path == chart / "Chart.yaml":
                content = yaml.safe_dump(described).encode()
            entry = tarfile.TarInfo(f"{described['name']}/{path.relative_to(chart)}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return described, packed.getvalue()


def add_chart(directory: Path, chart: Path, **metadata: Any) -> str:
    """Pack a chart into a repository's directory and into its index."""
    described, content = pack(chart, **metadata)
    name = f"{described['name']}-{described['version']}.tgz"
    (directory / name).write_bytes(content)
    index_path = directory / "index.yaml"
    index: dict[str, Any] = {"apiVersion": "v1", "entries": {}, "generated": MADE}
    if index_path.exists():
        index = yaml.safe_load(index_path.read_text())
    versions: list[dict[str, Any]] = index["entries"].setdefault(described["name"], [])
    versions[:] = [one for one in versions if one["version"] != described["version"]]
    digest = hashlib.sha256(content).hexdigest()
    versions.append({**described, "urls": [name], "digest": digest, "created": MADE})
    index_path.write_text(yaml.safe_dump(index))
    return name


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[Repository]:
    """Serve a directory as a repository for as long as the block lasts."""
    directory.mkdir(parents=True, exist_ok=True)
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - inherited
            asked.append(format % arguments)

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(directory))
    )
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="chart repository", daemon=True)
    thread.start()
    try:
        yield Repository(directory, f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
