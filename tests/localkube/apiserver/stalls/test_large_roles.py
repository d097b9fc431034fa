"""Whoever may write roles and bindings of one namespace keeps nobody waiting with them."""

import orjson

from bench.heavy.bodies import Heavy
from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.identities import AUTHENTICATED
from tests.localkube.apiserver.stalls.watched import Watched

_GROUP = "rbac.authorization.k8s.io"
_ROLES = f"/apis/{_GROUP}/v1/namespaces/default/roles"
_BINDINGS = f"/apis/{_GROUP}/v1/namespaces/default/rolebindings"
_TINA = User("tina", (AUTHENTICATED,))


def _binding(name: str, role: Obj, subjects: list[Obj]) -> bytes:
    reference = {"apiGroup": _GROUP, **role}
    return orjson.dumps({"metadata": {"name": name}, "roleRef": reference, "subjects": subjects})


async def _tina_writes_roles(watched: Watched) -> None:
    """As admins of a namespace do."""
    rule = {"apiGroups": [_GROUP], "resources": ["roles", "rolebindings"], "verbs": ["create"]}
    reads = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    role = orjson.dumps({"metadata": {"name": "admin"}, "rules": [rule, reads]})
    await watched.make(_ROLES, role)
    tina: list[Obj] = [{"kind": "User", "name": "tina"}]
    await watched.make(_BINDINGS, _binding("admin", {"kind": "Role", "name": "admin"}, tina))


async def test_a_binding_of_20_000_subjects_keeps_nobody_waiting(watched: Watched) -> None:
    await _tina_writes_roles(watched)
    subjects: list[Obj] = [{"kind": "User", "name": f"u{n}"} for n in range(20_000)]
    body = _binding("many", {"kind": "Role", "name": "admin"}, subjects)
    assert (await watched.watched(Heavy("POST", _BINDINGS, body)))[0] == 201
    own = Heavy("GET", "/api/v1/namespaces/default/pods/none")
    assert (await watched.watched(own, User("u19999", (AUTHENTICATED,))))[0] == 404
    assert (await watched.watched(Heavy("DELETE", f"{_BINDINGS}/many")))[0] == 200
    assert (await watched.watched(own, User("u19999", (AUTHENTICATED,))))[0] == 403


async def test_a_rule_of_a_hundred_million_rights_is_refused_in_words(watched: Watched) -> None:
    await _tina_writes_roles(watched)
    hundred = [f"x{n}" for n in range(100)]
    rule = dict.fromkeys(("apiGroups", "resources", "resourceNames", "verbs"), hundred)
    body = orjson.dumps({"metadata": {"name": "r"}, "rules": [rule]})
    status, answer = await watched.watched(Heavy("POST", _ROLES, body), _TINA)
    assert status == 403
    assert b"its rules are 100000000 rights" in answer
    assert b"name fewer" in answer


async def test_a_role_of_many_rules_is_compared_aside(watched: Watched) -> None:
    await _tina_writes_roles(watched)
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    body = orjson.dumps({"metadata": {"name": "r"}, "rules": [rule] * 6_000})
    assert (await watched.watched(Heavy("POST", _ROLES, body), _TINA))[0] == 201
    tina: list[Obj] = [{"kind": "User", "name": "tina"}]
    binding = _binding("again", {"kind": "Role", "name": "r"}, tina)
    assert (await watched.watched(Heavy("POST", _BINDINGS, binding), _TINA))[0] == 201
    pod = Heavy("GET", "/api/v1/namespaces/default/pods/none")
    assert (await watched.watched(pod, _TINA))[0] == 404
    other = Heavy("GET", "/api/v1/namespaces/default/secrets/none")
    assert (await watched.watched(other, _TINA))[0] == 403


async def _bind(watched: Watched, name: str, rules: list[Obj], user: str) -> None:
    await watched.make(_ROLES, orjson.dumps({"metadata": {"name": name}, "rules": rules}))
    subjects: list[Obj] = [{"kind": "User", "name": user}]
    await watched.make(_BINDINGS, _binding(name, {"kind": "Role", "name": name}, subjects))


def _many(count: int) -> list[Obj]:
    names = [f"n{number}" for number in range(count)]
    return [{"apiGroups": [""], "resources": ["pods"], "resourceNames": names, "verbs": ["get"]}]


async def test_nobody_takes_rights_away_by_binding_more_roles(watched: Watched) -> None:
    """Of too many values, those that were written last are left out, whatever they are called."""
    reads: Obj = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    await _bind(watched, "z", [reads], "vic")
    for number in range(3):
        await _bind(watched, f"a{number}", _many(24_000), "vic")
    vic = User("vic", (AUTHENTICATED,))
    pods = Heavy("GET", "/api/v1/namespaces/default/pods")
    assert (await watched.watched(pods, vic))[0] == 200
    last = Heavy("GET", "/api/v1/namespaces/default/secrets/none")
    status, answer = await watched.watched(last, vic)
    assert status == 403
    assert b'\\"a2\\" is left out' in answer
    assert b'\\"z\\" is left out' not in answer


async def test_a_role_that_grows_later_is_left_out_before_older_ones(watched: Watched) -> None:
    await _bind(watched, "a", _many(1), "vic")
    await _bind(watched, "b", _many(45_000), "vic")
    reads: Obj = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    await _bind(watched, "z", [reads], "vic")
    grown = orjson.dumps({"metadata": {"name": "a"}, "rules": _many(45_000)})
    assert (await watched.watched(Heavy("PUT", f"{_ROLES}/a", grown)))[0] == 200
    pods = Heavy("GET", "/api/v1/namespaces/default/pods")
    assert (await watched.watched(pods, User("vic", (AUTHENTICATED,))))[0] == 200
