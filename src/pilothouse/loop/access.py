"""Read what a chart's server is shown (pull secret, git's secret) and trusted by, and who must have signed."""

from collections.abc import Mapping
from typing import Protocol

from pilothouse.api.chart import SecretReference
from pilothouse.api.references import KeySelector, ValueSource
from pilothouse.api.release import Release
from pilothouse.core.access import Access
from pilothouse.errors import Missing
from pilothouse.faults import FaultKind

CA_KEY = "ca.crt"
GIT_FIELD = "spec.forProvider.chart.git.secretRef"
VERIFY_FIELD = "spec.forProvider.chart.verify.secretRef"
FIELD = "spec.forProvider.chart.pullSecretRef"
# Each way to log in, and the keys it takes: those of Kubernetes' own types of Secrets, and Flux's for a token.
WAYS = (
    ("username", "password"),
    ("bearerToken",),
    (".dockerconfigjson",),
    ("tls.crt", "tls.key"),
)
# Flux's names. A password beside an identity is its passphrase; for HTTPS it needs a username.
GIT_KEYS = ("username", "password", "bearerToken", "identity", "known_hosts")


class Text(Protocol):
    """What one key holds."""

    text: str


class Reading(Protocol):
    """Reads keys, and notes that they were."""

    async def value(self, field: str, source: ValueSource, default_key: str) -> Text | None:
        """Return the text of one key; None when it is optional and missing."""
        ...

    async def whole(self, field: str, secret: SecretReference) -> Mapping[str, bytes]:
        """Return every key of a Secret that holds nothing secret; raises Missing."""
        ...


async def read_access(release: Release, reading: Reading) -> Access:
    """Return what the chart's server is to be shown, and trusted by."""
    wanted = release.spec.for_provider
    bundle = None
    if wanted.ca_bundle is not None:
        bundle = await reading.value("spec.forProvider.caBundle", wanted.ca_bundle, CA_KEY)
    git = wanted.chart.git is not None
    given = await (_git_secret if git else _pull_secret)(release, reading)
    signers = await _signers(release, reading)
    ssh = "identity" in given
    return Access(
        username="" if ssh else given.get("username", ""),
        password="" if ssh else given.get("password", ""),
        bearer_token=given.get("bearerToken", "").strip(),
        docker_config=given.get(".dockerconfigjson", ""),
        client_certificate=given.get("tls.crt", ""),
        client_key=given.get("tls.key", ""),
        ca_bundle=bundle.text if bundle else "",
        private_key=given.get("identity", ""),
        passphrase=given.get("password", "") if ssh else "",
        known_hosts=given.get("known_hosts", ""),
        keyrings=signers.get("gpg", ()),
        public_keys=signers.get("cosign", ()),
    )


async def _git_secret(release: Release, reading: Reading) -> dict[str, str]:
    git = release.spec.for_provider.chart.git
    if git is None or git.secret_ref is None:
        return {}
    given: dict[str, str] = {}
    for name in GIT_KEYS:
        found = await _key(reading, GIT_FIELD, git.secret_ref, name, optional=True)
        if found is not None:
            given[name] = found
    needs: tuple[str, ...] = ()
    if "identity" in given:
        needs = ("known_hosts",)
    elif "username" in given or "password" in given:
        needs = ("username", "password")
    for name in needs:
        await _key(reading, GIT_FIELD, git.secret_ref, name, optional=False)
    if not given:
        await _key(reading, GIT_FIELD, git.secret_ref, GIT_KEYS[0], optional=False)
    return given


async def _signers(release: Release, reading: Reading) -> dict[str, tuple[bytes, ...]]:
    """Return the public keys to check the chart with, by provider."""
    verify = release.spec.for_provider.chart.verify
    if verify is None:
        return {}
    data = await reading.whole(VERIFY_FIELD, verify.secret_ref)
    cosign = verify.provider == "cosign"
    keys = tuple(
        content for name, content in sorted(data.items()) if not cosign or name.endswith(".pub")
    )
    if not keys:
        what = "key that ends in .pub" if cosign else "key"
        raise Missing(f"{VERIFY_FIELD}: the Secret has no {what}", FaultKind.NOT_FOUND)
    return {verify.provider: keys}


async def _key(
    reading: Reading, field: str, ref: SecretReference, name: str, *, optional: bool
) -> str | None:
    selector = KeySelector(name=ref.name, namespace=ref.namespace, key=name, optional=optional)
    found = await reading.value(field, ValueSource(secret_key_ref=selector), name)
    return found.text if found else None


async def _pull_secret(release: Release, reading: Reading) -> dict[str, str]:
    ref = release.spec.for_provider.chart.pull_secret_ref
    if ref is None:
        return {}

    async def key(name: str, *, optional: bool) -> str | None:
        return await _key(reading, FIELD, ref, name, optional=optional)

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
