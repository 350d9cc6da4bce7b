"""Charts from a URL scheme that an operator added: the guide's plugin, run by the real engine."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.core.desired import ChartAsk
from pilothouse.dev import charts
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import InvalidInput, PilothouseError, Unavailable

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/guides/custom-chart-source.md"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Make the plugin exactly as the guide shows it."""
    place = tmp_path / "plugins" / "buckets"
    place.mkdir(parents=True)
    files = re.findall(
        r"^```\w+ title=(\S+)\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE
    )
    for name, text in files:
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    assert sorted(name for name, _ in files) == ["get.py", "plugin.yaml"]
    return place.parent


@pytest.fixture
async def with_plugins(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EngineClient]:
    with charts.serve(tmp_path / "bucket") as repository:
        repository.add(ROOT / "examples/charts/hello", version="1.0.0")
        monkeypatch.setenv("BUCKETS", repository.url)
        flags = [f"--getter-plugins={plugins}", "--getter-plugin-scheme=s3"]
        process = EngineProcess(locate(), tmp_path / "cache", flags)
        async with process.running():
            yield EngineClient(process)


async def test_a_repository_in_a_bucket(with_plugins: EngineClient) -> None:
    found = await with_plugins.resolve_chart(
        ChartAsk(repository="s3://charts", name="hello", version="1.0.0")
    )
    assert (found.name, found.version) == ("hello", "1.0.0")


async def test_a_chart_in_a_bucket(with_plugins: EngineClient) -> None:
    found = await with_plugins.resolve_chart(
        ChartAsk("", "", "", url="s3://charts/hello-1.0.0.tgz")
    )
    assert (found.name, found.version) == ("hello", "1.0.0")


async def test_what_the_plugin_says_is_told(with_plugins: EngineClient) -> None:
    with pytest.raises(Unavailable, match=r"s3://charts/none\.tgz failed: .*404"):
        await with_plugins.resolve_chart(ChartAsk("", "", "", url="s3://charts/none.tgz"))


async def test_a_scheme_nobody_allowed(with_plugins: EngineClient, engine: EngineClient) -> None:
    with pytest.raises(InvalidInput, match="not the URL of a chart"):
        await with_plugins.resolve_chart(ChartAsk("", "", "", url="gs://charts/hello-1.0.0.tgz"))
    with pytest.raises(InvalidInput, match="not the URL of a chart"):
        await engine.resolve_chart(ChartAsk("", "", "", url="s3://charts/hello-1.0.0.tgz"))


async def test_plugins_without_a_scheme_are_an_operators_mistake(
    plugins: Path, tmp_path: Path
) -> None:
    process = EngineProcess(locate(), tmp_path / "cache", [f"--getter-plugins={plugins}"])
    async with process.running():
        with pytest.raises(PilothouseError, match="needs --getter-plugin-scheme"):
            await process.current()
