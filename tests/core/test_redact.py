"""Nothing that came from a Secret is said."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.core.redact import SHORTEST, assigned_in, lines_in, redact, strings_in

secrets = st.text(min_size=SHORTEST, max_size=20)


@given(secrets, st.text(max_size=30), st.text(max_size=30))
def test_a_secret_is_masked_in_every_spelling(secret, before, after):
    for spelling in (secret, json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode()):
        assert spelling not in redact(f"{before}{spelling}{after}", {secret}).replace("***", "")


@given(st.text(max_size=40))
def test_without_secrets_nothing_changes(text):
    assert redact(text, set()) == text


def test_every_leaf_of_a_document_is_a_secret():
    found = strings_in({"a": {"b": "hunter2", "c": [12345, None, True]}, "d": "two\nlines"})
    assert {"hunter2", "12345", "two", "lines"} <= found


def test_a_large_number_is_masked_as_templates_print_it():
    """Helm reads numbers of values files as floats."""
    found = strings_in([12345678, 1250000.5, 10**400, float("inf")])
    assert {"12345678", "1.2345678e+07", "1.2500005e+06"} <= found


def test_two_halves_of_a_character_are_one_secret():
    assert redact("it is \U0001f600!", strings_in("is \ud83d\ude00")) == "it ***!"
    assert redact("nothing of it", strings_in("half \ud83d")) == "nothing of it"


def test_lines_tell_values_even_where_the_whole_is_no_yaml():
    found = lines_in(
        'pin: 0123456 # mine\n- token: "t0ken"\n  - item\n"json": "1n",\n\n%no: yaml\n'
    )
    assert {"0123456", "t0ken", "item", "1n", "yaml"} <= found
    assert "" not in found


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (r"pa\,ss1", {"pa,ss1"}),
        ("a1b2c3,other=x1y2", {"a1b2c3", "x1y2"}),
        ("a1b2c3,other.deep[0]=k=v", {"a1b2c3", "k=v"}),
        ("{tok1,tok2}", {"tok1", "tok2"}),
        (r"{to\,k1,a=b{c},more=last", {"to,k1", "a=b{c", "last"}),
        ("{tok1}more=last", {"tok1", "last"}),
        ("ab{cd}ef", {"ab{cd}ef"}),
        (r"\{no,list\}=x1y2", {"{no", "x1y2"}),
        ("a1b2c3,no-value", {"a1b2c3", "no-value"}),
        ("{tok1,tok2", {"tok1", "tok2"}),
        (r"C:\\dir\end" + "\\", {r"C:\dirend"}),
        ("+1234567", {"+1234567", "1234567"}),
        ("", set()),
    ],
)
def test_what_an_assignment_comes_to(text, values):
    assert assigned_in(text) == values


@given(st.lists(secrets, min_size=1, max_size=4), st.booleans())
def test_every_part_of_an_assignment_is_masked(parts, as_list):
    escaped = [re.sub(r"([\\,{}=])", r"\\\1", part) for part in parts]
    text = "{" + ",".join(escaped) + "}" if as_list else ",k=".join(escaped)
    assert set(parts) <= assigned_in(text)


def test_a_document_that_contains_itself_is_walked_once() -> None:
    round_and_round: list[object] = ["hunter2"]
    round_and_round.append(round_and_round)
    assert strings_in(round_and_round) == {"hunter2"}
    laughs: object = ["swordfish"]
    for _ in range(60):
        laughs = [laughs, laughs]
    assert strings_in(laughs) == {"swordfish"}
