"""Read what a Release refers to (values, patches, pull credentials) and put it together.

Everything that came from a Secret is noted, so that it can be taken out of whatever is said later.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

import yaml

from pilothouse.api.chart import SecretReference
from pilothouse.api.meta import Key
from pilothouse.api.references import KeySelector, ValueSource
from pilothouse.api.release import Release
from pilothouse.core.desired import Sources
from pilothouse.core.redact import assigned_in, lines_in, strings_in
from pilothouse.core.spelling import as_helm_reads
from pilothouse.errors import EngineLost, InvalidInput, Missing, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.access import CA_KEY, GIT_KEYS, WAYS, read_access
from pilothouse.ports import (
    WHOLE,
    Assignment,
    Composer,
    Document,
    Reference,
    References,
    Referred,
    Use,
)

VALUES_KEY, SET_KEY, PATCH_KEY = "values.yaml", "value", "patch.yaml"
PATCH_ANNOTATION = "release.helm.crossplane.io/patch"


class SourceReader:
    """Resolves the references of Releases."""

    def __init__(self, references: References, composer: Composer, namespace: str) -> None:
        self._references = references
        self._composer = composer
        # A reference without a namespace means the controller's own.
        self._namespace = namespace

    async def resolve(self, key: Key, release: Release) -> Sources:
        """Return what the references came to; raises what is missing, by its field."""
        # Also what is missing: its appearance is what will wake this Release.
        self.note(key, release)
        return await self._read(release, _Reading(self._references, self._namespace))

    async def secrets(self, key: Key, release: Release) -> frozenset[str]:
        """Return what must not be shown of a Release that is being deleted: what cannot be read is not needed."""
        self.note(key, release)
        wanted, reading = release.spec.for_provider, _Reading(self._references, self._namespace)
        reads = [
            *(partial(reading.value, "", one, VALUES_KEY) for one in wanted.values_from),
            *(
                partial(reading.assigned, "", one.value_from)
                for one in wanted.set
                if one.value_from
            ),
            *(partial(reading.value, "", one, PATCH_KEY) for one in wanted.patches_from),
        ]
        for read in reads:
            try:
                await read()
            except EngineLost:
                raise
            except PilothouseError:
                continue
        return frozenset(reading.secrets)

    def note(self, key: Key, release: Release) -> None:
        """Note which keys a Release uses, before any is read: one look at an object then serves all."""
        self._references.used_by(key, frozenset(_uses(release, self._namespace)))

    def forget(self, key: Key) -> None:
        """The Release is gone."""
        self._references.used_by(key, frozenset())

    async def _read(self, release: Release, reading: "_Reading") -> Sources:
        wanted = release.spec.for_provider
        access = await read_access(release, reading)
        documents = await self._documents(release, reading)
        assignments = await self._assignments(release, reading)
        patches = await self._patches(release, reading)
        secrets = frozenset(reading.secrets)
        plain = isinstance(wanted.values, dict) or wanted.values is None
        elsewhere = wanted.values_from or wanted.config or assignments or patches
        if plain and not elsewhere:
            # The common case needs no help from the engine.
            return Sources(
                values=as_helm_reads(wanted.values or {}),
                access=access,
                secrets=secrets,
            )
        composed = await self._composer.compose(documents, assignments, patches)
        return Sources(
            values=composed.values,
            patches=composed.patches,
            patches_sha=composed.patches_sha,
            patch_annotations=tuple(reading.patch_annotations),
            access=access,
            secrets=secrets,
        )

    async def _documents(self, release: Release, reading: "_Reading") -> list[Document]:
        wanted = release.spec.for_provider
        documents = []
        for number, source in enumerate(wanted.values_from):
            field = f"spec.forProvider.valuesFrom[{number}]"
            found = await reading.value(field, source, VALUES_KEY)
            if found is not None:
                documents.append(Document(found.origin, found.text))
        if wanted.config:
            documents.append(Document("spec.forProvider.config", wanted.config))
        if isinstance(wanted.values, str):
            documents.append(Document("spec.forProvider.values", wanted.values))
        elif wanted.values is not None:
            documents.append(Document("spec.forProvider.values", json.dumps(wanted.values)))
        return documents

    async def _assignments(self, release: Release, reading: "_Reading") -> list[Assignment]:
        assignments = []
        for number, one in enumerate(release.spec.for_provider.set):
            field = f"spec.forProvider.set[{number}]"
            value = one.value
            if one.value_from is not None:
                found = await reading.assigned(field, one.value_from)
                if found is None:
                    continue  # optional and missing: not set at all
                value = found.text
            if value is None:
                raise InvalidInput(
                    f"{field}: {one.name!r} has neither a value nor a valueFrom", FaultKind.INVALID
                )
            assignments.append(Assignment(field, one.name, value))
        return assignments

    async def _patches(self, release: Release, reading: "_Reading") -> list[Document]:
        patches = []
        for number, source in enumerate(release.spec.for_provider.patches_from):
            field = f"spec.forProvider.patchesFrom[{number}]"
            found = await reading.value(field, source, PATCH_KEY)
            if found is None:
                continue
            patches.append(Document(found.origin, found.text))
            name = f"{PATCH_ANNOTATION}-{number + 1}-{found.object.uid}"
            reading.patch_annotations.append((name, found.object.resource_version))
        return patches


class _Found:
    __slots__ = ("object", "origin", "text")

    def __init__(self, origin: str, text: str, referred: Referred) -> None:
        self.origin, self.text, self.object = origin, text, referred


class _Reading:
    """One resolution: what was used, and what of it is secret."""

    def __init__(self, references: References, namespace: str) -> None:
        self._references = references
        self._namespace = namespace
        self.secrets: set[str] = set()
        self.patch_annotations: list[tuple[str, str]] = []

    async def value(self, field: str, source: ValueSource, default_key: str) -> _Found | None:
        """Return the text of one key; None when it is optional and missing."""
        secret = source.secret_key_ref is not None
        selector = source.secret_key_ref or source.config_map_key_ref
        if selector is None:
            raise InvalidInput(f"{field}: give configMapKeyRef or secretKeyRef", FaultKind.INVALID)
        use = _use(selector, default_key, self._namespace, secret=secret)
        found = await self._references.read(use)
        if found is None or found.value is None:
            if selector.optional:
                return None
            what = f'has no key "{use.key}"' if found else "not found"
            raise Missing(f"{field}: {use.reference} {what}", FaultKind.NOT_FOUND)
        try:
            text = found.value.decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"{field}: {use}: not text", FaultKind.INVALID) from None
        if secret:
            self.secrets |= _secret_strings(text)
        return _Found(f"{field} ({use})", text, found)

    async def assigned(self, field: str, source: ValueSource) -> _Found | None:
        """Return the text of a key that is set as `--set` does, which takes it apart."""
        found = await self.value(field, source, SET_KEY)
        if found and source.secret_key_ref:
            self.secrets |= assigned_in(found.text)
        return found

    async def whole(self, field: str, secret: SecretReference) -> Mapping[str, bytes]:
        """Return every key of a Secret of public keys: nothing of it has to be kept from messages."""
        use = Use(_secret(secret, self._namespace), WHOLE)
        found = await self._references.read(use)
        if found is None:
            raise Missing(f"{field}: {use} not found", FaultKind.NOT_FOUND)
        return found.whole


def _uses(release: Release, namespace: str) -> Iterator[Use]:
    """Name every key a Release refers to."""
    wanted = release.spec.for_provider
    assigned = [one.value_from for one in wanted.set if one.value_from]
    for sources, default_key in (
        (wanted.values_from, VALUES_KEY),
        (assigned, SET_KEY),
        (wanted.patches_from, PATCH_KEY),
        ([wanted.ca_bundle] if wanted.ca_bundle else [], CA_KEY),
    ):
        for source in sources:
            secret = source.secret_key_ref is not None
            selector = source.secret_key_ref or source.config_map_key_ref
            if selector:
                yield _use(selector, default_key, namespace, secret=secret)
    chart = wanted.chart
    if chart.pull_secret_ref:
        for key in (one for way in WAYS for one in way):
            yield Use(_secret(chart.pull_secret_ref, namespace), key)
    if chart.git and chart.git.secret_ref:
        for key in GIT_KEYS:
            yield Use(_secret(chart.git.secret_ref, namespace), key)
    if chart.verify:
        yield Use(_secret(chart.verify.secret_ref, namespace), WHOLE)


def _secret(ref: SecretReference, namespace: str) -> Reference:
    return Reference("Secret", ref.namespace or namespace, ref.name)


def _use(selector: KeySelector, default_key: str, namespace: str, *, secret: bool) -> Use:
    kind = "Secret" if secret else "ConfigMap"
    where = Reference(kind, selector.namespace or namespace, selector.name)
    return Use(where, selector.key or default_key)


@lru_cache(maxsize=128)  # every pass asks, and many Releases share a Secret
def _secret_strings(text: str) -> frozenset[str]:
    """Return what must not be shown: the text itself, its lines and, if it is YAML, each value in it."""
    found = {text.strip()} | lines_in(text)
    try:
        for document in yaml.safe_load_all(text):
            found |= strings_in(document)
    except (yaml.YAMLError, ValueError, RecursionError):
        # What Helm could read all the same is in the lines.
        return frozenset(found)
    return frozenset(found)
