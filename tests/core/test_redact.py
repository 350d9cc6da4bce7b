"""Nothing that came from a Secret is said."""

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.core.redact import SHORTEST, redact, strings_in

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
