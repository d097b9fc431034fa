"""A naive model of what an API server keeps and what its watchers hear, for one kind of object.

Nothing here is taken from the server's code: lists are compared, histories are replayed from the
beginning, and nothing is fast.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kubeclient.objects import Obj

Place = tuple[str, str]  # namespace, name
Labels = frozenset[tuple[str, str]]
Seen = tuple[str, Place, int]  # the type of an event, of which object, its version


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    path: str
    has_generation: bool


KINDS = {
    "ConfigMap": Kind("ConfigMap", "/api/v1{}/configmaps", False),
    "Deployment": Kind("Deployment", "/apis/apps/v1{}/deployments", True),
    "Pod": Kind("Pod", "/api/v1{}/pods", True),
}


@dataclass(frozen=True, slots=True)
class Thing:
    """An object, as far as the model knows it."""

    place: Place
    uid: str
    created: str
    labels: Labels
    finalizers: frozenset[str]
    value: int  # of the one field of its spec that the test changes
    observed: int  # of the one field of its status
    generation: int
    node: str
    grace_s: int | None  # not None: it is being deleted


@dataclass(frozen=True, slots=True)
class Wish:
    """What a write wants an object to be."""

    labels: Labels
    finalizers: frozenset[str]
    value: int


@dataclass(frozen=True, slots=True)
class Change:
    version: int
    before: Thing | None
    after: Thing | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or a watch is about."""

    namespace: str = ""
    label: str = ""  # one of LABEL_SELECTORS
    name: str = ""
    node: str | None = None  # "" selects what has none

    def query(self) -> dict[str, str]:
        fields = [f"metadata.name={self.name}"] if self.name else []
        if self.node is not None:
            fields.append(f"spec.nodeName={self.node}")
        query = {"labelSelector": self.label} if self.label else {}
        return query | ({"fieldSelector": ",".join(fields)} if fields else {})

    def selects(self, thing: Thing | None) -> bool:
        if thing is None:
            return False
        namespace, name = thing.place
        return (
            self.namespace in ("", namespace)
            and self.name in ("", name)
            and self.node in (None, thing.node)
            and LABEL_SELECTORS[self.label](dict(thing.labels))
        )


LABEL_SELECTORS: dict[str, Callable[[dict[str, str]], bool]] = {
    "": lambda labels: True,
    "a": lambda labels: "a" in labels,
    "!a": lambda labels: "a" not in labels,
    "a=1": lambda labels: labels.get("a") == "1",
    "a!=1,b": lambda labels: labels.get("a") != "1" and "b" in labels,
    "a in (1,2)": lambda labels: labels.get("a") in ("1", "2"),
    "a notin (2)": lambda labels: labels.get("a") != "2",
}


def body(kind: str, place: Place, wish: Wish) -> Obj:
    namespace, name = place
    metadata: Obj = {"namespace": namespace, "name": name}
    if wish.labels:
        metadata["labels"] = dict(wish.labels)
    if wish.finalizers:
        metadata["finalizers"] = sorted(wish.finalizers)
    head = {"apiVersion": "apps/v1" if kind == "Deployment" else "v1", "kind": kind}
    return head | {"metadata": metadata} | _content(kind, wish.value)


def replacement(old: Obj, wish: Wish) -> Obj:
    """All of the old object, with these changes."""
    kind, metadata = old["kind"], old["metadata"]
    sent = body(kind, (metadata["namespace"], metadata["name"]), wish)
    kept = {key: value for key, value in metadata.items() if key not in ("labels", "finalizers")}
    new = old | {"metadata": kept | sent["metadata"]}
    if kind == "ConfigMap":
        return new | {"data": sent["data"]}
    if kind == "Deployment":
        return new | {"spec": old["spec"] | {"replicas": wish.value}}
    container = old["spec"]["containers"][0] | {"image": f"image:{wish.value}"}
    return new | {"spec": old["spec"] | {"containers": [container]}}


def _content(kind: str, value: int) -> Obj:
    if kind == "ConfigMap":
        return {"data": {"value": str(value)}}
    if kind == "Pod":
        return {"spec": {"containers": [{"name": "main", "image": f"image:{value}"}]}}
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    }
    selector = {"matchLabels": {"app": "x"}}
    return {"spec": {"replicas": value, "selector": selector, "template": template}}


def value_patch(kind: str, value: int) -> Obj:
    """As a merge or strategic merge patch (of a list, for pods: strategic only)."""
    return {"spec": {"replicas": value}} if kind == "Deployment" else _content(kind, value)


VALUE_PATHS = {
    "ConfigMap": "/data/value",
    "Deployment": "/spec/replicas",
    "Pod": "/spec/containers/0/image",
}


def value_json(kind: str, value: int) -> object:
    return {"ConfigMap": str(value), "Deployment": value, "Pod": f"image:{value}"}[kind]


def seen(obj: Obj) -> Thing:
    """What the model knows of an object that the server has shown."""
    metadata = obj["metadata"]
    match obj["kind"]:
        case "ConfigMap":
            value = int(obj["data"]["value"])
        case "Deployment":
            value = obj["spec"]["replicas"]
        case _:
            value = int(obj["spec"]["containers"][0]["image"].rpartition(":")[2])
    deleting = "deletionTimestamp" in metadata
    return Thing(
        place=(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        created=metadata["creationTimestamp"],
        labels=frozenset((metadata.get("labels") or {}).items()),
        finalizers=frozenset(metadata.get("finalizers") or ()),
        value=value,
        observed=(obj.get("status") or {}).get("observedGeneration", 0),
        generation=metadata.get("generation", 0),
        node=(obj.get("spec") or {}).get("nodeName", ""),
        grace_s=metadata.get("deletionGracePeriodSeconds", 0) if deleting else None,
    )


def new(kind: Kind, place: Place, wish: Wish, uid: str, created: str) -> Thing:
    return Thing(
        place=place,
        uid=uid,
        created=created,
        labels=wish.labels,
        finalizers=wish.finalizers,
        value=wish.value,
        observed=0,
        generation=1 if kind.has_generation else 0,
        node="",
        grace_s=None,
    )


def version_of(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


def changed(thing: Thing, wish: Wish) -> Thing:
    """After an update: the generation, where there is one, counts changes of the spec."""
    more = 1 if thing.generation and wish.value != thing.value else 0
    return replace(
        thing,
        labels=wish.labels,
        finalizers=wish.finalizers,
        value=wish.value,
        generation=thing.generation + more,
    )


def is_finished(thing: Thing) -> bool:
    """Asked to go, and nothing holds it."""
    return thing.grace_s == 0 and not thing.finalizers


POLICIES = {
    "": None,
    "Background": frozenset[str](),
    "Foreground": frozenset({"foregroundDeletion"}),
    "Orphan": frozenset({"orphan"}),
}


def deleted(thing: Thing, policy: str, grace_s: int | None) -> Thing:
    """After a delete; gone if `is_finished`."""
    finalizers = thing.finalizers
    wanted = POLICIES[policy]
    if wanted is not None:
        finalizers = finalizers - {"foregroundDeletion", "orphan"} | wanted
    seconds = 0
    if thing.node:
        asked = 30 if grace_s is None else grace_s
        seconds = asked if thing.grace_s is None else min(asked, thing.grace_s)
    more = 1 if thing.grace_s is None and thing.generation else 0
    return replace(
        thing, finalizers=finalizers, grace_s=seconds, generation=thing.generation + more
    )


def selected_at(history: Iterable[Change], selection: Selection, version: int) -> set[Place]:
    """Which objects a list at that version would have shown."""
    chosen: set[Place] = set()
    for change in history:
        thing = change.after or change.before
        assert thing is not None
        if change.version <= version:
            (chosen.add if selection.selects(change.after) else chosen.discard)(thing.place)
    return chosen


def events(history: Iterable[Change], selection: Selection, after: int) -> list[Seen]:
    """What a watcher must hear that begins after that version."""
    heard: list[Seen] = []
    for change in history:
        before, now = selection.selects(change.before), selection.selects(change.after)
        thing = change.after or change.before
        assert thing is not None
        if change.version <= after or not (before or now):
            continue
        kind = "DELETED" if not now else "MODIFIED" if before else "ADDED"
        heard.append((kind, thing.place, change.version))
    return heard


def heard(event: Obj) -> Seen:
    metadata = event["object"]["metadata"]
    place = metadata.get("namespace", ""), metadata.get("name", "")
    return event["type"], place, int(metadata["resourceVersion"])
