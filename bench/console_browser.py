"""The console in a real browser: how long until a page can be used, and frames while one pans."""

import tempfile
from pathlib import Path

from kubeclient.objects import Obj
from tests.browser.chromium import Page, browser, find_chromium

PAGES = ("overview", "map", "nodes", "pods")
_PAN_MS = 3_000
# Moves the heat view a little in each frame, as a drag does, and counts the frames.
_PAN = f"""new Promise((done) => {{
  const canvas = document.getElementById("heat-canvas");
  const box = canvas.getBoundingClientRect();
  const at = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {{
    clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true }}));
  canvas.setPointerCapture = () => {{}};
  canvas.dispatchEvent(new WheelEvent("wheel", {{
    deltaY: -400, clientX: box.left + 300, clientY: box.top + 200, cancelable: true }}));
  at("pointerdown", 400, 200);
  let [frames, longest, last, began] = [0, 0, 0, 0];
  const frame = (now) => {{
    if (!began) began = last = now;
    longest = Math.max(longest, now - last);
    last = now;
    frames += 1;
    at("pointermove", 400 + 200 * Math.sin(frames / 20), 200 + 80 * Math.cos(frames / 20));
    if (now - began < {_PAN_MS}) return requestAnimationFrame(frame);
    done([Math.round((1000 * (frames - 1)) / (now - began)), Math.round(longest)]);
  }};
  requestAnimationFrame(frame);
}})"""
_BYTES = """performance.getEntriesByType("resource").reduce((sum, each) => sum + each.transferSize,
  performance.getEntriesByType("navigation")[0].transferSize)"""


async def in_browser(home: str, key: str) -> list[Obj]:
    """Empty: there is no browser on this machine."""
    program = find_chromium()
    if program is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        async with browser(program, Path(folder)) as page:
            await page.open(f"{home}/?key={key}")
            await page.until("!!document.querySelector('#page h1')")
            found = [await _usable(page, f"{home}/clusters/cluster/{each}", each) for each in PAGES]
            return [*found, await _frames(page, f"{home}/clusters/cluster/map?view=heat")]


async def _usable(page: Page, url: str, name: str) -> Obj:
    """Until the document and its scripts are there; the heat view: until its squares are."""
    await page.open(url)
    await page.until(f"location.href === {url!r} && document.readyState === 'complete'")
    await page.until(
        "(() => { const heat = document.getElementById('heat-canvas');"
        " return !heat || !!heat.dataset.version; })()"
    )
    timing = "performance.getEntriesByType('navigation')[0]"
    drawn = "performance.getEntriesByName('heat-drawn')[0]?.startTime ?? 0"
    usable = await page.run(f"Math.max({timing}.domContentLoadedEventEnd, {drawn})")
    return {
        "in chromium": name,
        "first byte ms": round(await page.run(f"{timing}.responseStart")),
        "usable ms": round(usable),
        "KB with scripts": round(await page.run(_BYTES)) // 1000,
    }


async def _frames(page: Page, url: str) -> Obj:
    await page.open(url)
    await page.until("!!document.getElementById('heat-canvas')?.dataset.version")
    frames, longest = await page.run(_PAN)
    return {"panning the heat view": f"{frames} frames a second", "longest frame ms": longest}
