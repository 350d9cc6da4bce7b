"""Beginning on a management cluster that answers late, or never will."""

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from pilothouse.clusters.start import Intervals, Patience, Stopped, reach
from pilothouse.clusters.unserved import census
from pilothouse.engine.client import EngineClient
from pilothouse.errors import EngineLost, InvalidInput, NotPermitted, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials

QUICK = Intervals(first_pause=0.01, longest_pause=0.02, answer_within=0.5, first_word=60)
SAYING = "waiting for the management cluster"
SILENCE = 0
# A status code, or the whole of a good answer.
Answer = int | dict[str, Any]


class Late(http.server.BaseHTTPRequestHandler):
    """Gives one answer after another, and the last for ever; silence is one too."""

    answers: list[Answer]
    over: threading.Event

    def do_GET(self) -> None:
        code = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if code == SILENCE:
            self.over.wait()
            return
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        said = code if isinstance(code, dict) else status | {"message": f"answer {code}"}
        body = json.dumps(said).encode()
        self.send_response(code if isinstance(code, int) else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def answering(*codes: Answer) -> Iterator[Credentials]:
    over = threading.Event()
    handler = type("Handler", (Late,), {"answers": list(codes), "over": over})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield credentials(f"http://127.0.0.1:{server.server_port}")
        finally:
            over.set()
            server.shutdown()


def credentials(address: str, context: str = "") -> Credentials:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
    }
    return Credentials(kubeconfig=json.dumps(config).encode(), trusted=True, context=context)


async def asked(engine: EngineClient, at: Credentials, intervals: Intervals = QUICK) -> None:
    async with asyncio.timeout(30):
        await Patience(asyncio.Event(), intervals).ask("answer", partial(reach, engine, at))


@pytest.mark.parametrize("late", [500, 503, 504, 429, SILENCE])
async def test_a_late_answer_is_waited_for(engine: EngineClient, late: int) -> None:
    with answering(late, late, 404) as at, capture_logs() as logs:
        await asked(engine, at)
    assert logs == [], "what is over at once is not worth a word"


async def test_an_engine_that_died_is_asked_again_when_there_is_another() -> None:
    died = [EngineLost("it died", FaultKind.ENGINE_LOST)]

    async def question() -> str:
        if died:
            raise died.pop()
        return "answer"

    async with asyncio.timeout(30):
        assert await Patience(asyncio.Event(), QUICK).ask("answer", question) == "answer"


async def test_it_says_what_it_waits_for_and_ends_when_told(engine: EngineClient) -> None:
    stop, talkative = (
        asyncio.Event(),
        Intervals(first_pause=0.01, first_word=0.1, between_words=0.1),
    )
    with answering(503) as at, capture_logs() as logs:
        waiting = asyncio.create_task(
            Patience(stop, talkative).ask("answer", partial(reach, engine, at))
        )
        async with asyncio.timeout(30):
            while len(logs) < 2:  # noqa: ASYNC110 - another task writes them
                await asyncio.sleep(0.01)
            stop.set()
            with pytest.raises(Stopped):
                await waiting
    assert {one["event"] for one in logs} == {SAYING}
    assert logs[-1]["error"] == "answer 503"


async def test_who_is_silent_can_be_left_at_once(engine: EngineClient) -> None:
    stop = asyncio.Event()
    with answering(SILENCE) as at:
        waiting = asyncio.create_task(Patience(stop).ask("answer", partial(reach, engine, at)))
        await asyncio.sleep(0)
        stop.set()
        async with asyncio.timeout(10):
            with pytest.raises(Stopped):
                await waiting


async def test_what_waiting_cannot_mend_ends_it_at_once(engine: EngineClient) -> None:
    nowhere = "http://127.0.0.1:1"
    wrong: list[tuple[Credentials, type[PilothouseError], str]] = [
        (Credentials(kubeconfig=b"no: config", trusted=True), InvalidInput, "kubeconfig"),
        (credentials(nowhere, "other"), InvalidInput, "context"),
    ]
    for at, error, named in wrong:
        with pytest.raises(error, match=named):
            await asked(engine, at)
    with answering(401) as at, pytest.raises(NotPermitted, match="does not take these credentials"):
        await asked(engine, at)


async def test_who_may_not_read_crds_may_begin(engine: EngineClient) -> None:
    with answering(403, 404) as at:
        await asked(engine, at)


async def test_who_may_read_nothing_yet_waits_for_it(engine: EngineClient) -> None:
    """So it is for all but administrators while an API server comes up: roles are not loaded yet."""
    with answering(403, 403, 403, 403, 404) as at:
        await asked(engine, at)
        with answering(403) as never, pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asked(engine, never)


def page(count: int, more: str = "") -> dict[str, Any]:
    api = {"apiVersion": "helm.m.crossplane.io/v1beta1"}
    items = [
        api | {"kind": "Release", "metadata": {"name": f"r-{number}"}} for number in range(count)
    ]
    return api | {"kind": "ReleaseList", "metadata": {"continue": more}, "items": items}


@pytest.mark.parametrize(
    ("answers", "counted"),
    [
        ((page(2),), "2 namespaced Releases"),
        ((page(2, more="x"), SILENCE), "at least 2 namespaced Releases"),
        ((page(2, more="x"), 503), "at least 2 namespaced Releases"),
        ((page(0),), ""),
        ((404,), ""),
        ((503,), ""),
        ((SILENCE,), ""),
    ],
)
async def test_the_start_does_not_hang_on_counting(engine: EngineClient, answers, counted) -> None:
    with answering(*answers) as at:
        async with asyncio.timeout(30):
            within = 3.0 if SILENCE in answers else 15.0
            question = partial(census, engine, at, within=within)
            patience = Patience(asyncio.Event(), Intervals(answer_within=20.0))
            said = await patience.ask("list Releases", question)
    assert said.partition(" (")[0] == counted
