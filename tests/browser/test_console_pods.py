"""Logs and terminals of pods in a real browser, on the click path of the documents."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser, Page
from tests.browser.console_pages import LANGUAGES, signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import pod, shell

pytestmark = pytest.mark.timeout(900)

EXAMPLE = Path(__file__).parent.parent.parent / "examples/shared-gpus.yaml"
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
EVIL = "<img src=x onerror=document.title=1><script>document.title=2</script>"
TALKS = f"""
i=0; while [ $i -lt 3 ]; do echo "line $i {EVIL}"; i=$((i+1)); done
printf '\\033[31mred\\033[0m line\\n'
while [ ! -e /tmp/go ]; do sleep 1; done; echo after a while; sleep 9999
"""
WORDS = {
    "en": ("Terminal", "Connected.", "Logs", "Follows."),
    "zh-CN": ("终端", "已连接。", "日志", "实时更新中。"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")):
            assert call(running, "POST", SETS, each)[0] == 201
        talks = pod("talks", shell(TALKS, "main"), shell("sleep 9999", "other"))
        assert call(running, "POST", PODS, talks)[0] == 201
        for name in ("cgpu-test-0", "cgpu-test-no-isolation-0", "talks"):
            eventually(lambda name=name: is_running(running, name), within_s=180)  # type: ignore[misc]
        yield running


def is_running(cluster: Cluster, name: str) -> bool:
    status, found = call(cluster, "GET", f"{PODS}/{name}")
    return status == 200 and found["status"].get("phase") == "Running"


async def screen_shows(page: Page, text: str) -> None:
    await page.until(f"document.querySelector('#terminal .screen').innerText.includes({text!r})")


async def prompts(page: Page) -> None:
    """The shell waits for a command: what is typed earlier stands before its prompt."""
    await page.until(
        r"/(^|\n)[#$]\s*$/.test(document.querySelector('#terminal .screen').innerText)"
    )


async def types(page: Page, text: str) -> None:
    await page.until("document.activeElement.matches('#terminal .typed')")
    await page.type(text)
    await page.press_enter()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_nvidia_smi_shows_the_share_in_one_pod_and_the_card_in_the_other(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    terminal, connected, *_ = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        for name, memory in (
            ("cgpu-test-0", "3226MiB"),
            ("cgpu-test-no-isolation-0", "16130MiB"),
        ):
            await visitor.goes_to("/pods")
            await visitor.clicks(name)
            await visitor.is_at(f"/pods/default/{name}")
            await visitor.clicks(terminal, ".actions")
            await visitor.page.shows(connected)
            await types(visitor.page, "nvidia-smi")
            await screen_shows(visitor.page, f"{memory} |")
            await pictures(visitor.page, f"terminal-{language}-{name}")


async def test_a_terminal_takes_keys_as_a_terminal_does(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/pods/default/talks/terminal")
        await page.shows("Connected.")
        # Once it answers, it waits for its next line, and Ctrl-C ends it. A shell between two
        # commands of its own would drop that Ctrl-C; and a line that is typed before the next
        # prompt can be read by the program that is about to end.
        await prompts(page)
        await types(page, "cat")
        await types(page, "a line")
        await screen_shows(page, "a line\na line\n")
        await page.press("c", 67, ctrl=True)
        await screen_shows(page, "^C\n")
        await prompts(page)
        await types(page, "echo free-$((1+1)); printf '\\033[1;31mred\\033[0m\\n'")
        await screen_shows(page, "free-2")
        await page.until("document.querySelector('#terminal .bold.f1')?.textContent === 'red'")
        # Backspace and the arrow keys are the shell's own.
        await prompts(page)
        await page.type("echo abX")
        await page.press("Backspace", 8)
        await types(page, "c-end")
        await screen_shows(page, "\nabc-end")
        await prompts(page)
        await types(page, f"echo '{EVIL}'")
        await page.until(
            "document.querySelector('#terminal .screen').innerText.split('<img').length > 2"
        )
        assert (
            await page.run("document.querySelectorAll('#terminal img, #terminal script').length")
            == 0
        )
        await types(page, "exit")
        await page.shows("The shell has ended.")
        await visitor.clicks("Connect again")
        await page.shows("Connected.")


async def test_the_screen_understands_what_programs_write(
    address: str, open_browser: OpenBrowser
) -> None:
    """Each case: what is written, and what the screen shows."""
    cases = (
        ("a\r\nb", "a|b"),
        ("abc\b\bX", "aXc"),
        ("abc\r\x1b[K", ""),
        ("abc\x1b[2Dx", "axc"),
        ("a\r\n\x1b[1;3Hz", "a z"),
        ("one\x1b[2J\x1b[Htwo", "two"),
        ("abc\r\x1b[@x", "xabc"),
        ("abc\r\x1b[2P", "c"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b[?25l\x1b[31mred\x1b[0m", "red"),
        ("12345678901", "1234567890|1"),
        ("1\r\n2\r\n3\r\n4\r\n5", "1|2|3|4|5"),
        ("1\r\n2\r\n3\r\n4\x1b[1;3r\x1b[3;1H\nx", "2|3|x|4"),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[M", "2|3"),
        ("1\r\n2\x1b[1;1H\x1b[Lx", "x|1|2"),
        ("\x1b[99999999999;9999H\x1b[-1Ax", None),
        ("\x1b[38;5;9mx\x1b[48;2;1;2;3my", "xy"),
        ("\ud83d\ude00x", "\ud83d\ude00x"),
    )
    async with signed_in(open_browser, address) as visitor:
        for written, shown in cases:
            text = written.encode("utf-16", "surrogatepass").decode("utf-16")
            for step in (1, len(text)):  # all at once, and character by character
                found = await visitor.page.run(
                    f"""import('/static/screen.js').then(({{Screen}}) => {{
                      const screen = new Screen(10, 4), text = [...{_js(text)}];
                      for (let i = 0; i < text.length; i += {step})
                        screen.write(text.slice(i, i + {step}).join(""));
                      const lines = screen.lines.map(l => l.map(c => c[0]).join("").trimEnd());
                      return lines.join("|").replace(/\\|+$/, "");
                    }})"""
                )
                if shown is not None:
                    wanted = shown.encode("utf-16", "surrogatepass").decode("utf-16")
                    assert found == wanted, (written, step)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_log_is_followed_filtered_and_never_markup(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    _, _, logs, follows = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/pods/default/talks")
        await visitor.clicks(logs, ".actions")
        await page.shows(f"line 2 {EVIL}")
        await page.shows(follows)
        await page.until(
            "[...document.querySelectorAll('#log div')].some(e => e.textContent === 'red line')"
        )
        assert await page.run("document.querySelectorAll('#log img, #log script').length") == 0
        assert len(str(await page.run("document.title"))) > 1
        cluster.kubectl("exec", "talks", "-c", "main", "--", "touch", "/tmp/go")
        await page.shows("after a while")
        await page.run("document.querySelector('#log-filter').focus()")
        await page.type("LINE 1")
        await page.until("!document.querySelector('#log').innerText.includes('line 2')")
        await page.shows("line 1")
        await pictures(page, f"logs-{language}")
        # The run before: there was none, and the API server says so.
        await page.click("input[name=previous]")
        await page.shows("previous terminated container")


async def test_a_browser_keeps_a_bounded_part_of_a_log(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    much = pod("much", shell("while [ ! -e /tmp/go ]; do sleep 1; done; seq 1 20000; sleep 9999"))
    assert call(cluster, "POST", PODS, much)[0] == 201
    eventually(lambda: is_running(cluster, "much"), within_s=180)
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/pods/default/much/logs")
        await visitor.page.shows("Follows.")
        cluster.kubectl("exec", "much", "--", "touch", "/tmp/go")
        await visitor.page.until(
            "document.querySelector('#log').lastChild?.textContent === '20000'"
        )
        assert await visitor.page.run("document.querySelectorAll('#log div').length") == 5000


def _js(text: str) -> str:
    return "String.fromCodePoint(" + ",".join(str(ord(c)) for c in text) + ")"


async def pictures(page: Page, name: str) -> None:
    """For those who want to look: PICTURES names a folder."""
    folder = os.environ.get("PICTURES")
    if not folder:
        return
    for width in (1280, 390):
        await page.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        wide = await page.run("document.documentElement.scrollWidth")
        assert wide <= width
        for theme in ("light", "dark"):
            await page.run(f"document.documentElement.dataset.theme = '{theme}'")
            await page.until("new Promise(d => setTimeout(() => d(1), 300))")
            await page.picture(Path(folder) / f"{name}-{width}-{theme}.png")
    await page.command("Emulation.clearDeviceMetricsOverride")
