"""What a chart's server is shown and trusted by, and its charts: of one Release, for one request at a time."""

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials and certificates; none of it is ever shown."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)
    docker_config: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    ca_bundle: str = field(default="", repr=False)
    # For git over SSH.
    private_key: str = field(default="", repr=False)
    passphrase: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)
    # One of these must have signed the chart.
    keyrings: tuple[bytes, ...] = field(default=(), repr=False)
    public_keys: tuple[bytes, ...] = field(default=(), repr=False)


OPEN = Access()


class Way(NamedTuple):
    """What a chart's server is shown, and how it is spoken to."""

    access: Access
    plain_http: bool
    insecure_skip_tls_verify: bool
