"""Discovery against that of a real kube-apiserver, as far as we serve the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.discovery import Discovery
from localkube.apiserver.kinds import Kind, Kinds, Subresource, builtin_kinds
from localkube.apiserver.request import Answer
from localkube.apiserver.status import ApiError

FIXTURES = Path(__file__).parents[2] / "conformance" / "fixtures"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "discovery.json").read_text())
SERVED = {(kind.group, kind.plural) for kind in builtin_kinds()}
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},{V2BETA1},application/json"


@pytest.fixture
def kinds() -> Kinds:
    return Kinds(builtin_kinds())


def get(kinds: Kinds, path: str, **headers: str) -> Answer:
    answer = Discovery(kinds).answer(path, {k.replace("_", "-"): v for k, v in headers.items()})
    assert answer is not None
    return answer


def document(answer: Answer) -> Any:
    assert isinstance(answer.body, bytes)
    return json.loads(answer.body)


def served_rows(group: str, rows: list[Obj], key: str) -> list[Obj]:
    """Rows that we serve too. The proxy subresources are left out on purpose."""
    return [
        row
        for row in rows
        if (group, row[key].split("/")[0]) in SERVED and not row[key].endswith("/proxy")
    ]


@pytest.mark.parametrize("path", [p for p in RECORDED["legacy"] if p.count("/") in (2, 3)])
def test_legacy_documents_are_those_of_the_real_server(path: str, kinds: Kinds) -> None:
    recorded = RECORDED["legacy"][path]
    group = recorded.get("name") or recorded.get("groupVersion", "").rpartition("/")[0]
    if group not in {kind.group for kind in kinds}:
        assert Discovery(kinds).answer(path, {}) is None
        return
    found = document(get(kinds, path))
    if "resources" in recorded:
        recorded["resources"] = served_rows(group, recorded["resources"], "name")
    assert found == recorded


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_documents_are_those_of_the_real_server(path: str, kinds: Kinds) -> None:
    recorded = RECORDED["aggregated"][path]
    groups = {kind.group for kind in kinds}
    recorded["items"] = [g for g in recorded["items"] if g["metadata"].get("name", "") in groups]
    for group in recorded["items"]:
        for version in group["versions"]:
            name = group["metadata"].get("name", "")
            version["resources"] = served_rows(name, version["resources"], "resource")
            for row in version["resources"]:
                _without_proxy(row)
    found = document(get(kinds, path, accept=KUBECTL))
    found["items"] = [g for g in found["items"] if g["metadata"] != {"name": "metrics.k8s.io"}]
    assert found == recorded


def _without_proxy(row: Obj) -> None:
    kept = [s for s in row.pop("subresources", []) if s["subresource"] != "proxy"]
    if kept:
        row["subresources"] = kept


def test_groups_are_listed_in_the_order_of_the_real_server(kinds: Kinds) -> None:
    real = [group["name"] for group in RECORDED["legacy"]["/apis"]["groups"]]
    ours = [group["name"] for group in document(get(kinds, "/apis"))["groups"]]
    assert [name for name in ours if name in real] == [name for name in real if name in ours]
    assert ours[-1] == "metrics.k8s.io"


def test_an_aggregated_answer_can_be_kept_until_it_changes(kinds: Kinds) -> None:
    discovery = Discovery(kinds)
    first = discovery.answer("/apis", {"accept": KUBECTL})
    assert first is not None
    headers = dict(first.headers)
    assert first.content_type == V2
    assert (headers["Vary"], headers["Cache-Control"]) == ("Accept", "public")

    again = discovery.answer("/apis", {"accept": KUBECTL, "if-none-match": headers["ETag"]})
    assert again is not None
    assert (again.status, again.body, again.headers) == (304, b"", first.headers)

    kinds.add(Kind("a.io", "v1", "Thing", "things", "thing", True, ("get",)))
    changed = discovery.answer("/apis", {"accept": KUBECTL, "if-none-match": headers["ETag"]})
    assert changed is not None
    assert changed.status == 200
    assert "a.io" in {g["metadata"]["name"] for g in document(changed)["items"]}


def test_the_beta_form_is_gone(kinds: Kinds) -> None:
    answer = get(kinds, "/apis", accept=f"{V2BETA1},application/json")
    assert answer.content_type == "application/json"
    assert document(answer)["kind"] == "APIGroupList"


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", f"application/json,{V2}"])
def test_other_clients_get_legacy_documents(accept: str, kinds: Kinds) -> None:
    answer = get(kinds, "/api", accept=accept, host="127.0.0.1:6443")
    assert answer.content_type == "application/json"
    assert document(answer) == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
        ],
    }


def test_a_version_is_never_aggregated(kinds: Kinds) -> None:
    assert document(get(kinds, "/apis/apps/v1/", accept=KUBECTL))["kind"] == "APIResourceList"


@pytest.mark.parametrize("accept", ["text/html", V2.replace("v=v2", "v=v3")])
def test_what_nobody_can_read_is_not_acceptable(accept: str, kinds: Kinds) -> None:
    with pytest.raises(ApiError) as error:
        get(kinds, "/apis", accept=accept)
    assert error.value.code == 406
    assert error.value.status["message"] == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_an_unknown_version_of_a_known_group_is_not_found(kinds: Kinds) -> None:
    with pytest.raises(ApiError) as error:
        get(kinds, "/apis/apps/v2")
    assert error.value.code == 404


def test_the_root_lists_what_is_answered(kinds: Kinds) -> None:
    paths = document(get(kinds, "/"))["paths"]
    assert paths == sorted(paths)
    assert {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version"} <= set(paths)


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/nope/v1", "/nope", "/apiary"])
def test_other_paths_are_none_of_its_business(path: str, kinds: Kinds) -> None:
    assert Discovery(kinds).answer(path, {}) is None


def test_custom_groups_come_last_and_prefer_their_most_stable_version() -> None:
    versions = ["foo", "v1beta1", "v2alpha1", "v10", "v2", "v11alpha2", "v1beta2", "bar"]
    rows = [
        Kind("z.io", v, "Thing", "things", "thing", True, ("get",), custom=True) for v in versions
    ]
    other = Kind("a.io", "v1", "Thing", "things", "thing", True, ("get",), custom=True)
    own = Kind("own.io", "v1", "Thing", "things", "thing", True, ("get",))
    groups = document(get(Kinds([*rows, other, own]), "/apis"))["groups"]
    assert [group["name"] for group in groups] == ["own.io", "a.io", "z.io"]
    assert groups[-1]["preferredVersion"] == {"groupVersion": "z.io/v10", "version": "v10"}
    assert [v["version"] for v in groups[-1]["versions"]] == [
        "v10", "v2", "v1beta2", "v1beta1", "v11alpha2", "v2alpha1", "bar", "foo",
    ]  # fmt: skip


def test_subresources_of_another_group_say_so() -> None:
    sub = Subresource("eviction", "Eviction", "policy", "v1", ("create",))
    kind = Kind("", "v1", "Pod", "pods", "pod", True, ("get",), subresources=(sub,))
    rows = document(get(Kinds([kind]), "/api/v1"))["resources"]
    assert rows[1] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


def test_the_version_has_every_field_of_the_real_one(kinds: Kinds) -> None:
    found = document(get(kinds, "/version"))
    assert list(found) == list(RECORDED["version"])
    assert found["gitVersion"] == "v1.35.8+localkube"
    assert (found["major"], found["minor"]) == ("1", "35")
    assert found["minCompatibilityMinor"] == RECORDED["version"]["minCompatibilityMinor"]
