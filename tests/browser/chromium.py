"""A real browser without a window, driven through its DevTools protocol.

Chromium comes from the system (on Debian: apt install chromium), or from the variable CHROMIUM.
Nothing is downloaded, and no package is needed besides aiohttp, which gpupool has anyway.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE_S = 120.0
_LOOK_EVERY_S = 0.05
_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which root may not use; the tests visit only pages of ours
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
)


def find_chromium() -> str | None:
    named = (os.environ.get("CHROMIUM", ""), *_NAMES)
    return next((found for name in named if name and (found := shutil.which(name))), None)


class Broken(AssertionError):
    """The page threw an exception, or the browser refused a command."""


@dataclass
class Page:
    socket: aiohttp.ClientWebSocketResponse
    asked: set[str] = field(default_factory=set)  # the hosts that the page wanted something from
    _serial: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._serial)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self.socket.receive_json(timeout=PATIENCE_S)
            if message.get("method") == "Network.requestWillBeSent":
                self.asked.add(message["params"]["request"]["url"])
            if message.get("id") == number:
                if "error" in message:
                    raise Broken(f"{method}: {message['error']['message']}")
                return dict(message["result"])

    async def open(self, url: str) -> None:
        await self.command("Page.navigate", url=url)

    async def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = await self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise Broken(f"{script}\n{json.dumps(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    async def until(self, script: str) -> Any:
        """The value of the expression, once it is true. While a page loads there may be none."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(Broken):
                if found := await self.run(script):
                    return found
            if time.monotonic() > deadline:
                text = await self.run("document.body.innerText")
                raise AssertionError(f"not within {PATIENCE_S:.0f} s: {script}\nThe page:\n{text}")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def shows(self, text: str) -> None:
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, selector: str) -> None:
        await self.click_on(f"document.querySelector({json.dumps(selector)})")

    async def click_on(self, element: str) -> None:
        """With the mouse, on the middle of what the expression finds (of its first line, if it has
        several). Live pages move what one is about to hit: who missed clicks again."""
        deadline = time.monotonic() + PATIENCE_S
        while not await self._hits(element):
            assert time.monotonic() < deadline, f"every click missed {element}"

    async def _hits(self, element: str) -> bool:
        """Whether one click, once the element is on top and lies still, has reached it."""
        place = await self.until(
            f"""(async () => {{
              const find = () => {element};
              const found = find();
              if (!found || document.readyState !== "complete") return null;
              found.scrollIntoView({{block: "nearest"}});
              const before = found.getClientRects()[0];
              for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
              const box = found.getClientRects()[0];
              if (!before || box?.x !== before.x || box.y !== before.y) return null;
              const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
              if (!found.contains(document.elementFromPoint(x, y))) return null;
              window.clickMissed = true;
              const note = ({{target}}) => window.clickMissed = find()?.contains(target) === false;
              document.addEventListener("click", note, {{capture: true, once: true}});
              return [x, y];
            }})()"""
        )
        at = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        await self.command("Input.dispatchMouseEvent", type="mousePressed", **at)
        await self.command("Input.dispatchMouseEvent", type="mouseReleased", **at)
        # A page that was left has no such variable, or is just being left; what has gone was hit.
        try:
            return not await self.run(f"!!window.clickMissed && !!({element})")
        except Broken:
            return True

    async def type(self, text: str) -> None:
        """Into what has the focus."""
        await self.command("Input.insertText", text=text)

    async def press_enter(self, *, shift: bool = False) -> None:
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        key["modifiers"] = 8 if shift else 0
        await self.command("Input.dispatchKeyEvent", type="keyDown", **key)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **key)

    async def press(self, key: str, code: int, *, ctrl: bool = False) -> None:
        """A key that types nothing by itself. `code`: its number, as on Windows."""
        pressed: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        pressed["modifiers"] = 2 if ctrl else 0
        await self.command("Input.dispatchKeyEvent", type="rawKeyDown", **pressed)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **pressed)

    async def picture(self, path: Path) -> None:
        shot = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))  # noqa: ASYNC240


OpenBrowser = Callable[[], AbstractAsyncContextManager[Page]]


@contextlib.asynccontextmanager
async def browser(program: str, directory: Path) -> AsyncIterator[Page]:
    """A new browser with an empty page; `directory` is for its profile."""
    profile = f"{directory}/profile"
    process = await asyncio.create_subprocess_exec(
        program,
        *_FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"},
        start_new_session=True,
    )
    try:
        port = await _debugging_port(process, f"{profile}/DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            url = await _first_page(session, port)
            async with session.ws_connect(url, max_msg_size=0) as socket:
                page = Page(socket)
                await page.command("Page.enable")
                await page.command("Network.enable")
                yield page
                await page.command("Browser.close")
                await asyncio.wait_for(process.wait(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _debugging_port(process: asyncio.subprocess.Process, file: str) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while "\n" not in (text := _read(file)):
        assert process.returncode is None, f"the browser ended with code {process.returncode}"
        assert time.monotonic() < deadline, "the browser did not start"
        await asyncio.sleep(_LOOK_EVERY_S)
    return int(text.split()[0])


def _read(file: str) -> str:
    """Empty as long as there is no such file."""
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except FileNotFoundError:
        return ""


async def _first_page(session: aiohttp.ClientSession, port: int) -> str:
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        listed = await answer.json()
    return str(next(each["webSocketDebuggerUrl"] for each in listed if each["type"] == "page"))
