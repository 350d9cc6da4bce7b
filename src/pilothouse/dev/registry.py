"""A real OCI registry on loopback, charts and git repositories beside it: TLS and a password if asked for."""

import base64
import contextlib
import json
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.dev.binaries import find_registry
from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.settings import DevSettings
from pilothouse.gobuild import Report


@dataclass(frozen=True, slots=True)
class Registry:
    """Where it is, and what to trust it by."""

    address: str
    certificate: str = ""
    # The public key of its own cosign signatures.
    signer: str = field(default="", repr=False)
    # Git over SSH: where, the key it takes, and the line that its host key is known by.
    ssh: str = ""
    ssh_key: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)

    @property
    def charts(self) -> str:
        """The address of the directory of charts."""
        return f"{'https' if self.certificate else 'http'}://{self.address}"

    @property
    def git(self) -> str:
        """The address of the directory of git repositories."""
        return f"{self.charts}/git"

    def sign(self, repository: str, digest: str, login: tuple[str, str] | None = None) -> None:
        """Sign a manifest as `cosign sign --key` does, with a key of the registry's own."""
        address = f"{self.charts}/cosign/{repository}@{digest}"
        request = urllib.request.Request(address, method="POST")  # noqa: S310 - on loopback
        if login:
            token = base64.b64encode(":".join(login).encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        trust = ssl.create_default_context(cadata=self.certificate) if self.certificate else None
        with urllib.request.urlopen(request, timeout=30, context=trust):  # noqa: S310
            return


@contextlib.contextmanager
def serve_registry(
    directory: Path,
    report: Report,
    *,
    charts: Path | None = None,
    git: Path | None = None,
    tls: bool = False,
    login: tuple[str, str] | None = None,
) -> Iterator[Registry]:
    """Serve an empty registry for as long as the block lasts; `login` is a user and a password."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [str(find_registry(DevSettings.from_environment(), report)), "-dir", str(directory)]
    if charts:
        command += ["-charts", str(charts)]
    if git:
        command += ["-git", str(git)]
    if tls:
        command += ["-tls"]
    if login:
        command += ["-user", login[0], "-password", login[1]]
    # Leaving the block closes its standard input, which ends it, and waits for that.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        greeting = process.stdout.readline() if process.stdout else ""
        if not greeting:
            raise DevClusterError("the registry did not start")
        yield Registry(**json.loads(greeting))
