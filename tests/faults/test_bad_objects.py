"""Every recorded request with something strange in its body: refused, or taken and shown."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from traceback import format_exc
from typing import Any

import orjson
import pytest

from localkube.apiserver.request import Answer, Request, Stream, Upgrade
from localkube.apiserver.security.identities import ADMIN
from tests.conformance.record.case import TABLE, Case
from tests.conformance.record.case import Request as Step
from tests.conformance.record.cases import CASES
from tests.conformance.record.client import Answer as Recorded
from tests.conformance.record.replay import run
from tests.conformance.record.samples import SAMPLES
from tests.faults.in_process import Served
from tests.faults.mutation import mutated

LONGEST_S = 2.0  # for one request, on a busy machine; a bomb takes minutes


class InProcess:
    """What the replay of recorded cases needs of a client."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.statuses: Counter[int] = Counter()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **_how: object,
    ) -> Recorded:
        path, _, query = path.partition("?")
        raw = b"" if body is None else json.dumps(body).encode()
        if isinstance(body, str):
            raw = body.encode("utf-8", "surrogatepass")
        given = {name.lower(): value for name, value in (headers or {}).items()}
        request = Request(
            method=method,
            path=path,
            query_string=query,
            headers={"content-type": "application/json"} | given,
            body=raw,
            user=ADMIN,
        )
        began_s = time.process_time()
        answer = self._served.loop.run_until_complete(self._answer(request))
        assert time.process_time() - began_s < LONGEST_S, f"{method} {path} {raw[:2000]!r}"
        self.statuses[answer.status] += 1
        return answer

    async def _answer(self, request: Request) -> Recorded:
        reply = await self._served.handle(request)
        match reply:
            case Answer(status=status, body=body):
                raw = body if isinstance(body, bytes) else b"".join(body)
                is_json = reply.content_type == "application/json" and raw
                return Recorded(status, "", (), orjson.loads(raw) if is_json else "")
            case Stream():
                await reply.chunks.aclose()  # type: ignore[attr-defined]
                return Recorded(200, "", (), [])
            case Upgrade():
                return Recorded(101, "", (), "")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcess]:
    served = Served(tmp_path, ("default", "kube-system", "sample-namespace"))
    yield InProcess(served)
    served.close()


SAMPLE_CASES = tuple(
    Case(f"sample {sample.label}", Step("POST", sample.path, sample.body)) for sample in SAMPLES
)
WITH_BODY = tuple(case for case in (*CASES, *SAMPLE_CASES) if case.request.body)
_HOOKS = "/apis/admissionregistration.k8s.io/v1"


def strange(case: Case, number: int, draw: random.Random) -> Case:
    """The case in a namespace of its own, with a strange body."""
    body = case.request.body
    text = isinstance(body, str)
    if text:
        try:
            body = json.loads(body)
        except ValueError:
            body = {}
    body = mutated(body, draw)
    request = replace(case.request, body=json.dumps(body) if text else body, until_status=0)
    prelude = tuple(replace(step, until_status=0) for step in case.prelude)
    return replace(case, name=f"{number} {case.name}", request=request, prelude=prelude)


def attack(client: InProcess, draw: random.Random, rounds: int) -> list[str]:
    """What went wrong."""
    problems = []
    for number in range(rounds):
        case = strange(draw.choice(WITH_BODY), number, draw)
        try:
            run(case, client)  # type: ignore[arg-type]  # it sends, and that is all it needs
        except Exception:  # noqa: BLE001 - whatever it is, it should not have come to that
            sent = json.dumps(case.request.body)[:3000]
            problems.append(f"{case.request.method} {case.request.path} {sent}\n{format_exc()}")
        for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            client.send("DELETE", f"{_HOOKS}/{plural}")  # or no further request would get through
    return problems


def show_everything(client: InProcess) -> None:
    """As `kubectl get` does, and whole."""
    groups = client.send("GET", "/apis").response["groups"]
    bases = ["/api/v1"] + [f"/apis/{v['groupVersion']}" for g in groups for v in g["versions"]]
    for base in bases:
        answer = client.send("GET", base)
        if answer.status == 503:  # an APIService has registered it for a service that is not there
            continue
        for resource in answer.response["resources"]:
            if "list" in resource["verbs"]:
                path = f"{base}/{resource['name']}"
                assert client.send("GET", path).status == 200
                assert client.send("GET", path, headers={"accept": TABLE}).status == 200


def test_strange_bodies_are_refused_or_taken_and_shown(client: InProcess) -> None:
    problems = attack(client, random.Random(1), 600)
    assert not problems, "\n".join(problems)
    show_everything(client)
    assert client.statuses[201] > 400


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 10))
def test_more_strange_bodies_are_refused_or_taken_and_shown(client: InProcess, seed: int) -> None:
    problems = attack(client, random.Random(seed), 3000)
    assert not problems, "\n".join(problems)
    show_everything(client)
