"""Tests that look at pages as people do: with a real browser."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from testbed.find_kubectl import ensure_kubectl
from tests.browser.chromium import Broken, OpenBrowser, Page, browser, find_chromium
from tests.browser.console_pages import running_console
from tests.browser.console_stage import Stage, console_of, stage
from tests.e2e.gpu_cluster import SHARED_POOLS


@pytest.fixture(scope="session")
def chromium() -> str:
    found = find_chromium()
    if found is None:
        pytest.skip(
            "NO BROWSER: nothing was tested in one. Install chromium (on Debian, as root: "
            "make browser), or name one in the variable CHROMIUM."
        )
    return found


@pytest.fixture
def open_browser(chromium: str, tmp_path: Path) -> OpenBrowser:
    """A failed test leaves a picture of the page in its temporary directory."""

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Page]:
        async with browser(chromium, tmp_path) as page:
            try:
                yield page
            except BaseException:
                # Between two pages there is nothing to take a picture of; the failure counts.
                with contextlib.suppress(Broken):
                    await page.picture(tmp_path / "failed.png")
                raise

    return opened


@pytest.fixture(scope="session")
def console_stage(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Stage]:
    """Nobody changes it: all tests that look at every page share it."""
    with stage(tmp_path_factory.mktemp("stage")) as found:
        yield found


@pytest.fixture(scope="session")
def stage_address(console_stage: Stage) -> Iterator[str]:
    with console_of(console_stage) as address:
        yield address


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: no notebook was reached. Set KUBECTL to one of 1.31 or newer.")
    return program


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes with shared cards. Tests that need another cluster have a fixture of their own."""
    with Cluster(pools=SHARED_POOLS) as running:
        yield running


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    """Of a console of that cluster, with its key."""
    with running_console(cluster.kubeconfig) as found:
        yield found
