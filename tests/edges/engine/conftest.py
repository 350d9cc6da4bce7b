"""A real engine for tests of the door to it."""

from collections.abc import AsyncIterator

import pytest

from pilothouse.dev.cluster import DevCluster
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.ports import Credentials


@pytest.fixture
async def process(tmp_path) -> AsyncIterator[EngineProcess]:
    engine = EngineProcess(locate(), tmp_path / "cache", ["--egress-allow=127.0.0.1:*"])
    async with engine.running():
        yield engine


@pytest.fixture
def engine(process: EngineProcess) -> EngineClient:
    return EngineClient(process)


@pytest.fixture
def at(hub: DevCluster) -> Credentials:
    return Credentials(kubeconfig=hub.kubeconfig.read_bytes(), trusted=True)
