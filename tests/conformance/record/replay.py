"""Runs a case against a server: the prelude, then the request whose answer counts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.conformance.record.case import Case, Json, Request, get, post
from tests.conformance.record.client import Answer, Client

_SAVED = re.compile(r"\$\{([\w-]+)((?:\.[\w-]+)*)\}")
_PATIENCE_SECONDS = 15.0


def run(case: Case, client: Client) -> dict[str, Any]:
    """The record of a case, ready to be written as JSON.

    `namespace` is there when the case has one to itself, made by namespace_steps() before the
    prelude; each step of the prelude carries the status that it was answered by.
    """
    saved: dict[str, Json] = {}
    if case.namespaced:
        for step in namespace_steps(case.namespace):
            _step(step, client, saved)
    prelude = [_in_namespace(step, case) for step in case.prelude]
    statuses = [_step(step, client, saved).status for step in prelude]
    request = _in_namespace(case.request, case)
    answer = _step(request, client, saved)
    record: dict[str, Any] = {"name": case.name}
    if case.namespaced:
        record["namespace"] = case.namespace
    if prelude:
        record["prelude"] = [
            _told(step) | {"status": status} for step, status in zip(prelude, statuses, strict=True)
        ]
    record |= _told(request)
    record |= {"status": answer.status, "content_type": answer.content_type}
    record |= {"warnings": list(answer.warnings), "response": answer.response}
    return record


def namespace_steps(name: str) -> list[Request]:
    """Makes a namespace in which pods can be created. Without a controller manager nobody else
    makes the ServiceAccount; where one runs the second request is answered by 409, or the
    account is there a moment later."""
    return [
        post("/api/v1/namespaces", {"metadata": {"name": name}}, save="namespace"),
        post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}),
        get(f"/api/v1/namespaces/{name}/serviceaccounts/default", until_status=200),
    ]


def _in_namespace(step: Request, case: Case) -> Request:
    return _rewritten(step, lambda text: text.replace("{ns}", case.namespace))


def _rewritten(step: Request, change: Callable[[str], str]) -> Request:
    return replace(
        step,
        path=change(step.path),
        body=json.loads(change(json.dumps(step.body))),
        headers={name: change(value) for name, value in step.headers.items()},
    )


def _step(step: Request, client: Client, saved: dict[str, Json]) -> Answer:
    filled = _rewritten(step, lambda text: _filled(text, saved))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = client.send(
            filled.method,
            filled.path,
            filled.body,
            filled.headers,
            anonymous=filled.anonymous,
            events=filled.events,
            padding=filled.padding,
        )
        if not step.until_status or answer.status == step.until_status:
            break
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{step.method} {filled.path}: wanted {step.until_status}, "
                f"last answer {answer.status}: {answer.response}"
            )
        time.sleep(0.05)
    if step.save:
        saved[step.save] = answer.response
    return answer


def _filled(text: str, saved: Mapping[str, Json]) -> str:
    def value(found: re.Match[str]) -> str:
        node: Json = saved[found[1]]
        for key in found[2].split(".")[1:]:
            node = node[int(key)] if isinstance(node, list) else node[key]
        return str(node)

    return _SAVED.sub(value, text)


def _told(step: Request) -> dict[str, Any]:
    told: dict[str, Any] = {"method": step.method, "path": step.path}
    told["headers"] = dict(step.headers)
    told["body"] = step.body
    for option in ("save", "until_status", "events", "padding", "anonymous"):
        if getattr(step, option):
            told[option] = getattr(step, option)
    return told
