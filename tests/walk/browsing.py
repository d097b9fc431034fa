"""What the documents do in a browser: sign in to a notebook, run a cell, look at the console."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from tests.browser.chromium import Page, browser
from tests.browser.notebook_pages import LIST_DEVICES, new_notebook, run_cell, sign_in

# A process is listed by nvidia-smi as soon as it uses the card.
USE_THE_CARD = """\
import ctypes
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
!nvidia-smi
"""


@dataclass
class Browser:
    """Does what it is told, or notes what it could not do because something is not installed."""

    program: str  # empty: there is none
    has_jupyter: bool
    scratch: Path
    left_out: list[str] = field(default_factory=list)

    def sees(self, url: str, *words: str) -> None:
        async def visit(page: Page) -> None:
            await page.open(url)
            for word in words:
                await page.shows(word)

        self._visits(f"{words} at {url}", visit)

    def lists_devices_in_a_notebook(self, url: str, password: str, *words: str) -> None:
        """Signs in, and runs the program of the document in a cell."""

        async def visit(page: Page) -> None:
            await page.open(url)
            await sign_in(page, "not-the-password")
            await page.shows("Invalid credentials")
            await sign_in(page, password)
            await new_notebook(page)
            printed = await run_cell(page, 1, LIST_DEVICES)
            assert "['/device:CPU:0', '/device:GPU:0']" in printed
            shown = await run_cell(page, 2, USE_THE_CARD)
            assert sys.prefix not in shown, "a path of this machine, which no image has"
            for word in (" python3 ", *words):
                assert word in shown, shown

        if self.has_jupyter:
            self._visits(f"a notebook at {url}", visit)
        else:
            self.left_out.append(f"a notebook at {url} (no JupyterLab: make browser)")

    def _visits(self, what: str, visit: Callable[[Page], Awaitable[None]]) -> None:
        if not self.program:
            self.left_out.append(f"{what} (no browser: make browser)")
            return

        async def work() -> None:
            # A profile of its own: an old one has the port of a browser that has ended.
            async with browser(self.program, Path(mkdtemp(dir=self.scratch))) as page:
                try:
                    await visit(page)
                except BaseException:
                    await page.picture(self.scratch / "failed.png")
                    raise

        asyncio.run(work())
