"""A chart inside the Release."""

import base64

import msgspec
import pytest
from make import release

from pilothouse.core.desired import desired, needs_version
from pilothouse.core.inline import LARGEST, packed


def inline(content: bytes, **more: str):
    asked = release()
    text = base64.b64encode(content).decode()
    fields = {"repository": "", "name": "", "version": "", "inline": text, **more}
    chart = msgspec.structs.replace(asked.spec.for_provider.chart, **fields)
    parameters = msgspec.structs.replace(asked.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(asked.spec, for_provider=parameters)
    return msgspec.structs.replace(asked, spec=spec)


def test_the_content_is_the_identity():
    first, second = desired(inline(b"first")), desired(inline(b"second"))
    assert first.digest != second.digest
    assert first.digest == desired(inline(b"first", version="9.9.9")).digest
    assert first.chart.inline == b"first"
    assert not needs_version(first)


def test_line_breaks_do_not_matter():
    assert packed(base64.encodebytes(b"x" * 100).decode()) == b"x" * 100


def test_the_limit_says_what_to_use_instead():
    assert packed(base64.b64encode(b"x" * LARGEST).decode())
    with pytest.raises(ValueError, match="513 KiB packed is more than 512 KiB: push the chart"):
        packed(base64.b64encode(b"x" * (LARGEST + 1024)).decode())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"inline": "%%%"}, "not base64"),
        ({"url": "https://host/c.tgz"}, "inline takes the place of"),
        ({"inline": ""}, "give repository and name, or url, or git, or inline"),
    ],
)
def test_refused_by_field(more, says):
    with pytest.raises(ValueError, match=says):
        desired(inline(b"x", **more))
