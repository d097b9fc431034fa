"""How cards get into containers: what shows a way, which is chosen, what a node with none does."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.agent import way_facts
from gpupool.agent.injection import Injection
from gpupool.agent.way_facts import OwnDriver, cdi_kind, nvidia_plugin, runtime_classes
from gpupool.agent.way_finder import WayFinder
from gpupool.agent.ways import (
    NOTHING_FOUND,
    ORDER,
    card_check,
    choose,
    refusal_of,
    without_closed_cards,
)
from gpupool.contract.inventory import inventory_of, inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, LABEL_PINNED_WAY, LABEL_WAY
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.core.ways import Way, Ways
from gpupool.hardware.cdi import Specs
from gpupool.hardware.simdriver_cards import card_profile
from kubeclient.client import MERGE_PATCH
from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.messages import Mount, PreStartContainerRequest
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, RUNTIME_CLASSES
from tests.agent.nodes import M40, NAME, Node
from tests.agent.test_discovery import inventory
from tests.agent.test_health import condition
from tests.agent.test_plugins import asks

A100 = card_profile("NVIDIA A100-SXM4-40GB", 40537)
ways = st.sampled_from(list(Way))
found_ways = st.dictionaries(ways, st.sampled_from(["", "is away"]))


@given(found_ways, st.none() | ways, st.sampled_from(["", "nvidia"]))
def test_a_way_is_open_only_if_it_was_found_to_work_or_a_person_vouches_for_it(
    found: dict[Way, str], pinned: Way | None, runtime_class: str
) -> None:
    chosen = choose(found, pinned=pinned, runtime_class=runtime_class)
    assert set(chosen.known) == set(found)
    if pinned is not None:
        assert chosen.chosen is pinned
    if chosen.is_open and chosen.chosen not in found:
        assert pinned is chosen.chosen
    if chosen.chosen in found:
        assert chosen.problem == found[chosen.chosen]
    assert bool(chosen.problem) != chosen.is_open


@given(found_ways, ways)
def test_a_way_that_is_away_for_a_while_stays_chosen(found: dict[Way, str], away: Way) -> None:
    before = choose({**found, away: ""})
    after = choose({**found, away: "is away"})
    assert after.chosen is before.chosen


def test_every_way_has_its_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted(Way)


def test_a_node_with_no_way_says_what_was_looked_for() -> None:
    assert choose({}) == Ways(problem=NOTHING_FOUND)


@pytest.mark.parametrize("way", [Way.NRI, Way.MOUNTS, Way.RUNTIME_CLASS])
def test_a_pinned_way_that_cannot_work_is_not_open_and_says_what_is_missing(way: Way) -> None:
    chosen = choose({Way.RUNTIME: ""}, pinned=way)
    assert chosen.chosen is way
    assert chosen.problem.startswith(f"the way is pinned to {way}, and ")


@given(
    st.builds(
        Ways,
        st.none() | ways,
        st.text(max_size=20),
        st.lists(ways, unique=True).map(tuple),
        st.sampled_from(["", "nvidia"]),
        st.sampled_from(["", "nvidia.com/gpu"]),
        st.booleans(),
        checks_starts=st.booleans(),
    )
)
def test_ways_are_read_from_the_inventory_as_they_were_written(written: Ways) -> None:
    card = Card(0, "GPU-a", "M40", 12209)
    dated = replace(written, since="2026-11-17T10:00:00Z")
    found = inventory_of(inventory_text(Inventory((card,), ways=dated))).ways
    assert found == written
    assert found is not None
    assert found.since == dated.since


def test_a_way_of_a_newer_agent_is_no_way_for_an_older_program() -> None:
    text = '{"version": 1, "cards": [], "ways": {"chosen": "by-post", "known": ["by-post", "nri"]}}'
    found = inventory_of(text).ways
    assert found is not None
    assert not found.is_open
    assert "by-post" in found.problem
    assert found.known == (Way.NRI,)


def test_an_inventory_of_an_older_agent_tells_no_way() -> None:
    assert inventory_of('{"version": 1, "cards": []}').ways is None


def test_cards_that_do_not_get_in_take_no_pods_and_keep_reasons_of_their_own() -> None:
    cards = (
        Card(0, "GPU-a", "M40", 12209),
        Card(1, "GPU-b", "M40", 12209, CardHealth.UNHEALTHY, "XID 48: memory error"),
    )
    closed = without_closed_cards(Inventory(cards, ways=Ways(problem="nobody does it")))
    assert [card.takes_pods for card in closed.cards] == [False, False]
    assert closed.cards[0].reason == "cards do not get into containers: nobody does it"
    assert closed.cards[1] == cards[1]
    assert without_closed_cards(Inventory(cards, ways=Ways(Way.NRI))).cards == cards


def test_allocate_is_refused_with_node_and_way_unless_our_plugin_holds_containers_back() -> None:
    assert refusal_of("gpu-1", Ways(Way.NRI, "not connected")) == ""
    words = refusal_of("gpu-1", Ways(Way.NVIDIA_NRI, "its pod is not ready"))
    assert words == (
        "node gpu-1: cards do not get into containers by NVIDIA's plugin of the container runtime: "
        "its pod is not ready"
    )


def test_the_limiter_checks_for_the_card_where_others_put_it_in() -> None:
    devices = ("/dev/nvidiactl", "/dev/dxg")
    by_class = Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")
    assert card_check("gpu-1", by_class, devices) == (
        "/dev/nvidiactl:/dev/dxg node gpu-1, way runtime-class=nvidia"
    )
    for way in (Way.NRI, Way.MOUNTS, None):
        assert card_check("gpu-1", Ways(way), devices) == ""
    assert card_check("gpu-1", by_class, ()) == ""


# -- facts -------------------------------------------------------------------------------------


def runtime_class(name: str, handler: str, selector: Obj | None = None) -> Obj:
    made: Obj = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": handler,
    }
    return made | ({"scheduling": {"nodeSelector": selector}} if selector else {})


def node_with(*handlers: str, labels: Obj | None = None) -> Obj:
    listed = [{"name": handler} for handler in handlers]
    return {"metadata": {"labels": labels or {}}, "status": {"runtimeHandlers": listed}}


def test_a_class_works_where_the_kubelet_lists_its_handler() -> None:
    classes = [runtime_class("nvidia-legacy", "nvidia-legacy"), runtime_class("gpu", "nvidia")]
    assert runtime_classes(classes, node_with("", "runc", "nvidia")) == ("gpu", True)
    assert runtime_classes(classes, node_with("", "runc", "nvidia-legacy")) == (
        "nvidia-legacy",
        True,
    )


def test_a_class_whose_handler_the_kubelet_does_not_list_is_only_a_name() -> None:
    classes = [runtime_class("nvidia", "nvidia"), runtime_class("kata", "kata")]
    assert runtime_classes(classes, node_with("", "runc")) == ("nvidia", False)
    assert runtime_classes([], node_with("nvidia")) == ("", False)


def test_a_class_for_other_nodes_does_not_count() -> None:
    classes = [runtime_class("nvidia", "nvidia", {"pool": "a"})]
    assert runtime_classes(classes, node_with("nvidia", labels={"pool": "b"})) == ("", False)
    assert runtime_classes(classes, node_with("nvidia", labels={"pool": "a"})) == ("nvidia", True)


def toolkit(*, ready: bool = True, switch: str = "true", volume: str = "/var/run/nri") -> Obj:
    return {
        "metadata": {
            "name": "toolkit-x",
            "namespace": "gpu-operator",
            "labels": {"app": "nvidia-container-toolkit-daemonset"},
        },
        "spec": {
            "containers": [{"name": "c", "env": [{"name": "ENABLE_NRI_PLUGIN", "value": switch}]}],
            "volumes": [{"name": "nri-socket", "hostPath": {"path": volume}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def test_nvidias_plugin_works_while_its_pod_is_ready() -> None:
    assert nvidia_plugin([toolkit()]) == ""
    assert nvidia_plugin([toolkit(ready=False), toolkit()]) == ""
    assert nvidia_plugin([toolkit(ready=False)]) == (
        "pod gpu-operator/toolkit-x, which runs NVIDIA's NRI plugin, is not ready"
    )


def test_a_toolkit_without_the_plugin_or_without_the_socket_is_not_it() -> None:
    assert nvidia_plugin([]) is None
    assert nvidia_plugin([toolkit(switch="false")]) is None
    assert nvidia_plugin([toolkit(volume="/tmp")]) is None  # anybody may write such a pod


def test_the_kind_of_cdi_device_is_that_of_the_files_of_the_node(tmp_path: Path) -> None:
    specs = Specs((tmp_path,))
    kind, problem = cdi_kind(specs, ["GPU-a", "GPU-b"])
    assert kind == ""
    assert f"no CDI file in {tmp_path} names card GPU-a" in problem
    (tmp_path / "plugin.json").write_text(
        '{"cdiVersion": "0.6.0", "kind": "k8s.device-plugin.nvidia.com/gpu",'
        ' "devices": [{"name": "GPU-a"}, {"name": "GPU-b"}]}'
    )
    assert cdi_kind(specs, ["GPU-a", "GPU-b"]) == ("k8s.device-plugin.nvidia.com/gpu", "")


# -- the agent ---------------------------------------------------------------------------------


async def test_a_node_with_no_way_offers_nothing_and_says_why_everywhere(node: Node) -> None:
    await node.create()
    node.insert([M40, M40])
    async with node.kubelet.running(), node.agent(way=None):
        said = await node.wait_event("NoInjection")
        assert said.startswith("cards do not get into containers: the default runtime does not")
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (2, 0)})
        await node.wait_labels(nvidia_count="2")
        found = await inventory(node)
        assert found.ways == Ways(problem=NOTHING_FOUND)
        assert [card.takes_pods for card in found.cards] == [False, False]
        assert (await node.labels())[LABEL_WAY] == "none"

        async def is_told() -> bool:
            return "do not get into containers" in (await condition(node)).get("message", "")

        await node.wait(is_told)
        assert (await condition(node))["message"].count("do not get into") == 1
        with pytest.raises(RpcFailed, match=f"node {NAME}: cards do not get into containers"):
            await node.kubelet.plugin("nvidia.com/gpu").allocate(asks("0"))

        # A person who knows better says so.
        await node.patch({"labels": {LABEL_PINNED_WAY: "runtime"}})
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (2, 2)})
        assert "NVIDIA's runtime" in await node.wait_event("CardsGetIn")

        async def is_pinned() -> bool:
            found = (await inventory(node)).ways
            return found == Ways(Way.RUNTIME, is_pinned=True)

        await node.wait(is_pinned)
        await node.wait_labels(way=None)


async def test_no_container_starts_again_while_the_way_of_its_card_is_away(node: Node) -> None:
    """The kubelet asks Allocate for new pods only; before each start it asks PreStartContainer."""
    await node.create()
    await node.kube.create(RUNTIME_CLASSES, runtime_class("nvidia", "nvidia"))
    path = NODES.path(name=NAME, subresource="status")

    async def handlers(*names: str) -> None:
        listed = [{"name": name} for name in ("", *names)]
        status = {"status": {"runtimeHandlers": listed}}
        await node.kube.patch(path, status, content_type=MERGE_PATCH)

    await handlers("nvidia")
    node.insert([M40])
    async with node.kubelet.running(), node.agent(way=None):
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})
        plugin, start = node.kubelet.plugin("nvidia.com/gpu"), PreStartContainerRequest(("0",))
        await plugin.pre_start_container(start)
        await handlers()
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 0)})
        with pytest.raises(RpcFailed, match=f"node {NAME}: cards do not get into containers"):
            await plugin.pre_start_container(start)
        await handlers("nvidia")
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})
        await plugin.pre_start_container(start)


async def test_what_the_agents_own_container_got_shows_the_way(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "nvidiactl"
    monkeypatch.setattr(way_facts, "_CONTROL_DEVICES", (device,))
    await node.create()
    node.insert([M40])
    own = OwnDriver(Way.RUNTIME_CLASS, "gpu")
    async with node.kubelet.running(), node.agent(way=None, own_driver=own):
        await node.wait_event("NoInjection")
        device.touch()
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})

        async def is_written() -> bool:
            return (await inventory(node)).ways == Ways(
                Way.RUNTIME_CLASS, known=(Way.RUNTIME_CLASS,), runtime_class="gpu"
            )

        await node.wait(is_written)


async def test_a_runtime_class_is_found_in_the_api(node: Node) -> None:
    await node.create()
    await node.kube.create(RUNTIME_CLASSES, runtime_class("nvidia", "nvidia"))
    status = {"status": {"runtimeHandlers": [{"name": ""}, {"name": "nvidia"}]}}
    path = NODES.path(name=NAME, subresource="status")
    await node.kube.patch(path, status, content_type=MERGE_PATCH)
    node.insert([M40])
    async with node.kubelet.running(), node.agent(way=None):
        await node.wait_event("CardsGetIn")

        async def is_labelled() -> bool:
            labels = await node.labels()
            return (labels.get(LABEL_WAY), labels.get("gpupool.io/runtime-class")) == (
                "runtime-class",
                "nvidia",
            )

        await node.wait(is_labelled)


async def test_mounts_are_a_way(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.kubelet.running(), node.agent(way=None, mounts=(Mount("/a", "/b"),)):
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})
        await node.wait_labels(nvidia_count="1")
    text = (await node.get())["metadata"]["annotations"][ANNOTATION_INVENTORY]
    assert inventory_of(text).ways == Ways(Way.MOUNTS, known=(Way.MOUNTS,))


async def test_nvidias_device_plugin_is_switched_off_when_asked_and_the_label_is_given_back(
    node: Node,
) -> None:
    label = "nvidia.com/gpu.deploy.device-plugin"
    await node.create({label: "true"})
    node.insert([M40])
    async with node.kubelet.running(), node.agent(switches={label: "false"}):
        await node.wait_labels(**{"gpu.deploy.device-plugin": "false"})
    async with node.kubelet.running(), node.agent():
        await node.wait_labels(**{"gpu.deploy.device-plugin": None, "nvidia_count": "1"})


async def test_a_card_in_mig_mode_is_shown_and_not_given_out(node: Node) -> None:
    await node.create()
    node.insert([A100, A100])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (2, 2)})
        node.fault(1, "mig=1")
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (2, 1)})
        assert "MIG mode is on" in await node.wait_event("GpuCordoned")
        node.fault(1, "mig=0")
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (2, 2)})


def test_the_next_agent_knows_since_when_the_way_is_in_use(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1_000.0
    monkeypatch.setattr(time, "time", lambda: clock)

    def next_agent(way: Way | None, published: Ways | None) -> Ways:
        apart = SimpleNamespace(is_there=False, checks_starts=lambda now_s: False)
        injection = cast("Injection", apart)
        settings = replace(node.settings(), way=way, mounts=(), own_driver=None)
        kube = node.agent_kube
        finder = WayFinder(settings, kube, Mirror(kube, PODS), injection, lambda: None)
        card = Card(0, "GPU-a", "M40", 12209)
        text = inventory_text(Inventory((card,), ways=published))
        seen = {"metadata": {"name": NAME, "annotations": {ANNOTATION_INVENTORY: text}}}
        return finder.ways(seen, ())

    first = next_agent(Way.MOUNTS, None)
    assert first.since == "1970-01-01T00:16:40Z"
    clock = 2_000.0
    assert next_agent(Way.MOUNTS, first).since == first.since
    assert next_agent(Way.RUNTIME, first).since == "1970-01-01T00:33:20Z"
    assert next_agent(Way.RUNTIME, Ways(Way.RUNTIME)).since == "1970-01-01T00:33:20Z"
    assert next_agent(None, first) == Ways(problem=NOTHING_FOUND)
