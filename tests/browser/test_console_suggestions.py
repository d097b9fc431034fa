"""The YAML editor suggests fields and values at the cursor, and marks mistakes while one types: by
the API server's own schema."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser, Page
from tests.browser.console_pages import Visitor, signed_in

pytestmark = pytest.mark.timeout(600)

# `|` is the cursor. Path; whether a value is wanted; what is half typed; fields that are there.
PLACES: dict[str, tuple[list[str], bool, str, list[str]] | None] = {
    "|": ([], False, "", []),
    "ki|": ([], False, "ki", []),
    "kind: De|": (["kind"], True, "De", []),
    "kind: |": (["kind"], True, "", []),
    "kind:|": None,
    "kind: Pod\nspec:\n  |": (["spec"], False, "", []),
    "spec:\n  a: 1\n  b|\n  c: 2": (["spec"], False, "b", ["a", "c"]),
    "spec:\n  containers:\n  - na|": (["spec", "containers"], False, "na", []),
    "spec:\n  containers:\n    - na|": (["spec", "containers"], False, "na", []),
    "spec:\n  containers:\n  - name: x\n    im|": (["spec", "containers"], False, "im", ["name"]),
    "spec:\n  containers:\n  - name: x\n  - im|": (["spec", "containers"], False, "im", []),
    "a:\n- b:\n  - c: 1\n    d|": (["a", "b"], False, "d", ["c"]),
    "a:\n- b:\n  - c: 1\n  d|": (["a"], False, "d", ["b"]),
    "spec:\n  # no: thing\n\n  x|": (["spec"], False, "x", []),
    "a: 1\n---\nb:\n  c|": (["b"], False, "c", []),
    "b:\n  c|\n---\na: 1": (["b"], False, "c", []),
    '"b":\n  c|': (["b"], False, "c", []),
    "a: b: c|": None,
    "x| y: 1": None,
    "a: {b|": None,
    "a: | # why": (["a"], True, "", []),
    "text: >\n  some words\n  here|": (["text"], False, "here", []),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[]) as running:
        yield running


async def place(page: Page, text: str) -> dict[str, Any] | None:
    at = text.index("|")
    whole = text.replace("|", "", 1)
    found: dict[str, Any] | None = await page.run(
        "import('/static/yaml_place.js').then(({placeIn}) => {"
        f" const found = placeIn({json.dumps(whole)}, {at});"
        " return found && {...found, there: [...found.there].sort()}; })"
    )
    return found


async def test_the_place_of_the_cursor_is_found(address: str, open_browser: OpenBrowser) -> None:
    async with signed_in(open_browser, address) as visitor:
        for text, wanted in PLACES.items():
            found = await place(visitor.page, text)
            if wanted is None:
                assert found is None, text
                continue
            assert found is not None, text
            said = (found["path"], found["isValue"], found["half"], found["there"])
            assert said == wanted, text
        text = "apiVersion: v1\nkind: Pod\n---\nspec:\n  |\nkind: 'Job'\napiVersion: batch/v1 # x\n"
        found = await place(visitor.page, text)
        assert found is not None
        assert (found["apiVersion"], found["kind"]) == ("batch/v1", "Job"), "of its own document"


LIST = "document.querySelector('.suggestions:not([hidden])')"
AREA = "document.querySelector('#field-manifest')"
NAMES = {"en": "Suggestions", "zh-CN": "补全建议"}
ENTER, TAB = ("Enter", 13), ("Tab", 9)
WRITTEN = """\
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 1
  template:
    spec:
      containers:
        - imagePullPolicy: Never"""


async def editor_with(visitor: Visitor, text: str) -> Page:
    await visitor.goes_to("/create")
    await visitor.page.run(f"{AREA}.focus()")
    await visitor.page.type(text)
    return visitor.page


async def first(page: Page, name: str) -> None:
    """The list is there, and this is the one that would be taken."""
    chosen = f"{LIST}?.querySelector('[aria-selected=true] b').textContent"
    await page.until(f"{chosen} === {name!r}")


async def takes(page: Page, typed: str, name: str, key: tuple[str, int] = ENTER) -> None:
    await page.type(typed)
    await first(page, name)
    await page.press(*key)


@pytest.mark.parametrize("language", NAMES)
async def test_a_deployment_is_written_with_suggestions_alone(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/create")
        await page.run(f"{AREA}.focus()")
        await page.type("apiV")
        await first(page, "apiVersion")
        assert await page.run(f"{LIST}.getAttribute('aria-label')") == NAMES[language]
        active = f"document.getElementById({AREA}.getAttribute('aria-activedescendant')).innerText"
        assert "apiVersion" in await page.run(active)
        await page.press(*ENTER)
        await takes(page, "apps/", "apps/v1", TAB)
        await takes(page, "\nkind: Depl", "Deployment")
        await takes(page, "\nspec:\n  rep", "replicas")
        await takes(page, "1\n  templ", "template")
        await takes(page, "sp", "spec")
        await takes(page, "cont", "containers")
        await takes(page, "imageP", "imagePullPolicy")
        await page.type("N")
        await first(page, "Never")
        await page.press("ArrowDown", 40)
        await first(page, "IfNotPresent")
        await page.press("Escape", 27)
        await page.until(f"!{LIST}")
        await page.type("ever")
        assert await page.run(f"{AREA}.value") == WRITTEN
        assert all("127.0.0.1" in url or "localhost" in url for url in page.asked)


async def test_ctrl_space_asks_and_a_click_takes_one(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = await editor_with(visitor, WRITTEN + "\n" + 10 * " ")
        await page.press(" ", 32, ctrl=True)
        await first(page, "name")
        offered = f"[...{LIST}.querySelectorAll('b')].map((each) => each.textContent)"
        assert "imagePullPolicy" not in await page.run(offered), "it is there already"
        await page.click(".suggestions li")
        assert (await page.run(f"{AREA}.value")).endswith("\n          name: ")
        assert await page.run(f"document.activeElement === {AREA}")


MISTYPED = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replica: 1\n"
WRONG = "[...document.querySelectorAll('.editor-layer .wrong')].map((line) => line.textContent)"
FOUND = "document.getElementById('field-manifest-found').textContent"
SAID = {
    "en": 'line 4: unknown field "spec.replica"; is it "replicas"?',
    "zh-CN": "第 4 行：未知字段“spec.replica”，是否应为“replicas”？",
}


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("path", ["/create", "/create/form"])
async def test_a_mistake_is_marked_while_somebody_types(
    address: str, open_browser: OpenBrowser, language: str, path: str
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to(path)
        if path == "/create/form":  # the form fills it in, and a selection made before is lost
            await page.until(f"{AREA}.value !== ''")
        await page.run(f"{AREA}.focus(); {AREA}.select()")
        await page.type(MISTYPED)
        await page.until(f"{FOUND} === {SAID[language]!r}")
        assert await page.run(WRONG) == ["  replica: 1\n"]
        described = await page.run(f"{AREA}.getAttribute('aria-describedby')")
        assert "field-manifest-found" in described.split()
        # Where the mistake was made right, nothing is marked any more.
        at = MISTYPED.index(":", MISTYPED.index("replica"))
        await page.run(f"{AREA}.setSelectionRange({at}, {at})")
        await page.type("s")
        await page.until(f"{FOUND} === ''")
        assert await page.run(WRONG) == []
        assert await page.run(f"document.activeElement === {AREA}")


TWO_MISTAKES = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\nspec:\n"
    "  replicas: two\n  selectr: {}\n"
)


async def test_what_is_wrong_can_be_read_without_scrolling(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = await editor_with(visitor, TWO_MISTAKES)
        await page.until(f"{FOUND} !== ''")
        box = "document.getElementById('field-manifest-found').getBoundingClientRect()"
        await page.until(f"{box}.bottom <= innerHeight && {box}.top >= 0")


async def test_marks_stay_when_the_api_server_names_only_one_of_the_mistakes(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = await editor_with(visitor, TWO_MISTAKES)
        await page.until(f"{WRONG}.length === 2")
        await page.click("#page .buttons button.primary")
        await page.until("!!document.getElementById('field-manifest-error')")
        both = json.dumps(["  replicas: two\n", "  selectr: {}\n"])
        await page.until(f"JSON.stringify({WRONG}) === JSON.stringify({both})")
        # What the API server has told is not told a second time.
        found = await page.run(FOUND)
        assert found.startswith("line 6: ")
        assert "line 7" not in found
