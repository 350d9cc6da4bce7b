"""Read the pull secret and the CA bundle of a Release."""

from typing import Protocol

from pilothouse.api.release import KeySelector, Release, ValueSource
from pilothouse.core.access import Access
from pilothouse.errors import Missing
from pilothouse.faults import FaultKind

CA_KEY = "ca.crt"
FIELD = "spec.forProvider.chart.pullSecretRef"
# Each way to log in, and the keys it takes: those of Kubernetes' own types of Secrets, and Flux's for a token.
WAYS = (
    ("username", "password"),
    ("bearerToken",),
    (".dockerconfigjson",),
    ("tls.crt", "tls.key"),
)


class Text(Protocol):
    """What one key holds."""

    text: str


class Reading(Protocol):
    """Reads keys, and notes that they were."""

    async def value(self, field: str, source: ValueSource, default_key: str) -> Text | None:
        """Return the text of one key; None when it is optional and missing."""
        ...


async def read_access(release: Release, reading: Reading) -> Access:
    """Return what the chart's server is to be shown, and trusted by."""
    wanted = release.spec.for_provider
    bundle = None
    if wanted.ca_bundle is not None:
        bundle = await reading.value("spec.forProvider.caBundle", wanted.ca_bundle, CA_KEY)
    given = await _pull_secret(release, reading)
    return Access(
        username=given.get("username", ""),
        password=given.get("password", ""),
        bearer_token=given.get("bearerToken", "").strip(),
        docker_config=given.get(".dockerconfigjson", ""),
        client_certificate=given.get("tls.crt", ""),
        client_key=given.get("tls.key", ""),
        ca_bundle=bundle.text if bundle else "",
    )


async def _pull_secret(release: Release, reading: Reading) -> dict[str, str]:
    ref = release.spec.for_provider.chart.pull_secret_ref
    if ref is None:
        return {}

    async def key(name: str, *, optional: bool) -> str | None:
        selector = KeySelector(name=ref.name, namespace=ref.namespace, key=name, optional=optional)
        found = await reading.value(FIELD, ValueSource(secret_key_ref=selector), name)
        return found.text if found else None

    given: dict[str, str] = {}
    for way in WAYS:
        found = {name: await key(name, optional=True) for name in way}
        if all(text is None for text in found.values()):
            continue
        for name, text in found.items():
            # Half a way is a mistake: asked for again, it is named.
            given[name] = text if text is not None else await key(name, optional=False) or ""
    if not given:
        await key(WAYS[0][0], optional=False)  # says so if there is no such Secret at all
        ways = "; ".join(" and ".join(way) for way in WAYS)
        raise Missing(f"{FIELD}: the Secret has none of: {ways}", FaultKind.NOT_FOUND)
    return given
