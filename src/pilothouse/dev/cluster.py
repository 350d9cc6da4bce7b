"""Run one development cluster: one supervisor process, spoken to in JSON lines.

The supervisor stops when its standard input closes, so a cluster in the foreground cannot outlive
this process, however it ends.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from pilothouse.dev.binaries import KubeBinaries
from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.settings import child_environment

# The supervisor gives up by itself before this; it is for one that hangs.
READY_SECONDS = 150.0
STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05

ClusterReport = Callable[[str, str], None]
"""Called with a cluster's name and what it does."""


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """What cluster to run, and where it lives."""

    name: str
    directory: Path
    ephemeral: bool = False
    nodes: int = 1
    port: int = 0


@dataclass(frozen=True, slots=True)
class DevCluster:
    """A cluster that runs."""

    name: str
    directory: Path
    server: str
    kubeconfig: Path
    pid: int
    kubectl_path: Path

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> str:
        """Run kubectl on this cluster as its administrator and return what it prints."""
        return self.run(self.kubectl_path, *arguments, input=input, check=check)

    def run(
        self,
        program: Path,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> str:
        """Run a program that takes --kubeconfig; with check off, errors are part of the answer."""
        done = subprocess.run(
            [program, *arguments, "--kubeconfig", self.kubeconfig],
            input=input or "",
            env=child_environment(self.directory),
            capture_output=True,
            text=True,
            check=False,
        )
        if not check:
            return done.stdout + done.stderr
        if done.returncode != 0:
            command = " ".join((program.name, *arguments))
            raise DevClusterError(f"`{command}` failed on {self.name}: {done.stderr.strip()}")
        return done.stdout

    def restart_api_server(self) -> None:
        """Kill the API server and return when another, on the same port and data, is ready. Blocks."""
        before = self._restarts()
        try:
            os.kill(self.pid, signal.SIGUSR1)
        except ProcessLookupError as error:
            raise DevClusterError(f"cluster {self.name} does not run") from error
        until = time.monotonic() + READY_SECONDS
        while self._restarts() == before:
            if time.monotonic() > until:
                raise DevClusterError(
                    f"the API server of cluster {self.name} was not back within {READY_SECONDS:.0f} s; "
                    f"its log is in {self.directory / 'logs'}"
                )
            time.sleep(_LOOK_SECONDS)

    def _restarts(self) -> int:
        """Count them as the supervisor does: once the new server is ready."""
        return int(json.loads((self.directory / "cluster.json").read_text())["restarts"])


class ClusterProcess:
    """A supervisor from its start to its end. Use `running_cluster`, or `start_detached`."""

    def __init__(
        self, request: ClusterRequest, binaries: KubeBinaries, report: ClusterReport
    ) -> None:
        self._request = request
        self._binaries = binaries
        self._report = report
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop or release
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._failure: DevClusterError | None = None

    async def start(self, *, detached: bool = False) -> DevCluster:
        """Start the supervisor and return when a pod can run on its cluster."""
        self._process = self._spawn(detached=detached)
        assert self._process.stdout is not None
        self._lines = asyncio.StreamReader()
        reader = self._lines
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        try:
            async with asyncio.timeout(READY_SECONDS):
                cluster = await self._until_ready()
        except TimeoutError as error:
            raise DevClusterError(
                f"cluster {self._request.name} was not ready within {READY_SECONDS:.0f} s; its logs "
                f"are in {self._request.directory / 'logs'}"
            ) from error
        if cluster is None:
            raise self._ended()
        return cluster

    async def failure(self) -> DevClusterError | None:
        """Wait until the cluster ends; None if someone asked it to."""
        await self._until_ready()
        error = self._ended()
        return error if self._process is not None and self._process.returncode else None

    async def stop(self) -> None:
        """Stop the cluster and wait until all its processes are gone."""
        process = self._process
        if process is None:
            self._errors.close()
            return
        if process.stdin is not None:
            process.stdin.close()
        else:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._until_end()
        except TimeoutError:
            process.kill()  # its children die with it, by the parent-death signal
            await self._until_end()
        process.wait()
        self.release()

    def release(self) -> None:
        """Let go of the pipes; a detached supervisor goes on."""
        if self._transport is not None:
            self._transport.close()
        self._errors.close()

    def _spawn(self, *, detached: bool) -> "subprocess.Popen[bytes]":
        request = self._request
        command = [
            str(self._binaries.devcluster),
            "up",
            f"--dir={request.directory}",
            f"--name={request.name}",
            f"--nodes={request.nodes}",
            f"--port={request.port}",
            f"--ephemeral={str(request.ephemeral).lower()}",
            f"--stop-on-stdin-eof={str(not detached).lower()}",
            *(f"--binary={name}={path}" for name, path in self._binaries.components.items()),
        ]
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # a Ctrl-C for us must not reach it behind our back
            )
        except OSError as error:
            raise DevClusterError(f"cannot run {command[0]}: {error.strerror}") from error

    async def _until_ready(self) -> DevCluster | None:
        """Follow the supervisor's lines until it says it is ready, or ends."""
        assert self._lines is not None
        while line := await self._lines.readline():
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a component's stray output
            if "progress" in message:
                self._report(self._request.name, message["progress"])
            elif "error" in message:
                text = f"cluster {self._request.name}: {message['error']}"
                self._failure = DevClusterError("\n".join(filter(None, (text, message.get("log")))))
            elif message.get("ready"):
                return DevCluster(
                    name=message["name"],
                    directory=self._request.directory,
                    server=message["server"],
                    kubeconfig=Path(message["kubeconfig"]),
                    pid=message["pid"],
                    kubectl_path=self._binaries.kubectl,
                )
        return None

    async def _until_end(self) -> None:
        # Only the supervisor holds the other end, so it is gone when there is nothing left to read.
        if self._lines is not None:
            while await self._lines.readline():
                pass

    def _ended(self) -> DevClusterError:
        """Say why the supervisor ended, once it has."""
        assert self._process is not None
        code = self._process.wait()
        if self._failure is not None:
            return self._failure
        self._errors.seek(0)
        tail = self._errors.read().decode(errors="replace").strip().splitlines()[-10:]
        text = f"cluster {self._request.name} ended without a reason (exit code {code})"
        return DevClusterError("\n".join((text, *tail)))


@contextlib.asynccontextmanager
async def running_cluster(
    request: ClusterRequest, binaries: KubeBinaries, report: ClusterReport
) -> AsyncIterator[DevCluster]:
    """Run a cluster for as long as the block lasts."""
    process = ClusterProcess(request, binaries, report)
    try:
        yield await process.start()
    finally:
        await process.stop()
