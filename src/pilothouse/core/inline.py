"""A chart that is part of the Release itself."""

import base64
import binascii

LARGEST = 512 * 1024
FIELD = "spec.forProvider.chart.inline"


def packed(text: str) -> bytes:
    """Return the packed chart; raises ValueError that says what to use instead of a large one."""
    try:
        # Line breaks are how `base64` writes it.
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        msg = f"{FIELD}: not base64"
        raise ValueError(msg) from None
    if len(content) > LARGEST:
        msg = (
            f"{FIELD}: {len(content) // 1024} KiB packed is more than {LARGEST // 1024} KiB: "
            "push the chart to an OCI registry or a chart repository and name it in url"
        )
        raise ValueError(msg)
    return content
