"""Charts of the past in a real browser: drawn, and as a table for those who cannot see them."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store
from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import LANGUAGES, signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, pod

pytestmark = pytest.mark.timeout(600)

PODS = "/api/v1/namespaces/default/pods"
MINUTE_MS = 60_000
WORDS = {
    "en": ("7 days", "as a table", "Peak: 2048 MiB"),
    "zh-CN": ("7 天", "以表格显示", "2048 MiB"),
}
CONSOLE = """
import asyncio, pathlib, sys
from gpupool.cli.console import new_model
from gpupool.console.run import ConsoleSettings, run_console
from gpupool.history.pages import FileHistory
from kubeclient.credentials import find_access
from kubeclient.https import connected
async def main():
    access = await find_access({}, kubeconfig=sys.argv[1])
    past = FileHistory(pathlib.Path(sys.argv[2]))
    settings = ConsoleSettings(key="key", history_of=lambda _: past)
    said = lambda port: print(f"http://127.0.0.1:{port}/?key=key", flush=True)
    async with connected(access, "console") as kube:
        await run_console(kube, None, new_model, settings, said)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("past") / "history.sqlite"
    with Cluster(pools=SHARED_POOLS) as cluster:
        limits = {"limits": {"aliyun.com/gpu-mem": 3}}
        made = pod("shared", container("c", "pause", resources=limits))
        assert call(cluster, "POST", PODS, made)[0] == 201
        path = f"{PODS}/shared"
        eventually(lambda: call(cluster, "GET", path)[1]["spec"].get("nodeName"), within_s=90)
        fill(file)
        with console(cluster.kubeconfig, file) as found:
            yield found


def fill(file: Path) -> None:
    """Twenty minutes of the cluster and of the pod's container, with a gap in the middle."""
    sample = Sample(
        seen=MINUTE_MS,
        have=2 * MINUTE_MS,
        given=MINUTE_MS // 5,
        told=MINUTE_MS // 5,
        used=MINUTE_MS // 2,
        memory_given=60 * 3226,
        memory_used=60 * 1024,
        peak=2048,
    )
    now = int(time.time() * 1000) // MINUTE_MS * MINUTE_MS
    keys = (Key(Kind.CLUSTER, ""), Key(Kind.CONTAINER, "default/shared/c"))
    with Store(file) as store:
        for minute in (*range(20, 12, -1), *range(6, 0, -1)):
            begin = now - minute * MINUTE_MS
            store.add(begin, begin + MINUTE_MS, {key: Entry(sample) for key in keys})


@contextlib.contextmanager
def console(kubeconfig: Path, file: Path) -> Iterator[str]:
    program = (sys.executable, "-c", CONSOLE, str(kubeconfig), str(file))
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_past_is_a_chart_and_a_table(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    week, table, peak = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/pods/default/shared")
        await page.shows(peak)
        # Two stretches of time, of the share too: it is not drawn where nobody knows of it.
        for line in ("used", "share"):
            drawn = f"document.querySelector('#past-memory-c path.chart-{line}').getAttribute('d')"
            assert str(await page.run(drawn)).count("M") == 2
        await visitor.clicks(table, "#past-memory-c")
        await page.until("document.querySelector('#past-memory-c tbody').innerText.includes('1.0')")
        await visitor.clicks(week)
        await page.until("location.search.includes('range=7d')")
        await visitor.goes_to("/overview")
        await page.until("!!document.querySelector('#past-memory path.chart-allocated')")
        for width in (360, 1280):
            await visitor.has_window(width)
            wide = await page.run("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} px on a screen of {width}"
