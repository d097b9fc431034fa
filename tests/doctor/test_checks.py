"""The doctor's checks, one by one. test_doctor.py runs it on a cluster."""

import base64
import datetime
import json
from dataclasses import replace

import pytest

from gpupool.admission.authority import new_authority
from gpupool.doctor.checks import judge
from gpupool.doctor.evidence import Evidence, Level, Right
from kubeclient.objects import Obj

NOW = datetime.datetime(2026, 11, 16, tzinfo=datetime.UTC)
AUTHORITY = new_authority(NOW).bundle_pem
INVENTORY = json.dumps(
    {"version": 1, "cards": [{"index": 0, "uuid": "GPU-0", "model": "T4", "memoryMiB": 15360}]}
)


def webhook(kind: str, bundle: bytes = AUTHORITY) -> Obj:
    config = {"caBundle": base64.b64encode(bundle).decode()}
    return {"kind": kind, "webhooks": [{"clientConfig": config}]}


def inventory_with(health: str, reason: str) -> str:
    document = json.loads(INVENTORY)
    document["cards"][0] |= {"health": health, "reason": reason}
    return json.dumps(document)


def nodes_alike(number: int, offered: dict[str, str]) -> tuple[Obj, ...]:
    made = tuple(node(offered) for _ in range(number))
    for index, each in enumerate(made):
        each["metadata"]["name"] = f"n{index}"
    return made


def node(offered: dict[str, str], inventory: str = INVENTORY, kubelet: str = "v1.35.8") -> Obj:
    annotations = {"gpupool.io/inventory": inventory} if inventory else {}
    labels = {"aliyun.accelerator/nvidia_name": "T4"}
    return {
        "metadata": {"name": "n", "annotations": annotations, "labels": labels},
        "status": {"allocatable": offered, "nodeInfo": {"kubeletVersion": kubelet}},
    }


def agents(runtime_class: str) -> Obj:
    return {"spec": {"template": {"spec": {"runtimeClassName": runtime_class}}}}


def of_version(version: str) -> Obj:
    made = pod(f"agent-{version}", nodeName="")
    labels = {"app.kubernetes.io/part-of": "gpupool", "app.kubernetes.io/version": version}
    made["metadata"]["labels"] = labels
    return made


def of_a_newer_version() -> Obj:
    made = pod(nodeName="n")
    made["metadata"]["annotations"] = {"gpupool.io/allocation": '{"version": 2}'}
    return made


def pod(name: str = "p", phase: str = "Running", **spec: object) -> Obj:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    created = NOW - datetime.timedelta(hours=1)
    return {
        "metadata": {"name": name, "namespace": "a", "creationTimestamp": created.isoformat()},
        "spec": {"containers": [container], **spec},
        "status": {"phase": phase},
    }


def extender(*arguments: str) -> Obj:
    made = pod("gpupool-extender-1")
    made["metadata"]["labels"] = {"app.kubernetes.io/name": "gpupool-extender"}
    made["spec"]["containers"] = [{"name": "extender", "args": ["--address=:1", *arguments]}]
    return made


def trial(created: datetime.datetime = NOW, *, is_wired: bool = True) -> Obj:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {}}] if is_wired else []
    return {
        "metadata": {"creationTimestamp": created.isoformat()},
        "spec": {"containers": [{"env": env}]},
    }


def lease(renewed: datetime.datetime) -> Obj:
    holder = {"holderIdentity": "x_1", "leaseDurationSeconds": 15}
    return {"metadata": {}, "spec": {**holder, "renewTime": renewed.isoformat()}}


GOOD = Evidence(
    NOW,
    "v1.35.8",
    nodes=(node({"nvidia.com/gpu": "1"}),),
    lease=lease(NOW),
    webhooks=(webhook("Mutating"), webhook("Validating")),
    authority_pem=AUTHORITY,
    trial=trial(),
    rights=(Right("gpupool-agent", "patch", "nodes", allowed=True),),
)


def said(evidence: Evidence, level: Level = Level.WRONG) -> str:
    found = [finding for finding in judge(evidence) if finding.level is level]
    assert all(finding.mend for finding in found if finding.level is Level.WRONG)
    return " ".join(finding.what for finding in found)


def test_a_good_installation_has_nothing_wrong() -> None:
    assert {finding.level for finding in judge(GOOD)} == {Level.OK}


BROKEN = {
    "wanted 1.31": replace(GOOD, version="v1.28.3"),
    "of an unknown version": replace(GOOD, version=""),
    "may not patch nodes": replace(GOOD, rights=(Right("a", "patch", "nodes", allowed=False),)),
    "A webhook configuration gpupool-admission is missing": replace(
        GOOD, webhooks=(webhook("Mutating"),), trial=trial(is_wired=False)
    ),
    # As the chart creates them, before admission has filled them in.
    "not registered": replace(GOOD, webhooks=({"kind": "A"}, {"kind": "B", "webhooks": []})),
    "miss admission": replace(GOOD, trial=trial(is_wired=False)),
    "cannot ask gpupool-admission": replace(
        GOOD, trial=None, trial_error='failed calling webhook "pods.gpupool.io": refused'
    ),
    "another authority": replace(GOOD, authority_pem=new_authority(NOW).bundle_pem),
    "cannot be read": replace(GOOD, webhooks=(webhook("A", b"x"), webhook("B"))),
    "ends on": replace(GOOD, now=NOW + datetime.timedelta(days=3640)),
    "nobody looks at them: a/p": replace(
        GOOD, lease={}, pods=(pod(phase="Pending", schedulerName="gpupool-scheduler"),)
    ),
    "1 pods of gpupool-extender wait, and nobody looks at them: a/p": replace(
        GOOD, pods=(pod(phase="Pending", schedulerName="gpupool-extender"),)
    ),
    "its kubelet offers none": replace(GOOD, nodes=(node({"nvidia.com/gpu": "0"}),)),
    "offers nvidia.com/gpu twice": replace(GOOD, nodes=(node({"nvidia.com/gpu": "2"}),)),
    "and no inventory": replace(GOOD, nodes=(node({}, inventory=""),)),
    "The inventory of node n": replace(GOOD, nodes=(node({}, inventory="[]"),)),
    "NVIDIA's device plugin": replace(
        GOOD, pods=(pod("nvidia-device-plugin-daemonset-1", nodeName="n"),)
    ),
    "The kubelet of node n is v1.30.1": replace(
        GOOD, nodes=(node({"nvidia.com/gpu": "1"}, kubelet="v1.30.1"),)
    ),
    "The agents ask for the runtime class nvidia": replace(GOOD, agents=agents("nvidia")),
    "sees no card": replace(GOOD, pods=(pod(nodeName="n"),)),
    "cannot be read: version 2": replace(GOOD, pods=(of_a_newer_version(),)),
}


@pytest.mark.parametrize("words", BROKEN)
def test_each_problem_is_reported_with_its_repair(words: str) -> None:
    assert words in said(BROKEN[words])


def test_a_runtime_class_that_is_there_is_good() -> None:
    classes = ({"metadata": {"name": "nvidia"}, "handler": "nvidia"},)
    good = replace(GOOD, agents=agents("nvidia"), runtime_classes=classes)
    assert "The agents run with nvidia" in said(good, Level.OK)
    assert not said(good)


def test_pods_that_have_ended_are_left_alone() -> None:
    assert not said(replace(GOOD, pods=(pod(phase="Succeeded", nodeName="n"),)))


def test_what_may_be_intended_is_only_a_note() -> None:
    assert "holds the Lease" in said(replace(GOOD, lease={}), Level.NOTE)
    late = replace(GOOD, lease=lease(NOW - datetime.timedelta(hours=1)))
    assert "holds the Lease" in said(late, Level.NOTE)
    slow = replace(GOOD, now=NOW + datetime.timedelta(minutes=1))
    assert "60 s apart" in said(slow, Level.NOTE)
    assert "No agent has reported" in said(replace(GOOD, nodes=()), Level.NOTE)
    refused = replace(GOOD, trial=None, trial_error="exceeded quota")
    assert "exceeded quota" in said(refused, Level.NOTE)
    classes = ({"metadata": {"name": "nvidia"}, "handler": "nvidia"},)
    blind = replace(GOOD, nodes=(), agents=agents(""), runtime_classes=classes)
    assert "none runs with the runtime class nvidia" in said(blind, Level.NOTE)
    mixed = replace(GOOD, pods=(of_version("0.1.0"), of_version("0.2.0")))
    assert "different versions: 0.1.0, 0.2.0" in said(mixed, Level.NOTE)
    assert "may not list" in said(replace(GOOD, unseen=("may not list",)), Level.NOTE)


def test_wrong_clocks_are_found_by_the_times_in_leases() -> None:
    def of_node(name: str, off_s: float) -> Obj:
        stated = (NOW + datetime.timedelta(seconds=off_s)).isoformat()
        fields = [{"manager": "kubelet", "time": NOW.isoformat()}]
        spec = {"holderIdentity": name, "renewTime": stated}
        return {"metadata": {"name": name, "managedFields": fields}, "spec": spec}

    good = of_node("good", 0.9)
    off = (good, of_node("fast", 90), of_node("slow", -7))
    found = said(replace(GOOD, node_leases=off), Level.NOTE)
    assert "2 clocks differ from the API server's: fast by +90 s, slow by -7 s." in found
    assert not said(replace(GOOD, node_leases=(good,)), Level.NOTE)


def test_a_lost_card_is_named_with_its_cause() -> None:
    lost = inventory_with("lost", "XID 79: the card has fallen off the bus")
    found = said(replace(GOOD, nodes=(node({"nvidia.com/gpu": "0"}, lost),)))
    assert found == (
        "Card 0 of node n takes no pods: it is lost (XID 79: the card has fallen off the bus)."
    )


def test_a_card_that_a_person_cordoned_is_only_a_note() -> None:
    cordoned = inventory_with("cordoned", "new fan")
    broken = replace(GOOD, nodes=(node({"nvidia.com/gpu": "0"}, cordoned),))
    assert not said(broken)
    (note,) = [finding for finding in judge(broken) if finding.level is Level.NOTE]
    assert note.what == "Card 0 of node n takes no pods: it is cordoned (new fan)."
    assert note.mend == "Take it back into use: gpupool gpu uncordon n 0."


def test_nodes_with_the_same_finding_are_one_line() -> None:
    many = replace(GOOD, nodes=nodes_alike(500, {"nvidia.com/gpu": "1"}))
    assert "500 nodes offer 1 of 1 card whole each: n0, n1, n2 and 497 others." in said(
        many, Level.OK
    )
    assert len(judge(many)) == len(judge(GOOD))


def test_a_few_names_are_all_shown() -> None:
    four = replace(GOOD, nodes=nodes_alike(4, {"nvidia.com/gpu": "0"}))
    assert said(four) == "4 nodes have 1 card each, and their kubelets offer none: n0, n1, n2, n3."


def test_pods_with_the_same_finding_are_one_line() -> None:
    stray = tuple(pod(f"p{index}", nodeName="n") for index in range(9))
    found = said(replace(GOOD, pods=stray))
    assert found.startswith("9 pods came to their nodes without an allocation")
    assert found.endswith(": a/p0, a/p1, a/p2 and 6 others.")


def test_a_container_with_zero_gpus_is_not_wrong() -> None:
    none = pod(nodeName="n")
    none["spec"]["containers"][0]["resources"]["limits"] = {
        "nvidia.com/gpu": "0",
        "aliyun.com/gpu-mem": "0",
    }
    assert not said(replace(GOOD, pods=(none,)))


def test_a_thousand_units_are_written_with_a_letter() -> None:
    assert not said(replace(GOOD, nodes=(node({"aliyun.com/gpu-mem": "1k"}),)))


def agent_on_node(age_s: float) -> Obj:
    made = pod("gpushare-device-plugin-ds-x", nodeName="n")
    created = (NOW - datetime.timedelta(seconds=age_s)).isoformat()
    made["metadata"] |= {
        "labels": {"name": "gpushare-device-plugin-ds"},
        "creationTimestamp": created,
    }
    made["spec"]["containers"][0]["resources"] = {}
    return made


@pytest.mark.parametrize("inventory", [INVENTORY, ""])
def test_an_agent_that_has_just_started_is_no_fault_of_the_node(inventory: str) -> None:
    offers_nothing = replace(GOOD, nodes=(node({}, inventory),), pods=(agent_on_node(5),))
    assert not said(offers_nothing)
    assert "The agent of node n has just started" in said(offers_nothing, Level.NOTE)
    assert said(replace(offers_nothing, pods=(agent_on_node(300),)))


def test_agents_that_have_just_started_are_one_line() -> None:
    nodes = nodes_alike(9, {})
    starting = []
    for each in nodes:
        agent = agent_on_node(5)
        agent["spec"]["nodeName"] = each["metadata"]["name"]
        starting.append(agent)
    evidence = replace(GOOD, nodes=nodes, pods=tuple(starting))
    assert "The agents of 9 nodes have just started" in said(evidence, Level.NOTE)


def test_an_extender_that_answers_anybody_is_noted() -> None:
    evidence = replace(GOOD, pods=(extender(),))
    assert "a/gpupool-extender-1 answers whoever reaches" in said(evidence, Level.NOTE)
    closed = replace(GOOD, pods=(extender("--client-ca=/etc/gpupool/callers/ca.crt"),))
    assert said(closed, Level.NOTE) == ""
