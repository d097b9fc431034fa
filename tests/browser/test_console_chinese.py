"""Pages in Chinese have no English on them, beside names and what marks itself as English."""

import json
import re
from collections.abc import Iterator

import pytest

from gpupool.console.pages import ACTIONS, PAGES
from tests.browser.chromium import OpenBrowser, Page
from tests.browser.console_pages import signed_in
from tests.browser.console_stage import NAME, Stage
from tests.browser.stage_pages import all_pages

pytestmark = pytest.mark.timeout(900)

# Names that are the same in every language: products, kinds and their abbreviations, units.
NAMES = frozenset(
    """
    GPU GPUs CPU vCPU GiB MiB UUID YAML API UTC XID MIG NVLink NVIDIA ECS EIP OS EN TCP UDP IP PDB
    Kubernetes kubectl kubelet gpupool localkube kubeconfig containerd Tesla Linux CentOS Core
    Alibaba Cloud Master Worker Server Shell bash sh Ctrl Shift Tab Esc NAME key value emptyDir
    nodeSelector PIDPressure Pod Node Service Deployment Secret ConfigMap Job metadata kind
    apiVersion runtimeClassName true false cpu memory pods
    configmap cronjob daemonset deployment job pod secret service statefulset
    """.split()  # noqa: SIM905  # a list of so many words is read more easily like this
)
# What a visitor reads: texts, and what stands in attributes. Code, the content of objects and
# what is marked as English, or as what was said originally, are not in the language of the page.
_TEXTS = """(() => {
  const apart = "script, style, pre, code, textarea, noscript, [lang=en], .screen, .log";
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest(apart)) texts.push(walker.currentNode.data);
  for (const each of document.querySelectorAll("[title], [placeholder], [aria-label], [alt]"))
    if (!each.closest(apart))
      for (const name of ["title", "placeholder", "aria-label", "alt"])
        if (each.hasAttribute(name) && !(name === "title" && "original" in each.dataset))
          texts.push(each.getAttribute(name));
  return [document.title, ...texts];
})()"""
_COMMAND = re.compile(r"(?:kubectl|gpupool) [ -~]*")
_WORD = re.compile(r"(?<![\w./:@=-])[A-Za-z][A-Za-z']+(?![\w./:@=-]*[\w/=])")
_LIKE_A_NAME = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+")  # FailedScheduling, LoadBalancer


def names_on(stage: Stage) -> frozenset[str]:
    """What users and programs have called things: names, labels, images, containers, keys."""
    paths = ("nodes", "pods", "services", "configmaps", "secrets", "namespaces")
    # And what nobody has called anything, or a person wrote.
    found = {NAME, "nobody", "firmware", "mine", "trainer"}
    found.update(event["reason"] for event in stage.lists("/api/v1/events"))
    for path in (*(f"/api/v1/{each}" for each in paths), "/apis/apps/v1/deployments"):
        for obj in stage.lists(path):
            found.update(_texts({**obj, "status": None, "data": [*(obj.get("data") or ())]}))
    return frozenset(word for text in found for word in re.findall(r"[A-Za-z']+", text))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("annotations", "managedFields", "command"):
                yield from (str(key), *_texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def english_in(texts: list[str], names: frozenset[str]) -> set[str]:
    """Each with the text that it stands in."""
    return {
        f"{word} ({' '.join(text.split())[:90]})"
        for text in texts
        for word in _WORD.findall(_COMMAND.sub(" ", text))
        if word not in NAMES and word not in names and not _LIKE_A_NAME.fullmatch(word)
    }


async def english_on(page: Page, names: frozenset[str]) -> set[str]:
    return english_in(await page.run(_TEXTS), names)


def test_the_search_finds_english_and_nothing_else() -> None:
    texts = [
        "可用 would do",
        "节点 cn-a.1：aliyun.com/gpu-mem 不足（2 个 GPU）FailedScheduling train",
    ]
    found = english_in(texts, frozenset({"train"}))
    assert {each.split()[0] for each in found} == {"would", "do"}


def test_every_page_and_every_form_is_visited(console_stage: Stage) -> None:
    visited = [path.partition("?")[0].removeprefix("/") for path in all_pages(console_stage)]
    for page in PAGES:
        address = re.compile(re.sub(r"\{\w+\}", "[^/]+", page.path))
        assert any(address.fullmatch(path) for path in visited), f"stage_pages lacks {page.path}"
    # What workloads of all kinds can do is one form each: seen with one kind, it is seen.
    forms = {path.rpartition("/")[2] for path in visited}
    for action in ACTIONS:
        assert action.path.rpartition("/")[2] in forms, f"stage_pages lacks {action.path}"


async def test_no_page_in_chinese_has_english_on_it(
    console_stage: Stage, stage_address: str, open_browser: OpenBrowser
) -> None:
    names, wrong = names_on(console_stage), {}
    async with signed_in(open_browser, stage_address) as visitor:
        await visitor.speaks("zh-CN")
        for path in all_pages(console_stage):
            await visitor.goes_to(path)
            if found := await english_on(visitor.page, names):
                wrong[path] = sorted(found)
    assert not wrong


# What somebody sends who has filled in nonsense: the fields of a form, by its page.
NONSENSE = {
    "/create": {"manifest": "a: b"},
    "/create/form": {"name": "A B", "image": "", "replicas": "x", "ports": "x"},
    "/create/service": {"name": "A B", "ports": "no port", "selector": "="},
    "/create/pool": {"name": "A B", "count": "-1", "labels": "=", "taints": "x"},
    "/create/cluster": {"name": "A B", "pool-1-count": "5000"},
    "/pools/cgpu/scale": {"count": "x"},
    "/pools/cgpu/delete": {"typed-name": "another"},
    "/deployments/team-b/embed/scale": {"replicas": "-3"},
    "/deployments/team-b/embed/delete": {"typed-name": "another"},
    "/pods/team-a/train-0/resize": {"units": "900"},
    "/services/research/notebook/change": {"ports": "no port"},
}
_SENT = """(async (fields) => {
  const form = document.querySelector("#page form[method=post]");
  const sent = new FormData(form);
  for (const [name, value] of Object.entries(fields)) sent.set(name, value);
  const answer = await fetch(form.action, {method: "POST", body: new URLSearchParams(sent)});
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main") ?? page.body);
  return answer.status;
})"""


async def test_what_is_wrong_in_a_form_is_said_in_chinese(
    console_stage: Stage, stage_address: str, open_browser: OpenBrowser
) -> None:
    names, wrong = names_on(console_stage), {}
    async with signed_in(open_browser, stage_address) as visitor:
        await visitor.speaks("zh-CN")
        for path, fields in NONSENSE.items():
            await visitor.goes_to(path)
            assert await visitor.page.run(f"({_SENT})({json.dumps(fields)})") == 422, path
            if found := await english_on(visitor.page, names):
                wrong[path] = sorted(found)
    assert not wrong
