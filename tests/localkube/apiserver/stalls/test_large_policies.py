"""Policies and conditions of webhooks are compiled, and parameters read, while others go on."""

import orjson
import pytest

from bench.heavy.bodies import CONFIGMAPS, DRY, Heavy, map_body
from kubeclient.objects import Obj
from localkube.apiserver.admission import policies
from localkube.apiserver.admission.policy_config import policy_of
from tests.localkube.apiserver.stalls.watched import Watched

_ROOT = "/apis/admissionregistration.k8s.io/v1"
_RULES = [
    {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
]
_WRITE = Heavy("POST", f"{CONFIGMAPS}{DRY}", map_body(data={"a": "b"}))
_NAMES = [{"expression": f"object.metadata.name != 'x{n}'"} for n in range(3000)]
_CHAIN = [{"name": "v0", "expression": "1"}] + [
    {"name": f"v{n}", "expression": f"variables.v{n - 1} + 1"} for n in range(1, 3000)
]
_SPECS: dict[str, Obj] = {
    "3,000 validations": {"validations": _NAMES},
    "a list of 20,000": {
        "validations": [{"expression": f"1 in [{','.join(['1'] * 20_000)}]"}],
    },
    "3,000 variables": {"validations": [{"expression": "variables.v9 > 1"}], "variables": _CHAIN},
}


async def _make_policy(watched: Watched, name: str, **spec: object) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {**spec, "matchConstraints": {"resourceRules": _RULES}},
    }
    await watched.make(f"{_ROOT}/validatingadmissionpolicies", orjson.dumps(body))


async def _bind(watched: Watched, name: str, policy: str, **spec: object) -> None:
    binding = {"policyName": policy, "validationActions": ["Deny"], **spec}
    body = orjson.dumps({"metadata": {"name": name}, "spec": binding})
    await watched.make(f"{_ROOT}/validatingadmissionpolicybindings", body)


@pytest.mark.parametrize("name", _SPECS)
async def test_a_large_policy_is_compiled_aside(watched: Watched, name: str) -> None:
    await _make_policy(watched, "large", **_SPECS[name])
    await _bind(watched, "large", "large")
    for _ in range(2):
        status, answer = await watched.watched(_WRITE)
        assert status == 201, answer[:500]


async def test_many_policies_are_compiled_in_turns(watched: Watched) -> None:
    for number in range(40):
        await _make_policy(watched, f"p{number}", validations=_NAMES[:60])
        await _bind(watched, f"p{number}", f"p{number}")
    status, answer = await watched.watched(_WRITE)
    assert status == 201, answer[:500]


async def test_a_policy_is_compiled_once_and_not_when_others_change(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    def counted(source: Obj) -> object:
        compiled.append(source["metadata"]["name"])
        return policy_of(source)

    monkeypatch.setattr(policies, "policy_of", counted)
    for name in ("a", "b"):
        await _make_policy(watched, name, validations=_NAMES[:1])
        await _bind(watched, name, name)
        await watched.call(_WRITE)
    await _bind(watched, "c", "a")
    assert (await watched.call(_WRITE))[0] == 201
    assert compiled == ["a", "b"]


async def test_a_policy_that_was_changed_is_compiled_anew(watched: Watched) -> None:
    path = f"{_ROOT}/validatingadmissionpolicies/a"
    await _make_policy(watched, "a", validations=[{"expression": "true"}])
    await _bind(watched, "a", "a")
    assert (await watched.call(_WRITE))[0] == 201
    change = orjson.dumps({"spec": {"validations": [{"expression": "false"}]}})
    await watched.call(Heavy("PATCH", path, change, media="application/merge-patch+json"))
    assert (await watched.call(_WRITE))[0] == 422


async def test_what_a_policy_is_not_about_does_not_wait_for_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "policy_of", lambda _: pytest.fail("it was compiled"))
    await _make_policy(watched, "a", validations=_NAMES)
    await _bind(watched, "a", "a")
    await watched.make("/api/v1/namespaces", b'{"metadata":{"name":"other"}}')


async def test_large_parameters_are_read_in_turns(watched: Watched) -> None:
    for number in range(8):
        body = map_body(f"c{number}", data={f"k{n}": "" for n in range(30_000)})
        await watched.make(CONFIGMAPS, body.replace(b'"name":', b'"labels":{"a":"b"},"name":', 1))
    await _make_policy(
        watched,
        "p",
        validations=[{"expression": "params.metadata.name != object.metadata.name"}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    ref = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}
    await _bind(watched, "p", "p", paramRef=ref)
    status, answer = await watched.watched(_WRITE)
    assert status == 201, answer[:500]


@pytest.mark.parametrize("terms", [60, 2000])
async def test_conditions_of_webhooks_are_compiled_aside_or_in_turns(
    watched: Watched, terms: int
) -> None:
    term = " && ".join(["object.metadata.name != 'x'"] * terms)
    count = 60 if terms < 100 else 4
    conditions = [{"name": f"c{n}", "expression": f"{n} == 0 && {term}"} for n in range(1, count)]
    hook = {
        "name": "h.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": _RULES,
        "matchConditions": conditions,
    }
    body = orjson.dumps({"metadata": {"name": "h"}, "webhooks": [hook]})
    await watched.make(f"{_ROOT}/validatingwebhookconfigurations", body)
    for _ in range(2):
        status, answer = await watched.watched(_WRITE)
        assert status == 201, answer[:500]
