"""The console in a browser: starts it, signs in, and looks at it in any size and language."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.browser.chromium import OpenBrowser, Page

LANGUAGES = ("en", "zh-CN")


@contextlib.contextmanager
def running_console(kubeconfig: Path, *, env: dict[str, str] | None = None) -> Iterator[str]:
    """Its address, with the key. `env` is added to the environment."""
    program = (sys.executable, "-m", "gpupool", "console", "--port", "0")
    # Whatever clusters this machine has are none of the tests' business.
    no_clusters = {"GPUPOOL_HOME": str(kubeconfig.parent / "no-clusters")}
    process = subprocess.Popen(
        (*program, "--kubeconfig", str(kubeconfig)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **no_clusters, **(env or {})},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+\.localhost:\d+/\?key=\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@dataclass
class Visitor:
    """Somebody who is signed in."""

    page: Page
    address: str  # of the console, without a slash at the end

    async def goes_to(self, path: str) -> None:
        await self.page.open(f"{self.address}{path}")
        await self.is_at(path)

    async def is_at(self, path: str) -> None:
        """The page is there: a click before that would hit the page that is about to go."""
        await self.page.until(
            f"location.pathname.endsWith({path.partition('?')[0]!r}) "
            "&& document.readyState === 'complete' && !!document.querySelector('#page h1')"
        )

    async def speaks(self, language: str) -> None:
        await self.page.command(
            "Network.setCookie", name="gpupool-language", value=language, url=self.address
        )

    async def likes(self, theme: str) -> None:
        """Light or dark."""
        await self.page.command(
            "Network.setCookie", name="gpupool-theme", value=theme, url=self.address
        )

    async def has_window(self, width: int, height: int = 900) -> None:
        await self.page.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def clicks(self, text: str, inside: str = "body") -> None:
        """A link or button with this text."""
        everything = json.dumps(f"{inside} :is(a, button, summary)")
        await self.page.click_on(
            f"[...document.querySelectorAll({everything})]"
            f".find(each => each.textContent.trim() === {json.dumps(text)})"
        )

    async def text(self) -> str:
        return str(await self.page.run("document.body.innerText"))


@contextlib.asynccontextmanager
async def signed_in(open_browser: OpenBrowser, address: str) -> AsyncIterator[Visitor]:
    async with open_browser() as page:
        await page.command("Runtime.enable")
        await page.open(address)
        await page.until("!!document.querySelector('#page h1')")
        yield Visitor(page, address.partition("/?")[0])
