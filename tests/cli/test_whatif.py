"""`gpupool whatif` on snapshots: whatever the files say, the answer is true or a message."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, Inventory
from kubeclient.objects import Obj


def node(name: str = "a", cards: int = 4) -> Obj:
    listed = tuple(Card(at, f"{name}-{at}", "V100", 16384) for at in range(cards))
    offered = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(cards)}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"node.gpupool.io/pool": "gpu"},
            "annotations": {"gpupool.io/inventory": inventory_text(Inventory(listed))},
        },
        "status": {"allocatable": offered},
    }


CARD = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"matchExpressions": [{"key": [], "operator": "Exists"}]}


def pod(*containers: object, **spec: object) -> Obj:
    return {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers) or [CARD], **spec},
    }


def workload(kind: str, spec: Obj) -> Obj:
    template = {"template": {"spec": {"containers": [CARD]}}}
    return {"kind": kind, "metadata": {"name": "w"}, "spec": {**template, **spec}}


class Asked:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, *objects: Obj, manifest: Obj | None = None, words: str = "") -> Result:
        snapshot = self._directory / "snapshot.json"
        snapshot.write_text(json.dumps({"kind": "List", "items": objects or [node()]}))
        command = ["whatif", "--snapshot", str(snapshot), *words.split()]
        if manifest is not None:
            file = self._directory / "manifest.json"
            file.write_text(json.dumps(manifest))
            command += ["-f", str(file)]
        done = CliRunner().invoke(gpupool, command)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.mark.parametrize("count", ["1" * 5000, "٣", "+2", "1001", "0", "-1", "x"])
def test_a_number_of_nodes_that_is_none_is_said_to_be_none(asked: Asked, count: str) -> None:
    done = asked(words=f"--nodes gpu=+{count}")
    assert done.exit_code == 2
    assert "wanted POOL=+N with N from 1 to 1000" in done.output
    assert len(done.output) < 500


@pytest.mark.parametrize("name", ["nope", ""])
def test_a_node_that_a_snapshot_lacks_is_not_looked_for_in_a_live_cluster(
    asked: Asked, name: str
) -> None:
    done = asked(words=f"--without={name}")
    assert f'--without "{name}": there is no such node. See: the names in ' in done.output
    assert "kubectl" not in done.output


@pytest.mark.parametrize(
    ("manifest", "pods"),
    [
        (workload("Job", {"parallelism": 4, "completions": 2}), 2),
        (workload("Job", {"parallelism": 2, "completions": 4}), 2),
        (workload("Job", {"completions": 3}), 1),
        (workload("Job", {"parallelism": 2, "completions": None}), 2),
        (
            {
                "kind": "CronJob",
                "metadata": {"name": "w"},
                "spec": {"jobTemplate": {"spec": workload("Job", {"parallelism": 3})["spec"]}},
            },
            3,
        ),
    ],
)
def test_a_workload_has_as_many_pods_as_run_at_the_same_time(
    asked: Asked, manifest: Obj, pods: int
) -> None:
    done = asked(manifest=manifest, words="-o json")
    assert json.loads(done.output)["workloads"][0]["pods"] == pods


def test_more_copies_than_are_tried_are_refused_and_not_cut_in_silence(asked: Asked) -> None:
    done = asked(manifest=workload("Deployment", {"replicas": 10**9}))
    assert done.exit_code == 1
    assert done.output == (
        "Error: Deployment default/w: at most 10000 pods of one workload are tried, and it has "
        "1000000000. Ask about fewer.\n"
    )


@pytest.mark.parametrize(
    "asking",
    [
        pod({"name": "c"}, initContainers=[{"name": "i", "resources": {"limits": {"cpu": 9}}}]),
        pod({"name": "c"}, resources={"limits": {"cpu": "9"}}),
        pod({"name": "c", "resources": {"limits": {"cpu": 9}}}),
    ],
)
def test_a_limit_is_also_a_request_wherever_it_stands(asked: Asked, asking: Obj) -> None:
    done = asked(manifest=asking)
    assert done.exit_code == 1
    assert "Insufficient cpu" in done.output


@pytest.mark.parametrize(
    "container",
    [
        {"name": "c", "resources": {"requests": {"cpu": 2}}},
        {"name": "c", "resources": {"limits": {"cpu": 2}}},
    ],
)
def test_a_limit_of_the_pod_is_no_request_where_its_containers_ask(
    asked: Asked, container: Obj
) -> None:
    fits = pod(container, {"name": "d"}, resources={"limits": {"cpu": 9}})
    done = asked(manifest=fits, words="--replicas 4")
    assert done.exit_code == 0, done.output
    assert asked(manifest=fits, words="--replicas 5").exit_code == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (pod(None), "spec.containers[0]: wanted fields, found null"),
        (pod({}), "spec.containers[0].name: wanted a text, found nothing"),
        (pod({"name": "c", "resources": 5}), "spec.containers[0].resources: wanted fields"),
        (pod({"name": "c", "resources": {"limits": [1]}}), "limits: wanted fields, found a list"),
        (pod(CARD, initContainers="x"), "spec.initContainers: wanted a list, found a text"),
        (pod(CARD, tolerations=[1]), "spec.tolerations[0]: wanted fields, found a number"),
        (pod(CARD, nodeSelector=["x"]), "spec.nodeSelector: wanted fields, found a list"),
        (pod(CARD, nodeSelector={"a": 1}), "spec.nodeSelector.a: wanted a text, found a number"),
        (pod(CARD, priority="high"), "spec.priority: wanted a whole number, found a text"),
        (pod(CARD, volumes=[1]), "spec.volumes[0]: wanted fields, found a number"),
        (pod({**CARD, "ports": [1]}), "ports[0]: wanted fields, found a number"),
        (pod({**CARD, "resources": {"limits": {"nvidia.com/gpu": True}}}), "gpu: wanted a number"),
        ({**pod(), "metadata": {"labels": [1]}}, "metadata.labels: wanted fields, found a list"),
        ({**pod(), "spec": {"containers": {"a": 1}}}, "spec.containers: wanted a list"),
        (
            pod(topologySpreadConstraints=[{"maxSkew": [], "topologyKey": "zone"}]),
            "spec.topologySpreadConstraints[0].maxSkew: wanted a whole number, found a list",
        ),
        (
            pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [TERM]}}}),
            "nodeSelectorTerms[0].matchExpressions[0].key: wanted a text, found a list",
        ),
    ],
)
def test_a_manifest_with_a_wrong_field_is_refused_by_its_name(
    asked: Asked, wrong: Obj, words: str
) -> None:
    done = asked(manifest=wrong)
    assert done.exit_code == 1
    assert words in done.output
    assert len(done.output.splitlines()) == 1


def held(**changes: object) -> Obj:
    metadata = {"name": "old", "namespace": "team", "uid": "u"}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [CARD]}, **changes}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (held(spec=None), "Pod team/old: spec: wanted fields, found nothing"),
        (held(spec="x"), "Pod team/old: spec: wanted fields, found a text"),
        (held(metadata={"name": "old", "namespace": "team"}), "metadata.uid: wanted a text"),
        (held(status={"conditions": [5]}), "status.conditions[0]: wanted fields, found a number"),
        ({**node(), "status": {"allocatable": [1]}}, "Node a: status.allocatable: wanted fields"),
        ({**node(), "spec": {"taints": [{}]}}, "Node a: spec.taints[0].key: wanted a text"),
        (
            held(metadata={"name": "old", "namespace": 5, "uid": "u"}),
            "Pod old: metadata.namespace: wanted a text, found a number",
        ),
        (
            {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": []}},
            "ResourceQuota q: metadata.namespace: wanted a text, found a list",
        ),
        (
            {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "team"}},
            "PersistentVolumeClaim team/c: spec: wanted fields, found nothing",
        ),
        (
            {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"csi": "x"}},
            "PersistentVolume v: spec.csi: wanted fields, found a text",
        ),
    ],
)
def test_a_snapshot_with_a_wrong_field_is_refused_by_its_name(
    asked: Asked, wrong: Obj, words: str
) -> None:
    done = asked(node(), wrong, manifest=pod())
    assert done.exit_code == 1
    assert words in done.output
    assert "snapshot.json" in done.output
    assert len(done.output.splitlines()) == 1


def test_what_a_snapshot_has_beside_nodes_and_pods_is_left_out_with_a_word(asked: Asked) -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "team"},
        "status": {"disruptionsAllowed": "x"},
    }
    done = asked(node(), budget, manifest=pod())
    assert done.exit_code == 0
    assert "Warning: PodDisruptionBudget team/b is left out, it cannot be read: " in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("kind", "moved"), [("ReplicaSet", []), ("Job", []), ("StatefulSet", ["old"]), ("", [])]
)
def test_a_pod_that_terminates_has_its_successor_already(
    asked: Asked, kind: str, moved: list[str]
) -> None:
    owners = [{"kind": kind, "uid": "o", "controller": True}] if kind else []
    going = held(spec={"containers": [{"name": "c"}], "nodeName": "a"})
    going["metadata"] = going["metadata"] | {
        "deletionTimestamp": "2026-11-19T00:00:00Z",
        "ownerReferences": owners,
    }
    done = asked(node("a"), node("b"), going, words="--without a -o json")
    assert [each["name"] for each in json.loads(done.output)["moved"]] == moved


def test_objects_that_are_named_when_they_are_created_are_several(asked: Asked) -> None:
    limits = {"limits": {"nvidia.com/gpu": 3}}
    made = {**pod({"name": "c", "resources": limits}), "metadata": {"generateName": "job-"}}
    two = {"kind": "List", "items": [made, made]}
    assert asked(node(cards=6), manifest=two).exit_code == 0
    done = asked(node(cards=4), manifest=two)
    assert done.exit_code == 1
    assert "0 of 1 pod would fit" in done.output


@pytest.mark.parametrize(("owner", "competes"), [("ReplicaSet", True), ("", False)])
def test_pods_of_nodes_that_go_may_take_the_place_of_new_ones(
    asked: Asked, owner: str, *, competes: bool
) -> None:
    """They are tried first, and the further nodes are counted without them."""
    going = held(spec={"containers": [CARD], "nodeName": "a"})
    owners = [{"kind": owner, "uid": "o", "controller": True}] if owner else []
    going["metadata"] = going["metadata"] | {"ownerReferences": owners}
    done = asked(node("a"), going, words="--without a", manifest=pod())
    words = "All would fit with 1 further node of pool gpu"
    assert f"{words}{', if no pod that waits takes its place' * competes}." in done.output
