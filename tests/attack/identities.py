"""Everybody who may stand at the door: with good tokens, bad ones, and tokens of the dead."""

import base64
import time
from dataclasses import dataclass
from typing import Any

import orjson

from localkube.apiserver.security.service_account_tokens import (
    Binding,
    Lifetime,
    Ref,
    ServiceAccountTokens,
)
from tests.attack.access_rules import OWN
from tests.attack.target import JSON, Connection, Target
from tests.faults.api_child import TOKEN
from tests.localkube.apiserver.security.security_world import new_key

Json = Any
ISSUER = "https://kubernetes.default.svc.cluster.local"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NODE = {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"}
_HOUR = 3600


@dataclass(frozen=True)
class Identity:
    """Who asks. `role`: of RBAC; `everywhere`: bound in the whole cluster and not in OWN alone."""

    name: str
    token: str | None
    role: str = ""
    everywhere: bool = False
    headers: tuple[tuple[str, str], ...] = ()


async def made(connection: Connection, path: str, body: Json) -> Json:
    answer = await connection.ask("POST", path, orjson.dumps(body), {"Content-Type": JSON})
    assert answer.status == 201, answer
    return orjson.loads(answer.body)


async def account(connection: Connection, name: str) -> str:
    """A new service account: its uid."""
    path = f"/api/v1/namespaces/{OWN}/serviceaccounts"
    uid: str = (await made(connection, path, {"metadata": {"name": name}}))["metadata"]["uid"]
    return uid


async def token(connection: Connection, name: str, **spec: Json) -> str:
    path = f"/api/v1/namespaces/{OWN}/serviceaccounts/{name}/token"
    found: str = (await made(connection, path, {"spec": spec}))["status"]["token"]
    return found


async def bound(connection: Connection, name: str, role: str, *, everywhere: bool = False) -> None:
    kind = "ClusterRoleBinding" if everywhere else "RoleBinding"
    path = f"{RBAC}/clusterrolebindings" if everywhere else f"{RBAC}/namespaces/{OWN}/rolebindings"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": OWN}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    body = {"kind": kind, "metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    await made(connection, path, body)


async def welcome(connection: Connection) -> list[Identity]:
    """Those whose tokens are good."""
    found = [Identity("administrator", TOKEN, "cluster-admin", everywhere=True)]
    for name, role, everywhere in (
        ("nothing", "", False),
        ("viewer", "view", False),
        ("editor", "edit", False),
        ("admin", "admin", False),
        ("view-everywhere", "view", True),
        ("edit-everywhere", "edit", True),
    ):
        await account(connection, name)
        if role:
            await bound(connection, name, role, everywhere=everywhere)
        found.append(Identity(name, await token(connection, name), role, everywhere))
    for name, role in (("nothing", ""), ("editor", "edit")):
        acts = (("Impersonate-User", f"system:serviceaccount:{OWN}:{name}"),)
        found.append(Identity(f"administrator as {name}", TOKEN, role, headers=acts))
    return found


async def unwelcome(target: Target, connection: Connection) -> list[Identity]:
    """Those whose tokens are no good, all of an account that may do everything."""
    uid = await account(connection, "mighty")
    await bound(connection, "mighty", "cluster-admin", everywhere=True)
    good = await token(connection, "mighty")
    head, claims, signature = good.split(".")
    now = int(time.time())
    ours = ServiceAccountTokens((target.child.directory / "sa.key").read_bytes(), _Nobody())
    theirs = ServiceAccountTokens(new_key(), _Nobody())
    binding = Binding(OWN, Ref("mighty", uid))
    hour = Lifetime(now, _HOUR)

    def signed(by: ServiceAccountTokens, binding: Binding, when: Lifetime, to: str = ISSUER) -> str:
        return by.sign(binding, (to,), when)

    def forged(**changes: Json) -> str:
        body = orjson.loads(_decoded(claims)) | changes
        return f"{head}.{_encoded(orjson.dumps(body))}.{signature}"

    none = _encoded(b'{"alg":"none"}')
    found = {
        "nobody": None,
        "an empty token": "",
        "garbage": "x" * 200,
        "half of a token": good[: len(good) // 2],
        "a token without its signature": f"{head}.{claims}.",
        "the algorithm none": f"{none}.{claims}.",
        "the algorithm none, signed": f"{none}.{claims}.{signature}",
        "another subject": forged(sub="system:serviceaccount:kube-system:default"),
        "a longer life": forged(exp=now + 10**9),
        "another signature": f"{head}.{claims}.{signature[:-4]}AAAA",
        "a key of somebody else": signed(theirs, binding, hour),
        "an expired token": signed(ours, binding, Lifetime(now - 3 * _HOUR, _HOUR)),
        "a token of tomorrow": signed(ours, binding, Lifetime(now + 24 * _HOUR, _HOUR)),
        "a token for others": signed(ours, binding, hour, to="vault"),
        "another uid": signed(ours, Binding(OWN, Ref("mighty", "other")), hour),
        "no uid": signed(ours, Binding(OWN, Ref("mighty")), hour),
        "a pod that never was": signed(ours, Binding(OWN, Ref("mighty", uid), Ref("p", "u")), hour),
        "the administrator in capitals": TOKEN.upper(),
        "the administrator and one more": TOKEN + "x",
        "the administrator but for one": TOKEN[:-1],
    }
    found |= await _of_the_dead(connection)
    return [Identity(name, text) for name, text in found.items()]


async def _of_the_dead(connection: Connection) -> dict[str, str | None]:
    """Tokens that were good until what they name was deleted, or made again under its name."""
    pods, secrets = (f"/api/v1/namespaces/{OWN}/{plural}" for plural in ("pods", "secrets"))
    spec = {"serviceAccountName": "mighty", "containers": [{"name": "c", "image": "x"}]}
    await made(connection, pods, {"metadata": {"name": "doomed"}, "spec": spec})
    await made(connection, secrets, {"metadata": {"name": "doomed"}})
    await account(connection, "doomed")
    await bound(connection, "doomed", "cluster-admin", everywhere=True)
    found: dict[str, str | None] = {}
    for kind in ("Pod", "Secret"):
        reference = {"kind": kind, "apiVersion": "v1", "name": "doomed"}
        found[f"a deleted {kind}"] = await token(connection, "mighty", boundObjectRef=reference)
    found["a deleted account"] = await token(connection, "doomed")
    for path in (pods, secrets, f"/api/v1/namespaces/{OWN}/serviceaccounts"):
        answer = await connection.ask("DELETE", f"{path}/doomed?gracePeriodSeconds=0")
        assert answer.status == 200, answer
    found["an account that was made again"] = found["a deleted account"]
    await account(connection, "doomed")
    return found


class _Nobody:
    def uid(self, resource: str, namespace: str, name: str) -> str | None:
        return None


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
