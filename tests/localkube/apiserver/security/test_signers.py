"""Who may approve and sign requests, and whom a request is said to come from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import CLUSTER_ROLES, SIGNING_REQUESTS, Resource
from localkube.apiserver.request import User
from localkube.apiserver.security.identities import AUTHENTICATED
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.signing_samples import CLIENT, ask, request_object

GROUP = "certificates.k8s.io"
RBAC = "rbac.authorization.k8s.io"
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
BOB = User("bob", ("team", AUTHENTICATED), "uid-of-bob", {"example.com/x": ("1", "2")})


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path) as found:
        everything = ["certificatesigningrequests", "certificatesigningrequests/approval"]
        everything.append("certificatesigningrequests/status")
        rule = {"apiGroups": [GROUP], "resources": everything, "verbs": ["*"]}
        await allow(found, "requests", rule)
        await found.create(SIGNING_REQUESTS, request_object(ask("jane"), CLIENT, "client auth"))
        yield found


async def allow(desk: Desk, name: str, *rules: Obj) -> None:
    await desk.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "bob"}],
    }
    await desk.create(BINDINGS, binding)


async def allow_signers(desk: Desk, verb: str, name: str) -> None:
    rule = {"apiGroups": [GROUP], "resources": ["signers"], "verbs": [verb]}
    await allow(desk, "signers", rule | {"resourceNames": [name]})


async def written(kube: Kube, subresource: str, kind: str) -> Obj:
    request = await kube.get(SIGNING_REQUESTS, "r")
    request["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}
    return await kube.update(SIGNING_REQUESTS, request, subresource)


async def test_approving_needs_the_right_to_speak_for_the_signer(desk: Desk) -> None:
    bob = desk.server.client(BOB)
    with pytest.raises(Refused) as refused:
        await written(bob, "approval", "Approved")
    assert refused.value.code == 403
    assert f'not permitted to approve requests with signerName "{CLIENT}"' in str(refused.value)
    await allow_signers(desk, "approve", CLIENT)
    assert (await written(bob, "approval", "Approved"))["status"]["conditions"]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("kubernetes.io/*", True), ("kubernetes.io/kubelet-serving", False), ("example.com/*", False)],
)
async def test_a_role_may_name_all_signers_of_a_domain(
    desk: Desk, name: str, allowed: bool
) -> None:
    await allow_signers(desk, "approve", name)
    bob = desk.server.client(BOB)
    if allowed:
        await written(bob, "approval", "Denied")
        return
    with pytest.raises(Refused):
        await written(bob, "approval", "Denied")


async def test_writing_the_status_is_signing(desk: Desk) -> None:
    await allow_signers(desk, "approve", CLIENT)
    bob = desk.server.client(BOB)
    with pytest.raises(Refused, match="not permitted to sign"):
        await written(bob, "status", "Failed")


async def test_nobody_approves_by_writing_the_status(desk: Desk) -> None:
    with pytest.raises(Refused, match='updates may not add a condition of type "Approved"'):
        await written(desk.kube, "status", "Approved")


async def test_nobody_signs_by_approving(desk: Desk) -> None:
    request = await desk.get(SIGNING_REQUESTS, "r")
    request["status"] = {"certificate": "eA=="}
    await desk.kube.update(SIGNING_REQUESTS, request, "approval")
    assert "certificate" not in (await desk.get(SIGNING_REQUESTS, "r"))["status"]


async def test_an_approval_cannot_be_taken_back(desk: Desk) -> None:
    await written(desk.kube, "approval", "Approved")
    with pytest.raises(Refused, match="may not remove a condition"):
        await written(desk.kube, "approval", "Other")
    with pytest.raises(Refused, match="may not remove a condition"):
        await written(desk.kube, "approval", "Denied")


async def test_the_server_says_who_asks_whatever_the_body_claims(desk: Desk) -> None:
    claims = {"username": "root", "groups": ["system:masters"], "uid": "0"}
    body = request_object(ask("jane"), CLIENT, "client auth", name="mine", **claims)
    made = (await desk.server.client(BOB).create(SIGNING_REQUESTS, body))["spec"]
    assert (made["username"], made["uid"]) == ("bob", "uid-of-bob")
    assert made["groups"] == ["team", AUTHENTICATED]
    assert made["extra"] == {"example.com/x": ["1", "2"]}


async def test_what_was_asked_for_never_changes(desk: Desk) -> None:
    before = await desk.get(SIGNING_REQUESTS, "r")
    change = {"spec": {"usages": ["any"], "username": "root"}, "metadata": {"labels": {"a": "b"}}}
    after = await desk.patch(SIGNING_REQUESTS, "r", change)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == {"a": "b"}


async def test_nobody_asks_to_be_an_administrator_by_the_signer_for_clients(desk: Desk) -> None:
    body = request_object(ask("root", "system:masters"), CLIENT, "client auth", name="root")
    with pytest.raises(Refused, match="with system:masters group is not allowed"):
        await desk.create(SIGNING_REQUESTS, body)
