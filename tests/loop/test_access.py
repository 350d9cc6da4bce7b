"""What a chart's server is shown, and who must have signed: from the keys of Secrets."""

import msgspec
import pytest
from make import release

from pilothouse.api.chart import GitSpec, SecretReference, VerifySpec
from pilothouse.api.meta import Key
from pilothouse.api.release import ChartSpec
from pilothouse.core.access import Access
from pilothouse.errors import Missing
from pilothouse.loop.sources import SourceReader
from pilothouse.ports import Reference, Referred

SHOP = Key("releases.helm.crossplane.io", "", "shop")


class Shelf:
    """Secrets of the controller's own namespace."""

    def __init__(self, **secrets: Referred) -> None:
        self.secrets = secrets
        self.used: frozenset[Reference] = frozenset()

    async def read(self, reference: Reference) -> Referred | None:
        assert reference.namespace == "own"
        return self.secrets.get(reference.name)

    def used_by(self, _: Key, references: frozenset[Reference]) -> None:
        self.used = references


async def access(chart: ChartSpec, shelf: Shelf) -> Access:
    asked = release()
    wanted = msgspec.structs.replace(asked.spec.for_provider, chart=chart)
    asked = msgspec.structs.replace(
        asked, spec=msgspec.structs.replace(asked.spec, for_provider=wanted)
    )
    reader = SourceReader(shelf, None, "own")  # type: ignore[arg-type] # nothing is composed
    return (await reader.resolve(SHOP, asked)).access


def secret(**data: str) -> Referred:
    return Referred("uid", "1", data)


GIT = ChartSpec(git=GitSpec(url="ssh://git@host/x", secret_ref=SecretReference(name="git")))


async def test_a_key_for_ssh() -> None:
    words = "open sesame"
    shelf = Shelf(git=secret(identity="key", known_hosts="host", password=words))
    found = await access(GIT, shelf)
    assert found == Access(private_key="key", known_hosts="host", passphrase=words)


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        ({"identity": "key"}, "known_hosts"),
        ({"username": "joe"}, "password"),
        ({"password": "pw"}, "username"),
        ({"other": "x"}, "username"),
    ],
)
async def test_what_is_missing_for_git_is_named(data: dict[str, str], missing: str) -> None:
    shelf = Shelf(git=secret(**data))
    with pytest.raises(Missing, match=rf'chart\.git\.secretRef: .* has no key "{missing}"'):
        await access(GIT, shelf)
    assert [one.name for one in shelf.used] == ["git"], "its change wakes the Release"


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("gpg", Access(keyrings=(b"one", b"\xff", b"two"))),
        ("cosign", Access(public_keys=(b"one",))),
    ],
)
async def test_the_keys_of_signers(provider: str, expected: Access) -> None:
    keys = Referred("uid", "1", {"a.pub": "one", "c": "two"}, {"b": b"\xff"})
    verify = VerifySpec(provider=provider, secret_ref=SecretReference(name="keys"))
    chart = ChartSpec(url="https://host/c.tgz", verify=verify)
    assert await access(chart, Shelf(keys=keys)) == expected
    with pytest.raises(Missing, match=r"chart\.verify\.secretRef"):
        await access(chart, Shelf(keys=secret()))
