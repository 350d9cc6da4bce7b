"""The door of a registry that lets everybody to their own charts only, and notes who came with whose name."""

import base64
import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSED_ON = ("Content-Type", "Content-Length", "Docker-Content-Digest")


class Turnstile:
    """Folders of a registry by whose they are; `shown` is each folder that was asked for with the name shown."""

    def __init__(self, registry: str, passwords: dict[str, str]) -> None:
        self.shown: set[tuple[str, str]] = set()
        self._registry = registry
        self._tokens = {
            base64.b64encode(f"{user}:{password}".encode()).decode(): user
            for user, password in passwords.items()
        }
        turnstile = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                turnstile._answer(self)

            def do_HEAD(self) -> None:
                turnstile._answer(self)

            def log_message(self, *_: object) -> None:
                """Keep the terminal clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        folder = handler.path.split("/")[2]
        token = handler.headers.get("Authorization", "").removeprefix("Basic ")
        user = self._tokens.get(token, "somebody" if token else "nobody")
        self.shown.add((folder, user))
        if user != folder:
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="charts"')
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        request = urllib.request.Request(
            f"http://{self._registry}{handler.path}",
            headers={"Accept": handler.headers.get("Accept", "*/*")},
            method=handler.command,
        )
        try:
            answer = urllib.request.urlopen(request, timeout=30)  # noqa: S310 - on loopback
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            handler.send_response(answer.status)
            for name in PASSED_ON:
                if value := answer.headers.get(name):
                    handler.send_header(name, value)
            handler.end_headers()
            if handler.command == "GET":
                handler.wfile.write(answer.read())


@contextlib.contextmanager
def turnstile(registry: str, passwords: dict[str, str]) -> Iterator[Turnstile]:
    made = Turnstile(registry, passwords)
    made.server.daemon_threads = True
    thread = threading.Thread(target=made.server.serve_forever, name="turnstile", daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()
