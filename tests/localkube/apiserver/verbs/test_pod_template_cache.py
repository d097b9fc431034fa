"""Pods whose spec has come before get the same answer as if it never had."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localkube.apiserver.request import Answer, Request
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.verbs import pod_template_cache
from tests.faults.in_process import Served

_HEAD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"'
HEADS = (
    _HEAD + b"}",
    _HEAD + b',"labels":{"app":"x"}}',
    _HEAD + b',"annotations":{"a":"{\\"b\\":1,\\"spec\\":{}"}}',
    _HEAD + b',"unknown":1}',
    _HEAD + b',"labels":{"a":"1","a":"2"}}',
    _HEAD + b',"labels":{"a":1}}',
    _HEAD + b',"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1",'
    b'"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:nodeName":{}}}}]}',
    _HEAD + b"}" + b',"status":{"phase":"Running"}',
    _HEAD + b"}" + b',"spec":{"nodeName":"n"}',
    _HEAD + b',"labels":{"b":"1"',
    b'{"kind":"Pod"',
    b'{"kind":"Service","metadata":{"name":"a"}',
    b'{"metadata":{"name":"A!"}',
    b"{}",
    b"",
)
_SPEC = b',"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1000m"}}}]'
TAILS = (
    _SPEC + b"}}",
    _SPEC + b',"hostNetwork":false}}',
    _SPEC + b',"hostNetwork":"no"}}',
    _SPEC + b',"unknown":{"x":1}}}',
    _SPEC + b',"nodeName":"n","nodeName":"m"}}',
    _SPEC + b'},"status":{"phase":"Failed"}}',
    _SPEC + b'},"status":{"phase":7}}',
    _SPEC + b'},"metadata":{"name":"b"}}',
    _SPEC + b'},"unknown":1}',
    _SPEC + b"}}}",
    _SPEC + b"}} ",
    b',"spec":{}}',
    b',"spec":{"containers":[]}}',
    b"}",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("server"), ("ns",))
    yield found
    found.close()


def answer(served: Served, body: bytes, validation: str) -> tuple[int, Any, list[str]]:
    request = Request(
        method="POST",
        path="/api/v1/namespaces/ns/pods",
        query_string=f"dryRun=All&fieldValidation={validation}",
        headers={"content-type": "application/json", "user-agent": "test"},
        body=body,
        user=ADMIN,
        warnings=[],
    )
    found = served.loop.run_until_complete(served.handle(request))
    assert isinstance(found, Answer)
    assert isinstance(found.body, bytes)
    obj = orjson.loads(found.body)
    for name in ("uid", "creationTimestamp"):
        obj["metadata"].pop(name, None)
    for entry in obj["metadata"].get("managedFields", ()):
        entry.pop("time", None)
    return found.status, orjson.dumps(obj), request.warnings


BEFORE_TAIL = st.tuples(st.sampled_from(HEADS), st.sampled_from(("Strict", "Warn", "Ignore")))


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(TAILS), st.lists(BEFORE_TAIL, min_size=1, max_size=3))
@example(_SPEC + b'},"metadata":{"name":"b"}}', [(b'{"kind":"Pod"', "Warn")])
def test_an_answer_does_not_depend_on_what_came_before(
    served: Served, tail: bytes, heads: list[tuple[bytes, str]]
) -> None:
    for head, validation in heads:
        with patch.dict(pod_template_cache._known, clear=True):
            expected = answer(served, head + tail, validation)
        for _ in range(2):
            assert answer(served, head + tail, validation) == expected


def test_every_head_goes_with_every_tail_that_is_known(served: Served) -> None:
    pod_template_cache._known.clear()
    for tail in TAILS:
        answer(served, HEADS[0] + tail, "Warn")
    known = dict(pod_template_cache._known)
    for tail in known:
        for head in HEADS:
            with patch.dict(pod_template_cache._known, clear=True):
                expected = answer(served, head + tail, "Warn")
            with patch.dict(pod_template_cache._known, known):
                assert answer(served, head + tail, "Warn") == expected

    assert set(known) == {TAILS[0], TAILS[1], TAILS[5], TAILS[10], TAILS[11], TAILS[12]}


def test_what_is_remembered_has_an_end(served: Served) -> None:
    for number in range(600):
        tail = b',"spec":{"containers":[{"name":"c%d","image":"i"}]}}' % number
        assert answer(served, HEADS[0] + tail, "Warn")[0] == 201
    tail = b',"spec":{"containers":[{"name":"c","image":"%b"}]}}' % (b"i" * 20_000)
    answer(served, HEADS[0] + tail, "Warn")

    assert len(pod_template_cache._known) <= 512
    assert max(map(len, pod_template_cache._known)) <= 16 * 1024
