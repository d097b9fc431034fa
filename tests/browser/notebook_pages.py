"""Pages of JupyterLab, and what people do on them."""

from tests.browser.chromium import Page

# To the letter as the document has it.
LIST_DEVICES = """\
from tensorflow.python.client import device_lib

def get_available_devices():
    local_device_protos = device_lib.list_local_devices()
    return [x.name for x in local_device_protos]

print(get_available_devices())
"""


async def sign_in(page: Page, secret: str) -> None:
    await page.click("#password_input")
    await page.until("document.activeElement.id === 'password_input'")
    await page.type(secret)
    await page.click("#login_submit")


async def new_notebook(page: Page) -> None:
    await page.click('.jp-LauncherCard[data-category="Notebook"]')
    await page.until("!!document.querySelector('.jp-Notebook .cm-content')")
    await page.shows("| Idle")


async def run_cell(page: Page, number: int, program: str) -> str:
    """Types into the last cell and runs it. What it printed, once it has ended."""
    cells = ".jp-Notebook .jp-CodeCell"
    await page.until(f"document.querySelectorAll('{cells}').length === {number}")
    await page.click(f"{cells}:last-of-type .cm-content")
    await page.type(program)
    await page.press_enter(shift=True)
    prompts = f"[...document.querySelectorAll('{cells} .jp-InputPrompt')].map(e => e.innerText)"
    await page.until(f"{prompts}.some(text => text.includes('[{number}]'))")
    output = f"document.querySelectorAll('{cells}')[{number - 1}]"
    return str(await page.run(f"{output}.querySelector('.jp-OutputArea').innerText"))
