"""A cluster and its console, for all tests that make objects of their own names in it."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.console.test_console import IN_A_POD, POOLS, console, cookie_of, get, token_of
from tests.e2e.api import call

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"


@dataclass(frozen=True)
class Office:
    """Somebody who is signed in to a console, and the cluster behind it."""

    cluster: Cluster
    port: int
    cookie: str

    def sees(self, path: str) -> tuple[int, str]:
        return get(self.port, f"/clusters/cluster/{path}", self.cookie)[:2]

    def sends(self, path: str, **form: str) -> tuple[int, str, str]:
        """Status, page, and where it leads."""
        at = f"/clusters/cluster/{path}"
        status, page, headers = get(self.port, at, self.cookie, form=form)
        return status, page, headers.get("Location", "").removeprefix("/clusters/cluster/")

    def makes(self, path: str, obj: Obj) -> Obj:
        status, made = call(self.cluster, "POST", path, obj)
        assert status == 201, made
        return made

    def finds(self, path: str) -> Obj:
        status, found = call(self.cluster, "GET", path)
        assert status == 200, found
        return found

    def as_user(self, name: str, role: str = "") -> "Office":
        """`role`: that this user has in the namespace default."""
        token = token_of(self.cluster, name)
        if role:
            subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
            of = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": of}
            assert call(self.cluster, "POST", BINDINGS, binding)[0] in (201, 409)
        cookie = cookie_of(get(self.port, "/sign-in", form={"token": token})[2])
        return Office(self.cluster, self.port, cookie)


@pytest.fixture(scope="session")
def office() -> Iterator[Office]:
    with (
        Cluster(pools=POOLS) as cluster,
        console(sys.executable, "-c", IN_A_POD, str(cluster.kubeconfig)) as (port, _),
    ):
        cookie = cookie_of(get(port, "/sign-in", form={"token": cluster.token})[2])
        yield Office(cluster, port, cookie)
