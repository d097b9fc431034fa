"""EndpointSlices and Endpoints of Services."""

from pathlib import Path
from typing import Any

from kubeclient.objects import Obj
from kubeclient.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from localkube.controllers import endpoints
from localkube.controllers.endpoints import target_port
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod

CONTROLLERS = (endpoints.controller(), endpoints.REMOVAL_CONTROLLER)


def service(**spec: Any) -> Obj:
    full: Obj = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"metadata": {"name": "web"}, "spec": full}


async def _pod(desk: Desk, name: str, address: str, *, ready: bool = True, port: int = 0) -> None:
    made = pod(name, "web")
    if port:
        made["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": port}]
    found = await desk.create(PODS, made)
    await desk.bind(name, "n")
    phase = "Running" if ready else "Pending"
    await desk.set_phase(found, phase, podIP=address, podIPs=[{"ip": address}])


async def _addresses(desk: Desk) -> dict[str, bool]:
    """By address, whether the slices show it as ready."""
    await desk.settle()
    return {
        endpoint["addresses"][0]: endpoint["conditions"]["ready"]
        for piece in await desk.all(ENDPOINT_SLICES)
        if piece["metadata"]["namespace"] == "default" and "ownerReferences" in piece["metadata"]
        for endpoint in piece.get("endpoints") or ()
    }


async def _subsets(desk: Desk) -> list[Obj]:
    found: list[Obj] = (await desk.get(ENDPOINTS, "web")).get("subsets") or []
    return found


async def test_a_service_has_its_ready_pods_as_endpoints(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service())
        await _pod(desk, "a", "10.0.0.1")
        await _pod(desk, "b", "10.0.0.2", ready=False)
        assert await _addresses(desk) == {"10.0.0.1": True, "10.0.0.2": False}
        (subset,) = await _subsets(desk)
        assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.1"]
        assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.0.0.2"]


async def test_a_service_may_publish_addresses_that_are_not_ready(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service(publishNotReadyAddresses=True))
        await _pod(desk, "b", "10.0.0.2", ready=False)
        assert await _addresses(desk) == {"10.0.0.2": True}


async def test_a_pod_on_its_way_out_still_serves_but_is_not_ready(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service())
        await _pod(desk, "a", "10.0.0.1")
        await desk.delete(PODS, "a", {"gracePeriodSeconds": 30})
        assert await _addresses(desk) == {"10.0.0.1": False}
        assert await _subsets(desk) == []
        await desk.delete(PODS, "a", {"gracePeriodSeconds": 0})
        assert await _addresses(desk) == {}


async def test_a_finished_pod_is_no_endpoint(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service())
        await _pod(desk, "a", "10.0.0.1")
        await desk.set_phase(await desk.get(PODS, "a"), "Succeeded")
        assert await _addresses(desk) == {}


async def test_pods_with_other_numbers_for_a_named_port_get_slices_of_their_own(
    tmp_path: Path,
) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service(ports=[{"port": 80, "targetPort": "http"}]))
        await _pod(desk, "a", "10.0.0.1", port=8080)
        await _pod(desk, "b", "10.0.0.2", port=9090)
        await desk.settle()
        pieces = [p for p in await desk.all(ENDPOINT_SLICES) if "ownerReferences" in p["metadata"]]
        found = {p["ports"][0]["port"]: p["endpoints"][0]["addresses"] for p in pieces}
        assert found == {8080: ["10.0.0.1"], 9090: ["10.0.0.2"]}
        await desk.delete(PODS, "b", {"gracePeriodSeconds": 0})
        assert await _addresses(desk) == {"10.0.0.1": True}


async def test_many_endpoints_are_cut_into_slices(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        for number in range(103):
            await _pod(desk, f"p{number}", f"10.0.1.{number}")
        await desk.create(SERVICES, service())
        assert len(await _addresses(desk)) == 103
        sizes = [len(p.get("endpoints") or ()) for p in await desk.all(ENDPOINT_SLICES)]
        assert sorted(size for size in sizes if size > 1) == [3, 100]


async def test_a_service_without_a_selector_is_left_to_others(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.create(SERVICES, service(selector=None))
        await desk.settle()
        assert "web" not in await desk.names(ENDPOINTS)


async def test_endpoints_go_with_their_service(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.create(SERVICES, service())
        await desk.settle()
        assert "web" in await desk.names(ENDPOINTS)
        await desk.delete(SERVICES, "web")
        await desk.settle()
        assert "web" not in await desk.names(ENDPOINTS)


async def test_endpoints_that_somebody_else_wrote_stay(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.create(ENDPOINTS, {"metadata": {"name": "own"}})
        await desk.settle()
        assert "own" in await desk.names(ENDPOINTS)


def test_a_target_port_is_a_number_a_name_or_the_port_itself() -> None:
    ports = [
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
        {"name": "dns", "containerPort": 54},
    ]
    made = {"spec": {"containers": [{"name": "c", "ports": ports}]}}
    assert target_port({"port": 80}, made) == 80
    assert target_port({"port": 80, "targetPort": 8080}, made) == 8080
    assert target_port({"port": 53, "targetPort": "dns", "protocol": "UDP"}, made) == 53
    assert target_port({"port": 53, "targetPort": "dns"}, made) == 54
    assert target_port({"port": 53, "targetPort": "nothing"}, made) is None


async def test_slices_follow_the_labels_of_their_service(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.create(SERVICES, service())
        await desk.settle()
        await desk.patch(SERVICES, "web", {"metadata": {"labels": {"team": "a"}}})
        await desk.settle()
        (found,) = [s for s in await desk.all(ENDPOINT_SLICES) if "team" in _labels(s)]
    assert _labels(found)["kubernetes.io/service-name"] == "web"


async def test_a_service_of_as_many_labels_as_may_be_has_slices(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        made = service(clusterIP="None")
        made["metadata"]["labels"] = {f"k{number}": "v" for number in range(1_000)}
        await desk.create(SERVICES, made)
        await _pod(desk, "a", "10.0.0.1")
        assert await _addresses(desk) == {"10.0.0.1": True}
        found = [
            _labels(piece) for piece in await desk.all(ENDPOINT_SLICES) if "k0" in _labels(piece)
        ]
        assert [len(each) for each in found] == [1_000]
        assert found[0]["kubernetes.io/service-name"] == "web"
        await desk.settle()
        assert [_labels(piece) for piece in await desk.all(ENDPOINT_SLICES)].count(found[0]) == 1


async def test_a_pod_of_another_address_family_keeps_no_other_out(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service())
        await _pod(desk, "a", "10.0.0.1")
        await _pod(desk, "b", "fd00::1")
        assert await _addresses(desk) == {"10.0.0.1": True}


async def test_a_slice_of_another_type_that_calls_itself_ours_goes(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.add_node("n")
        await desk.create(SERVICES, service())
        await _pod(desk, "a", "10.0.0.1")
        labels = {endpoints.SERVICE_NAME: "web", endpoints.MANAGED_BY: endpoints._MANAGER}
        forged = {"metadata": {"name": "forged", "labels": labels}, "addressType": "IPv6"}
        await desk.create(ENDPOINT_SLICES, forged | {"endpoints": [{"addresses": ["fd00::1"]}]})
        assert await _addresses(desk) == {"10.0.0.1": True}
        assert "forged" not in await desk.names(ENDPOINT_SLICES)


async def test_conditions_and_names_of_endpoints_are_those_of_kubernetes(tmp_path: Path) -> None:
    async with desk_for(tmp_path, *CONTROLLERS) as desk:
        await desk.create(SERVICES, service(publishNotReadyAddresses=True))
        found: list[Obj] = []
        for name, subdomain in (("a", "web"), ("b", "elsewhere")):
            made = pod(name, "web")
            made["spec"] |= {"hostname": name, "subdomain": subdomain}
            status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
            await desk.create(PODS, made)
            await desk.kube.patch(PODS.path("default", name, "status"), {"status": status})
        await desk.settle()
        for piece in await desk.all(ENDPOINT_SLICES):
            if _labels(piece).get("kubernetes.io/service-name") == "web":
                found += piece["endpoints"]
    assert [each.get("hostname") for each in found] == ["a", None]
    not_ready = {"ready": True, "serving": False, "terminating": False}
    assert [each["conditions"] for each in found] == [not_ready] * 2


def _labels(thing: Obj) -> Obj:
    return thing["metadata"].get("labels") or {}
