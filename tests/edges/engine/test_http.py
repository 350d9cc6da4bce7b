"""Requests to users' addresses, through the real engine, to a real server."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import InvalidInput, PilothouseError, Unavailable
from pilothouse.ports import HttpAsk


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent; /silent never answers."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/silent":
            self.rfile.read()  # until the other side gives up
            return
        self.send_response(418)
        self.send_header("X-Seen", self.headers["X-Sent"] or "")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def served() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def test_any_status_is_an_answer(engine: EngineClient, served: str) -> None:
    ask = HttpAsk(f"{served}/x", "POST", headers=(("X-Sent", "yes"),), body=b"hello")
    answer = await engine.http(ask)
    assert (answer.status, answer.body, answer.truncated) == (418, b"hello", False)
    assert ("x-seen", "yes") in answer.headers
    short = HttpAsk(f"{served}/x", "POST", body=b"hello", reply_bytes=2)
    answer = await engine.http(short)
    assert (answer.body, answer.truncated) == (b"he", True)


async def test_silence_ends_in_time_and_gives_no_path_away(
    engine: EngineClient, served: str
) -> None:
    ask = HttpAsk(f"{served}/silent", "POST", timeout=timedelta(milliseconds=100))
    with pytest.raises(Unavailable, match="did not answer in time") as caught:
        await engine.http(ask)
    assert "silent" not in caught.value.message


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[::ffff:169.254.1.1]/"])
async def test_metadata_services_are_never_asked(engine: EngineClient, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"169\.254\.\d+\.\d+:80 is refused: .*never allowed"):
        await engine.http(HttpAsk(url))


async def test_loopback_is_for_those_the_operator_allows(served: str, tmp_path: Path) -> None:
    place = served.removeprefix("http://")
    process = EngineProcess(locate(), tmp_path)
    async with process.running():
        with pytest.raises(InvalidInput, match=f"allow it with --egress-allow {place}"):
            await EngineClient(process).http(HttpAsk(served, "POST"))
    process = EngineProcess(locate(), tmp_path, [f"--egress-allow={place}"])
    async with process.running():
        answer = await EngineClient(process).http(HttpAsk(served, "POST", body=b"in"))
        assert answer.body == b"in"


async def test_an_entry_that_is_none_is_named(tmp_path: Path) -> None:
    process = EngineProcess(locate(), tmp_path, ["--egress-allow=10.0.0.0/8"])
    async with process.running():
        with pytest.raises(PilothouseError, match=r"exact host:port.*10\.0\.0\.0/8"):
            await process.current()
