"""Values and patches, put together by the real engine."""

import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.core.redact import assigned_in, strings_in
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import InvalidInput
from pilothouse.faults import FaultKind
from pilothouse.ports import Assignment, Document

CANARY = "hunter2canary"
NUMBER_AS_FLOAT = re.compile(r"-?[0-9.]+e[+-][0-9]+")
ORIGIN = "spec.forProvider.valuesFrom[0]"

# One engine serves all examples, so Hypothesis may reuse the fixture.
many = settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Not infinite, and no larger than JSON and YAML agree on.
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8)
# Few names, so that documents meet each other.
names = st.sampled_from("abcd") | st.text(max_size=3)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(names, trees, max_size=5)


@pytest.fixture(scope="module")
async def composer(tmp_path_factory) -> AsyncIterator[EngineClient]:
    process = EngineProcess(locate(), tmp_path_factory.mktemp("compose"))
    async with process.running():
        yield EngineClient(process)


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge as Helm merges values files: maps deeply, anything else replaced, nulls kept."""
    out = dict(below)
    for name, value in above.items():
        old = out.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        out[name] = merged(old, value) if both else value
    return out


def floats(value: Any) -> Any:
    """Turn every number into a float, which is what Helm reads from a document."""
    match value:
        case dict():
            return {name: floats(inner) for name, inner in value.items()}
        case list():
            return [floats(inner) for inner in value]
        case int() if not isinstance(value, bool):
            return float(value)
    return value


def typed(value: Any) -> str:
    """Spell a value so that 1, 1.0 and true differ; but not 0.0 and -0.0, as YAML has one zero."""
    return json.dumps(value, sort_keys=True).replace("-0.0", "0.0")


@many
@given(st.lists(objects, max_size=4))
async def test_documents_merge_as_helm_merges(
    composer: EngineClient, written: list[dict[str, Any]]
) -> None:
    documents = [Document(f"document {n}", json.dumps(one)) for n, one in enumerate(written)]
    composed = await composer.compose(documents, [], [])
    model: dict[str, Any] = {}
    for one in written:
        model = merged(model, one)
    assert typed(composed.values) == typed(floats(model))
    assert (composed.patches_sha, composed.patches) == ("", ())


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(['{"a": {"b": [1, "x"]}, "c": null}'], id="JSON"),
        pytest.param(["a:\n  b:\n  - 1\n  - x\nc:\n"], id="YAML in blocks"),
        pytest.param(["a: &a {b: [1, x]}\nc: ~\n"], id="YAML in one line"),
        pytest.param(["---\na: {b: [1, x]}\n---\nc: ~\n"], id="a stream of documents"),
        pytest.param(["a: {b: [1, x]}", '{"c": null}'], id="several documents"),
    ],
)
async def test_however_it_is_written(composer: EngineClient, texts: list[str]) -> None:
    composed = await composer.compose([Document("x", text) for text in texts], [], [])
    assert typed(composed.values) == typed({"a": {"b": [1.0, "x"]}, "c": None})


@pytest.mark.parametrize("text", ["", " \n", "null", "~", "---\n", "# nothing\n", "{}"])
async def test_an_empty_document_adds_nothing(composer: EngineClient, text: str) -> None:
    documents = [Document("a", "x: 1"), Document("b", text), Document("c", "z: 2")]
    assert (await composer.compose(documents, [], [])).values == {"x": 1, "z": 2}


# Expected results are those of Helm's documentation ("The Format and Limitations of --set") and of the tests of
# its strvals package.
@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        pytest.param({}, "name", "value", {"name": "value"}, id="a name and a value"),
        pytest.param({}, "outer.inner", "value", {"outer": {"inner": "value"}}, id="dots nest"),
        pytest.param(
            {"a": {"b": "x", "c": "x"}},
            "a.b",
            "y",
            {"a": {"b": "y", "c": "x"}},
            id="what is beside stays",
        ),
        pytest.param(
            {},
            r"nodeSelector.kubernetes\.io/role",
            "master",
            {"nodeSelector": {"kubernetes.io/role": "master"}},
            id="an escaped dot is part of the name",
        ),
        pytest.param(
            {}, "a", "b,c=d", {"a": "b", "c": "d"}, id="a comma begins another assignment"
        ),
        pytest.param(
            {},
            "name",
            r"value1\,value2",
            {"name": "value1,value2"},
            id="an escaped comma is part of the value",
        ),
        pytest.param({}, "a", "b=c", {"a": "b=c"}, id="a later = is part of the value"),
        pytest.param({}, "a", r"b\\c", {"a": r"b\c"}, id="an escaped backslash is one"),
        pytest.param({}, "name", "{a,b,c}", {"name": ["a", "b", "c"]}, id="braces make a list"),
        pytest.param(
            {}, "name", "{a,1,true,null}", {"name": ["a", 1, True, None]}, id="lists have types"
        ),
        pytest.param(
            {},
            "name",
            "{}",
            {"name": [""]},
            id="an empty list has one empty string (a flaw of Helm's)",
        ),
        pytest.param({}, "name", "[]", {"name": "[]"}, id="brackets are no list"),
        pytest.param(
            {}, "a", "{x,y},b=z", {"a": ["x", "y"], "b": "z"}, id="an assignment after a list"
        ),
        pytest.param({}, "a[0].b", "80", {"a": [{"b": 80}]}, id="an index makes a list"),
        pytest.param(
            {"a": [{"b": "x"}, {"b": "y"}]},
            "a[1].b",
            "z",
            {"a": [{"b": "x"}, {"b": "z"}]},
            id="an index into a list that is there",
        ),
        pytest.param({}, "a[2]", "x", {"a": [None, None, "x"]}, id="gaps are null"),
        pytest.param({}, "a[0][1]", "x", {"a": [[None, "x"]]}, id="lists in lists"),
        pytest.param(
            {}, "a[0].b", "x,a[0].c=y", {"a": [{"b": "x", "c": "y"}]}, id="one element twice"
        ),
        pytest.param({}, "a", "true", {"a": True}, id="true"),
        pytest.param({}, "a", "FALSE", {"a": False}, id="booleans in any case"),
        pytest.param({}, "a", "yes", {"a": "yes"}, id="yes is a string here"),
        pytest.param({}, "a", "0", {"a": 0}, id="zero"),
        pytest.param({}, "a", "-5", {"a": -5}, id="a negative number"),
        pytest.param({}, "a", "1000680000", {"a": 1000680000}, id="a large number stays whole"),
        pytest.param({}, "a", "00009", {"a": "00009"}, id="leading zeros make a string"),
        pytest.param({}, "a", "1.5", {"a": "1.5"}, id="a fraction is a string"),
        pytest.param({}, "a", "1e6", {"a": "1e6"}, id="an exponent makes a string"),
        pytest.param(
            {}, "a", "9223372036854775808", {"a": "9223372036854775808"}, id="too large: a string"
        ),
        pytest.param(
            {"a": {"b": "x"}},
            "a.b",
            "null",
            {"a": {"b": None}},
            id="null stays, to remove a default",
        ),
        pytest.param({"a": {"b": "x"}}, "a", "null", {"a": None}, id="null over a map"),
        pytest.param({}, "a", "", {"a": ""}, id="an empty value is an empty string"),
        pytest.param({}, "a", ",b=x", {"a": "", "b": "x"}, id="an empty value before a comma"),
        pytest.param({"a": "x"}, "a", " y ", {"a": " y "}, id="blanks stay"),
        pytest.param({}, "a", "x\ny: z", {"a": "x\ny: z"}, id="lines stay"),
        pytest.param({}, "a", "😀 é", {"a": "😀 é"}, id="any letter"),
    ],
)
async def test_assignments(
    composer: EngineClient, before: dict[str, Any], name: str, value: str, after: dict[str, Any]
) -> None:
    documents = [Document("values", json.dumps(before))]
    composed = await composer.compose(documents, [Assignment("set", name, value)], [])
    assert typed(composed.values) == typed(after)


@many
@given(st.text(alphabet="ab1,={}\\.+[]", max_size=12) | st.text(max_size=12))
async def test_every_value_of_an_assignment_would_be_masked(
    composer: EngineClient, text: str
) -> None:
    try:
        composed = await composer.compose([], [Assignment(ORIGIN, "a", text)], [])
    except InvalidInput:
        return
    # A whole number that is set is printed plainly, so that is all there is to mask.
    plain = {one for one in strings_in(composed.values) if not NUMBER_AS_FLOAT.fullmatch(one)}
    assert plain <= assigned_in(text)


async def test_assignments_apply_in_order(composer: EngineClient) -> None:
    given_twice = [Assignment("set", "a.b", "first"), Assignment("set", "a.b", "second")]
    composed = await composer.compose([Document("values", "a: {c: x}")], given_twice, [])
    assert composed.values == {"a": {"b": "second", "c": "x"}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(CANARY, "must be a mapping, not a string", id="a string"),
        pytest.param(f"- {CANARY}", "must be a mapping, not a list", id="a list"),
        pytest.param(f"a: x\nb: [{CANARY}\nc: d", "line 2", id="a list that does not end"),
        pytest.param(f"---\na: x\nb: {CANARY}: d", "line 3", id="lines count from the top"),
        pytest.param(f'a: "{CANARY}', "unexpected end", id="a string that does not end"),
        pytest.param(f"a: *{CANARY}", "anchor", id="an unknown alias"),
        pytest.param(f"a: !!int {CANARY}", "tag", id="a wrong tag"),
        pytest.param(f"? [{CANARY}]\n: x", "key", id="a list as a key"),
        pytest.param(f"~: {CANARY}", "key", id="null as a key"),
        pytest.param(f"{{\n{CANARY}", "is not valid YAML", id="a map that does not end"),
        pytest.param(f'{{"a": "{CANARY}"]', "is not valid YAML", id="bad JSON"),
    ],
)
async def test_a_bad_document_is_named_and_not_repeated(
    composer: EngineClient, caplog, text: str, says: str
) -> None:
    caplog.set_level(logging.DEBUG)
    for call in (
        composer.compose([Document("fine", "a: x"), Document(ORIGIN, text)], [], []),
        composer.compose([], [], [Document(ORIGIN, text)]),
    ):
        with pytest.raises(InvalidInput) as caught:
            await call
        refusal(caught.value, says)
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        pytest.param("a", f"x,{CANARY}", "comma", id="a comma and no value"),
        pytest.param("a", f"{{{CANARY}", "}", id="a list that does not end"),
        pytest.param(f"a[{CANARY}]", "x", "index", id="an index that is no number"),
        pytest.param(f"a[0]{CANARY}", "x", "index", id="something after an index"),
        pytest.param("canary.b", "x", "mapping", id="a dot into a string"),
        pytest.param("canary[0]", "x", "list", id="an index into a string"),
        pytest.param("", CANARY, "name", id="no name"),
    ],
)
async def test_a_bad_assignment_is_named_and_not_repeated(
    composer: EngineClient, name: str, value: str, says: str
) -> None:
    documents = [Document("fine", f"canary: {CANARY}")]
    with pytest.raises(InvalidInput) as caught:
        await composer.compose(documents, [Assignment(ORIGIN, name, value)], [])
    refusal(caught.value, says)


@many
@given(st.text(max_size=12), st.text(max_size=12))
async def test_whatever_is_wrong_is_one_sentence_without_content(
    composer: EngineClient, before: str, after: str
) -> None:
    text = before + CANARY + after
    assignment = Assignment(ORIGIN, "a", text)
    for call in (
        composer.compose([Document(ORIGIN, text)], [], []),
        composer.compose([], [assignment], []),
        composer.compose([], [], [Document(ORIGIN, text)]),
    ):
        try:
            await call
        except InvalidInput as error:
            refusal(error, "")


def refusal(error: InvalidInput, says: str) -> None:
    message = str(error)
    assert error.kind is FaultKind.INVALID
    assert message.startswith(f"{ORIGIN}: ")
    assert says in message
    assert CANARY not in message
    assert "\n" not in message


async def test_patches_are_summed_as_provider_helm_sums_them(composer: EngineClient) -> None:
    first = "patches:\n- patch: '[]'\n  target: {kind: Service, name: web, version: v1}\n"
    second = '{"patches": [{"patch": "a & b"}]}'
    documents = [Document("a", first), Document("b", ""), Document("c", second)]
    composed = await composer.compose([], [], documents)
    as_go_writes_it = (
        r'[{"patch":"[]","target":{"version":"v1","kind":"Service","name":"web"}},'
        r'{"patch":"a \u0026 b"}]'
    )
    assert composed.patches_sha == hashlib.sha256(as_go_writes_it.encode()).hexdigest()
    assert [json.loads(one) for one in composed.patches] == [
        yaml.safe_load(first),
        yaml.safe_load(second),
    ]


def test_what_is_composed_is_not_shown() -> None:
    shown = repr([Document("origin", CANARY), Assignment("origin", "name", CANARY)])
    assert "origin" in shown
    assert CANARY not in shown
