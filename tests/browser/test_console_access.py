"""Everybody can use the console: axe-core finds nothing serious, and no page needs a mouse."""

import pytest

from tests.browser.axe import NoAxe, axe_source, grave_findings
from tests.browser.chromium import OpenBrowser, Page
from tests.browser.console_pages import signed_in
from tests.browser.console_stage import Stage
from tests.browser.stage_pages import all_pages

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def axe() -> str:
    try:
        return axe_source()
    except NoAxe as why:
        pytest.skip(f"NO AXE-CORE: no page was tried with it, because {why}. See: make browser")


# Both themes in each language, and both widths. The second look needs no second visit.
LOOKS = {
    "en": (("light", 1280), ("dark", 390)),
    "zh-CN": (("dark", 1280), ("light", 390)),
}


@pytest.mark.parametrize("language", LOOKS)
async def test_axe_finds_nothing_serious(
    console_stage: Stage, stage_address: str, open_browser: OpenBrowser, axe: str, language: str
) -> None:
    wrong = {}
    async with signed_in(open_browser, stage_address) as visitor:
        await visitor.speaks(language)
        for path in all_pages(console_stage):
            await visitor.goes_to(path)
            await visitor.page.run(f"void (() => {{ {axe} }})()")
            for theme, width in LOOKS[language]:
                await visitor.has_window(width)
                await visitor.page.run(f"document.documentElement.dataset.theme = {theme!r}")
                if found := await grave_findings(visitor.page):
                    wrong[path, theme, width] = found
    assert not wrong


# A page, what is its main action, and whether that opens a dialogue.
MAIN_ACTIONS = (
    ("/clusters", "#page .actions a", False),
    ("/pools", "#page .actions a", False),
    ("/pools/cgpu", "#page .actions a", True),
    ("/nodes", ".row-actions a", True),
    ("/deployments/team-b/embed", "#page .actions a", True),
    ("/pods", ".row-actions a", True),
    ("/pods/team-a/train-0", "#page .actions a[data-dialogue]", True),
    ("/services", "#page .actions a", False),
    ("/map", "a.gpu-name", False),
    ("/waiting", "#table a[href*=two-cards]", False),
    ("/create", "#page button", False),
    ("/create/form", "#page button", False),
)
_MOST_TABS = 150
_HAS_FOCUS = "document.activeElement.matches({selector!r})"
# Between the last and the first element of a dialogue the focus is in the browser's own frame.
_IS_INSIDE = """document.activeElement === document.body
  || !!document.activeElement.closest("#dialogue")"""
_IS_SEEN = """(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const box = document.activeElement.getBoundingClientRect();
  const isOnScreen = box.bottom > 0 && box.top < innerHeight && box.width > 0;
  return isOnScreen && outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
})()"""


async def tabs_to(page: Page, selector: str) -> None:
    """As somebody without a mouse gets there; on the way the focus is always to be seen."""
    for _ in range(_MOST_TABS):
        if await page.run("!!document.activeElement.closest('[data-editor]')"):
            await page.press("Escape", 27)  # as the help below the editor says
        await page.press("Tab", 9)
        if await page.run("document.activeElement === document.body"):
            continue  # it has gone round
        assert await page.run(_IS_SEEN), await page.run("document.activeElement.outerHTML")
        if await page.run(_HAS_FOCUS.format(selector=selector)):
            return
    raise AssertionError(f"{selector} is not reached by {_MOST_TABS} tabs")


@pytest.mark.parametrize(("path", "action", "is_dialogue"), MAIN_ACTIONS)
async def test_the_main_action_of_a_page_needs_no_mouse(
    stage_address: str, open_browser: OpenBrowser, path: str, action: str, is_dialogue: bool
) -> None:
    async with signed_in(open_browser, stage_address) as visitor:
        page = visitor.page
        await visitor.goes_to(path)
        await tabs_to(page, action)
        if not is_dialogue:
            return
        await page.run("window.opener = document.activeElement")
        await page.press_enter()
        await page.until("document.querySelector('#dialogue').open")
        for _ in range(12):
            await page.press("Tab", 9)
            assert await page.run(_IS_INSIDE), "the focus has left the dialogue"
        await page.press("Escape", 27)
        await page.until("!document.querySelector('#dialogue').open")
        assert await page.run("document.activeElement === window.opener")
