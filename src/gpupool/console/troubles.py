"""Pages that say why there is no other: what is wrong, in words, and what to do."""

from dataclasses import dataclass

from aiohttp import web

from gpupool.console.render import Frame, html
from gpupool.console.rights import Denied
from gpupool.console.words import Translate, word


@dataclass(frozen=True, slots=True)
class Trouble:
    status: int
    title: str
    words: str
    command: str = ""
    has_others: bool = False  # the page of clusters may help, where one can be started
    is_of_cluster: bool = False  # then the cluster is not asked for what stands around the page


def no_page(status: int, path: str) -> Trouble:
    return Trouble(status, word("There is no such page"), path)


def no_thing(words: str) -> Trouble:
    return Trouble(404, word("It is not there (any more)"), words)


def no_answer(words: str, *, has_others: bool) -> Trouble:
    title = word("The API server did not answer as expected")
    return Trouble(502, title, words, has_others=has_others, is_of_cluster=True)


def own_mistake(path: str) -> Trouble:
    return Trouble(500, word("The console made a mistake"), path, is_of_cluster=True)


def no_right(t: Translate, denied: Denied) -> Trouble:
    words = t("You do not have the right: {right}", right=denied.right.words)
    if denied.right.resource.namespaced and not denied.right.namespace:
        hint = t("If you may see a namespace, add it to the address: ?namespace=NAME")
        words = f"{words}. {hint}"
    command = f"kubectl auth can-i {denied.right.words}"
    return Trouble(403, word("You may not see this"), words, command)


def trouble_page(frame: Frame, trouble: Trouble) -> web.Response:
    values = {
        "title": frame.t(trouble.title),
        "words": trouble.words,
        "command": trouble.command,
        "has_others": trouble.has_others,
    }
    text = html("trouble.html", frame, values)
    return web.Response(text=text, status=trouble.status, content_type="text/html")
