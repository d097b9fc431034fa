"""Makes the answer of a page or an action: asks it for its values, and draws them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from aiohttp import web

from gpupool.console.pages import MENU
from gpupool.console.parts.action import Action, Checked, Done, Question
from gpupool.console.parts.form import Invalid, complaints, sent_values, trimmed, typed_values
from gpupool.console.parts.page import Page
from gpupool.console.platform import RUNNING
from gpupool.console.refusals import field_errors
from gpupool.console.render import THEMES, Frame, cluster_address, html
from gpupool.console.rights import Denied, SignedOut
from gpupool.console.visit import Visit
from gpupool.console.watches import NotRead
from gpupool.console.words import language_of, translator
from kubeclient.errors import KubeError, Refused
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES

_NOTICE_S = 15


async def page_html(
    page: Page, visit: Visit, request: web.Request, *, notice: str = "", bare: bool = False
) -> str:
    shown = await page.show(visit)
    frame = frame_of(request)
    if not bare:
        put = await around(visit, page.menu)
        frame = replace(put(frame), notice=notice, is_live=page.is_live)
    values = {"shown": shown, "visit": visit, **shown.values}
    return html(page.template, frame, values, bare=bare)


async def answer_action(
    action: Action, visit: Visit, request: web.Request, notice_cookie: str
) -> web.StreamResponse:
    """The form; or what became of it."""
    await visit.session.sight.rights.require(*action.rights(visit))
    question = await action.ask(visit)
    given: dict[str, str] = {field.name: field.value for field in question.fields}
    errors: dict[str, str] = {}
    status, checked = 200, Checked("")
    if request.method == "POST":
        sent = (await request.post()).items()
        given = sent_values(question.fields, ((k, v) for k, v in sent if isinstance(v, str)))
        values = typed_values(question.fields, given)
        errors = _name_complaint(question, given) or complaints(question.fields, values)
        if not errors:
            try:
                done = await action.do(visit, trimmed(question.fields, values))
            except Invalid as invalid:
                errors = invalid.errors
            except Refused as refused:
                if refused.code == 401:
                    raise SignedOut from refused
                errors = field_errors(refused)
            else:
                if isinstance(done, Done):
                    return _led(request, done, notice_cookie)
                checked = done
        given, status = {**values, **checked.given}, 422 if errors else 200
    bare, frame = _is_dialogue(request), frame_of(request)
    if not bare:
        frame = (await around(visit, action.menu))(frame)
    shown: dict[str, object] = {
        "question": question,
        "given": given,
        "errors": errors,
        "visit": visit,
    }
    shown |= {"checked": checked.words, "would_be": checked.values}
    return web.Response(
        text=html(action.template, frame, shown, bare=bare), status=status, content_type="text/html"
    )


def _name_complaint(question: Question, given: Mapping[str, str]) -> dict[str, str]:
    if question.typed_name and given.get("typed-name", "").strip() != question.typed_name:
        return {"typed-name": "missing"}
    return {}


def _is_dialogue(request: web.Request) -> bool:
    return request.headers.get("X-Dialogue") == "1"


def _led(request: web.Request, done: Done, notice_cookie: str) -> web.StreamResponse:
    if _is_dialogue(request):
        led = {"href": done.href, "words": done.words, "isGone": done.is_gone}
        return web.json_response(led)
    answer = web.HTTPSeeOther(done.href)
    answer.set_cookie(notice_cookie, quote(done.words), max_age=_NOTICE_S, samesite="Strict")
    return answer


def frame_of(request: web.Request) -> Frame:
    """The frame of a page that belongs to no cluster."""
    theme = request.cookies.get("gpupool-theme", "")
    chosen = language(request)
    return Frame(
        t=translator(chosen),
        language=chosen,
        theme=theme if theme in THEMES else THEMES[0],
        address=request.path_qs,
    )


def language(request: web.Request) -> str:
    chosen = request.cookies.get("gpupool-language", "")
    return language_of(chosen, request.headers.get("Accept-Language", ""))


async def around(visit: Visit, menu: str, *, asks: bool = True) -> Callable[[Frame], Frame]:
    """Puts the cluster's top bar and side bar around a page. `asks`: the cluster, which answers."""
    namespaces = await _namespaces(visit) if asks else None
    entries = tuple(
        (key, visit.t(label), visit.link(path, namespace=visit.namespace))
        for key, label, path in MENU
        if key != "clusters" or visit.own is not None
    )
    kept = tuple((k, v) for k, v in visit.query.items() if k not in ("namespace", "page"))
    return partial(
        replace,
        cluster=visit.cluster,
        clusters=await _clusters(visit),
        menu=menu,
        entries=entries,
        namespace=visit.namespace,
        namespaces=namespaces,
        kept=kept,
    )


async def _clusters(visit: Visit) -> tuple[tuple[str, str], ...]:
    """Those that the visitor can go to from here: name and address."""
    known = await visit.own.known() if visit.own is not None else ()
    there = [each for each in known if not each.is_local or each.state == RUNNING]
    return tuple((each.name, f"{cluster_address(each.key)}/overview") for each in there)


async def _namespaces(visit: Visit) -> tuple[str, ...] | None:
    try:
        # Not noted: a new namespace is no reason to make the page again.
        async with asyncio.timeout(5):
            watch = await visit.watch(NAMESPACES)
    except (Denied, NotRead, KubeError, TimeoutError):
        return None
    visit.read.pop(watch.what, None)
    return tuple(sorted(watch.rows(_name).values()))


def _name(namespace: Obj) -> str:
    return str(namespace["metadata"]["name"])
