"""A change comes into every page, and what the reader does there is left alone."""

import pytest

from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.browser.stage_pages import LISTS, OBJECTS

pytestmark = pytest.mark.timeout(600)

# As live.js does it: the page's own HTML once more, with one more row before the first.
_CHANGED = """(async () => {
  const script = document.querySelector("script[type=module]").src;
  const { morph } = await import(script.replace(/[^/]*$/, "morph.js"));
  const page = document.getElementById("page");
  document.body.style.minHeight = "4000px";
  for (const each of page.querySelectorAll("details")) each.open = true;
  const field = page.querySelector("input[type=search]");
  const text = document.createTreeWalker(page, NodeFilter.SHOW_TEXT, (node) =>
    node.data.trim().length > 3 && node.parentElement.closest("td, dd, p") ? 1 : 3).nextNode();
  if (field) {
    field.focus();
    field.value = "half typ";
    field.setSelectionRange(2, 4);
  } else if (text) getSelection().setBaseAndExtent(text, 1, text, 3);
  scrollTo(0, 120);
  const state = () => [scrollY, document.activeElement.id, field?.value, field?.selectionStart,
    field?.selectionEnd, field ? "" : getSelection().toString(),
    [...page.querySelectorAll("details")].every((each) => each.open)];
  const before = state();
  const fresh = new DOMParser().parseFromString(
    await (await fetch(location.href)).text(), "text/html").getElementById("page");
  const row = fresh.querySelector("tbody tr");
  const more = row?.cloneNode(true);
  if (more) row.before(Object.assign(more, { id: "one-more" }));
  morph(page, fresh.innerHTML);
  return [before, state(), !more || !!document.getElementById("one-more")];
})()"""


async def test_what_the_reader_does_on_any_page_is_left_alone(
    stage_address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, stage_address) as visitor:
        for path in (*LISTS, *OBJECTS):
            await visitor.goes_to(path)
            before, after, is_new = await visitor.page.run(_CHANGED)
            assert before == after, path
            assert before[0] == 120, path
            assert is_new, path
