"""The pictures of docs/console.md: pages of the console, of a cluster with something on it.

    .venv/bin/python -m tools.console_pictures           # into docs/pictures
    .venv/bin/python -m tools.console_pictures FOLDER    # every page in every look, to look at

Needs chromium. The cluster is the stage of the tests (tests/browser/console_stage.py).
"""

import asyncio
import base64
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.browser.chromium import Page, browser, find_chromium
from tests.browser.console_pages import Visitor, signed_in
from tests.browser.console_stage import Stage, console_of, nodes_of, stage

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
_WIDE, _NARROW = (1280, 860), (390, 780)
_QUALITY = 70
_SETTLED = """(async () => {
  for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame);
  const heat = document.getElementById("heat-canvas");
  return !heat || !!heat.dataset.version;
})()"""


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    size: tuple[int, int] = _WIDE
    theme: str = "light"
    language: str = "en"
    until: str = ""  # a text that has to be there first
    typed: str = ""  # into the terminal of the page


def pictures(found: Stage) -> tuple[Picture, ...]:
    node = nodes_of(found, "cgpu")[1]
    panel = "/map?pod=team-a%2Ftrain-0"
    return (
        Picture("overview", "/overview?range=1d", (1280, 1240)),
        Picture("map", panel, (1280, 980), until="Running"),
        Picture("map-dark", "/map?colour=use", theme="dark"),
        Picture("map-narrow", "/map", _NARROW),
        Picture("clusters", "/clusters"),
        Picture("create-cluster", "/create/cluster"),
        Picture("pools", "/pools"),
        Picture("pool", "/pools/cgpu"),
        Picture("nodes", "/nodes"),
        Picture("node", f"/nodes/{node}"),
        Picture("deployments", "/deployments"),
        Picture("deployment", "/deployments/team-b/embed"),
        Picture("pods", "/pods?namespace=team-a"),
        Picture("pod", "/pods/team-a/train-0?range=6h"),
        Picture("pod-dark-narrow", "/pods/team-a/train-0", _NARROW, "dark"),
        Picture("logs", "/pods/team-a/train-0/logs", until="step 39"),
        Picture("terminal", "/pods/team-a/train-0/terminal", typed="nvidia-smi", until="MiB / "),
        Picture("pod-waits", "/pods/team-a/two-cards"),
        Picture("pod-waits-chinese", "/pods/team-a/two-cards", language="zh-CN"),
        Picture("waiting", "/waiting"),
        Picture("services", "/services?namespace=research"),
        Picture("create", "/create?sample=shared-gpus"),
        Picture("create-form", "/create/form", until="Fits"),
        Picture("configmap", "/configmaps/research/training"),
        Picture("secrets", "/secrets/research/registry"),
        Picture("jobs", "/jobs"),
        Picture("events", "/events"),
    )


def every_look(found: Stage) -> Iterable[Picture]:
    for each in pictures(found):
        for label, size in (("wide", _WIDE), ("narrow", _NARROW)):
            for theme in ("light", "dark"):
                name = f"{each.name}-{label}-{theme}"
                yield Picture(name, each.path, size, theme, each.language, each.until, each.typed)


async def take(visitor: Visitor, picture: Picture, folder: Path) -> None:
    page = visitor.page
    await visitor.speaks(picture.language)
    await visitor.likes(picture.theme)
    await visitor.has_window(*picture.size)
    await visitor.goes_to(picture.path)
    if picture.typed:
        state = "document.getElementById('terminal-state')"
        await page.until(f"{state}.textContent === {state}.dataset.open")
        await page.type(picture.typed)
        await page.press_enter()
    if picture.until:
        await page.shows(picture.until)
    await page.until(_SETTLED)
    shot = await page.command("Page.captureScreenshot", format="webp", quality=_QUALITY)
    (folder / f"{picture.name}.webp").write_bytes(base64.b64decode(shot["data"]))


async def take_all(found: Stage, address: str, folder: Path, all_looks: bool) -> None:
    program = find_chromium()
    assert program is not None, "wanted chromium: see make browser"
    with tempfile.TemporaryDirectory() as profile:

        @contextlib.asynccontextmanager
        async def opened() -> AsyncIterator[Page]:
            async with browser(program, Path(profile)) as page:
                yield page

        async with signed_in(opened, address) as visitor:
            for picture in every_look(found) if all_looks else pictures(found):
                await take(visitor, picture, folder)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        stage(Path(home)) as found,
        console_of(found) as address,
    ):
        asyncio.run(take_all(found, address, folder, len(sys.argv) > 1))
    size = sum(each.stat().st_size for each in folder.glob("*.webp"))
    print(f"{len(list(folder.glob('*.webp')))} pictures, {size // 1000} KB, in {folder}")


if __name__ == "__main__":
    main()
