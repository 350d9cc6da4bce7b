"""What must not be shown, from whichever Secret and whenever it came."""

import msgspec
from make import release

from pilothouse.api.meta import Key
from pilothouse.api.references import KeySelector, SetValue, ValueSource
from pilothouse.api.release import Release
from pilothouse.core.desired import Defaults
from pilothouse.errors import NotPermitted
from pilothouse.faults import FaultKind
from pilothouse.loop.hidden import MOST, Hidden
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Assignment, Composed, Document, Referred, Use

SHOP = Key("releases.helm.crossplane.io", "", "shop")


class Shelf:
    """Secrets by name, each with the one key that is asked for; some may not be read."""

    def __init__(self, **secrets: str) -> None:
        self.secrets = secrets
        self.used: frozenset[Use] = frozenset()

    async def read(self, use: Use) -> Referred | None:
        name = use.reference.name
        if name == "forbidden":
            raise NotPermitted("secrets is forbidden", FaultKind.FORBIDDEN)
        if name == "binary":
            return Referred("uid", "1", b"\xff")
        found = self.secrets.get(name)
        return None if found is None else Referred("uid", "1", found.encode())

    def used_by(self, _: Key, uses: frozenset[Use]) -> None:
        self.used = uses


class Nothing:
    """Composes nothing: what is hidden does not depend on it."""

    async def compose(
        self, _: list[Document], __: list[Assignment], ___: list[Document]
    ) -> Composed:
        return Composed({})


def secret(name: str) -> ValueSource:
    return ValueSource(secret_key_ref=KeySelector(name=name))


def of(*, values: tuple[str, ...] = (), assigned: str = "", patch: str = "") -> Release:
    return release(
        values_from=[secret(name) for name in values],
        set=[SetValue("a", value_from=secret(assigned))] if assigned else [],
        patches_from=[secret(patch)] if patch else [],
    )


def deleted(one: Release) -> Release:
    metadata = msgspec.structs.replace(one.metadata, deletion_timestamp="2026-11-15T11:00:00Z")
    return msgspec.structs.replace(one, metadata=metadata)


def surveyor(shelf: Shelf) -> Surveyor:
    parts = dict.fromkeys(
        (
            *("releases", "targets", "instances", "actions"),
            *("claims", "rivals", "upgrades", "dependencies"),
        )
    )
    sources = SourceReader(shelf, Nothing(), "own")  # type: ignore[arg-type] # the parts that are used
    return Surveyor(sources=sources, defaults=Defaults(), **parts)  # type: ignore[arg-type]


async def test_parts_of_what_is_set_are_hidden() -> None:
    found = await surveyor(Shelf(words=r"{pa\,ss1,tok2},more=l4st")).wanted(
        SHOP, of(assigned="words")
    )
    assert {"pa,ss1", "tok2", "l4st"} <= found.secrets


async def test_every_document_of_a_text_is_hidden() -> None:
    """Helm merges them all, and reads what our reader does not."""
    shelf = Shelf(several="a: f1rst\n---\nb: {c: s3cond}\n", odd="a: =\nb: th1rd\n")
    found = await surveyor(shelf).wanted(SHOP, of(values=("several", "odd")))
    assert {"f1rst", "s3cond", "th1rd"} <= found.secrets


async def test_a_deletion_hides_what_it_can_still_read() -> None:
    shelf = Shelf(values="a: hunter2", token="t0ken,b=s3cond", patch="patches: [{patch: p4tch}]")  # noqa: S106 - to be hidden
    names = ("gone", "forbidden", "binary", "values")
    one = deleted(of(values=names, assigned="token", patch="patch"))
    found = await surveyor(shelf).wanted(SHOP, one)
    assert found.absent
    assert {"hunter2", "t0ken", "s3cond", "p4tch"} <= found.secrets
    assert shelf.used, "one look at a Secret serves all"


async def test_a_deletion_hides_what_was_known() -> None:
    shelf = Shelf(values="a: hunter2")
    survey, one = surveyor(shelf), of(values=("values",))
    await survey.wanted(SHOP, one)
    del shelf.secrets["values"]
    assert "hunter2" in (await survey.wanted(SHOP, deleted(one))).secrets
    survey.memory(SHOP).hidden = Hidden()
    assert not (await survey.wanted(SHOP, deleted(one))).secrets, "nothing holds it up"


async def test_what_a_secret_held_before_is_hidden() -> None:
    shelf = Shelf(values="a: hunter2")
    survey, one = surveyor(shelf), of(values=("values",))
    await survey.wanted(SHOP, one)
    shelf.secrets["values"] = "a: hunter3"
    assert {"hunter2", "hunter3"} <= (await survey.wanted(SHOP, one)).secrets


def test_not_everything_is_remembered() -> None:
    hidden = Hidden()
    for number in range(MOST + 1):
        for _ in range(MOST):
            hidden.note(frozenset({f"secret-{number}"}))
    assert hidden.secrets == {f"secret-{number}" for number in range(1, MOST + 1)}
    assert hidden.note(frozenset()) == hidden.secrets
