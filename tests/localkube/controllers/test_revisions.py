"""ControllerRevisions: names, numbers, and the limit of the history."""

from kubeclient.objects import Obj
from kubeclient.resources import STATEFUL_SETS
from localkube.controllers import revisions

OWNER: Obj = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "annotations": {"note": "x"}},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "image": "nginx",
                        "imagePullPolicy": "Always",
                        "name": "c",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        }
    },
}


def revision(number: int, name: str = "", created: str = "2026-01-01T00:00:00Z") -> Obj:
    metadata = {"name": name or f"web-{number}", "creationTimestamp": created}
    return {"metadata": metadata, "revision": number, "data": {"spec": {"template": number}}}


def test_a_revision_is_named_as_kubernetes_names_it() -> None:
    made = revisions.new_revision(OWNER, STATEFUL_SETS, 1, 0)
    # As kube-controller-manager 1.35.8 called it.
    assert made["metadata"]["name"] == "web-757df7b85b"
    assert made["metadata"]["labels"] == {
        "app": "web",
        "controller.kubernetes.io/hash": "757df7b85b",
    }
    assert made["metadata"]["annotations"] == {"note": "x"}
    assert made["data"]["spec"]["template"]["$patch"] == "replace"


def test_a_collision_gives_another_name() -> None:
    first, second = (revisions.new_revision(OWNER, STATEFUL_SETS, 1, count) for count in (0, 1))
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_a_revision_gives_its_template_back() -> None:
    made = revisions.new_revision(OWNER, STATEFUL_SETS, 1, 0)
    assert revisions.template_of(made, {}) == OWNER["spec"]["template"]


def test_revisions_are_ordered_by_number_then_age_then_name() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    found = [revision(2), revision(1, "b", late), revision(1, "c", early), revision(1, "a", late)]
    names = [r["metadata"]["name"] for r in revisions.ordered(found)]
    assert names == ["c", "a", "b", "web-2"]


def test_the_next_number_is_one_more() -> None:
    assert revisions.next_number([]) == 1
    assert revisions.next_number([revision(4), revision(2)]) == 5


def test_the_oldest_that_are_not_in_use_are_forgotten() -> None:
    found = [revision(number) for number in (3, 1, 4, 2)]
    forgotten = revisions.surplus(found, {"web-4", "web-1"}, 1)
    assert [r["revision"] for r in forgotten] == [2]
    assert revisions.surplus(found, set(), 4) == []


def test_a_revision_whose_number_has_no_successor_counts_as_the_oldest() -> None:
    def numbered(number: int) -> Obj:
        metadata = {"name": str(number), "creationTimestamp": "2026-11-15T12:00:00Z"}
        return {"metadata": metadata, "revision": number}

    last, first, second = numbered(2**63 - 1), numbered(1), numbered(2)
    assert revisions.ordered([second, last, first]) == [last, first, second]
    assert revisions.next_number([second, last, first]) == 3
