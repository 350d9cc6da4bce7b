"""What a chart's server is shown, and who must have signed: from the keys of Secrets."""

import msgspec
import pytest
from make import release

from pilothouse.api.chart import GitSpec, SecretReference, VerifySpec
from pilothouse.api.meta import Key
from pilothouse.api.references import SetValue
from pilothouse.api.release import ChartSpec
from pilothouse.core.access import Access
from pilothouse.errors import InvalidInput, Missing
from pilothouse.loop.sources import SourceReader
from pilothouse.ports import Referred, Use

SHOP = Key("releases.helm.crossplane.io", "", "shop")


class Shelf:
    """Secrets of the controller's own namespace."""

    def __init__(self, **secrets: dict[str, bytes]) -> None:
        self.secrets = secrets
        self.used: frozenset[Use] = frozenset()

    async def read(self, use: Use) -> Referred | None:
        assert use.reference.namespace == "own"
        assert use in self.used, "its change wakes the Release"
        found = self.secrets.get(use.reference.name)
        return None if found is None else Referred("uid", "1", found.get(use.key), found)

    def used_by(self, _: Key, uses: frozenset[Use]) -> None:
        self.used = uses


async def access(chart: ChartSpec, shelf: Shelf) -> Access:
    asked = release()
    wanted = msgspec.structs.replace(asked.spec.for_provider, chart=chart)
    asked = msgspec.structs.replace(
        asked, spec=msgspec.structs.replace(asked.spec, for_provider=wanted)
    )
    reader = SourceReader(shelf, None, "own")  # type: ignore[arg-type] # nothing is composed
    return (await reader.resolve(SHOP, asked)).access


async def test_a_value_to_set_is_given_even_if_it_is_empty() -> None:
    reader = SourceReader(Shelf(), None, "own")  # type: ignore[arg-type] # it is refused before
    with pytest.raises(InvalidInput, match=r"set\[0\]: 'a' has neither a value nor a valueFrom"):
        await reader.resolve(SHOP, release(set=[SetValue("a")]))


def secret(**data: str) -> dict[str, bytes]:
    return {name: text.encode() for name, text in data.items()}


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


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("gpg", Access(keyrings=(b"one", b"\xff", b"two"))),
        ("cosign", Access(public_keys=(b"one",))),
    ],
)
async def test_the_keys_of_signers(provider: str, expected: Access) -> None:
    keys = {"a.pub": b"one", "b": b"\xff", "c": b"two"}
    verify = VerifySpec(provider=provider, secret_ref=SecretReference(name="keys"))
    chart = ChartSpec(url="https://host/c.tgz", verify=verify)
    assert await access(chart, Shelf(keys=keys)) == expected
    with pytest.raises(Missing, match=r"chart\.verify\.secretRef"):
        await access(chart, Shelf(keys=secret()))
