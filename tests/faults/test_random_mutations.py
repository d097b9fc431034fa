"""Random valid objects and changes of every kind, while every controller runs.

A watchdog sees that no callback keeps the loop for long. In the end every program lives, nothing
broke, and each controller does a piece of its work.
"""

import gc
import random
from collections import Counter
from pathlib import Path
from traceback import format_exc

import pytest

from kubeclient.client import MERGE_PATCH, Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import RESOURCE_QUOTAS, Resource
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.schema.load import schema_of
from tests.conformance.record.samples import SAMPLES
from tests.faults.all_controllers import AllControllers, all_controllers
from tests.faults.controller_proofs import PROOFS
from tests.faults.loop_watchdog import Watchdog
from tests.faults.valid_mutation import NAMES, NAMESPACES, NODES, Mutator

# A webhook that nobody serves would refuse everything else.
_UNUSED = {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
_KINDS: dict[tuple[str, str], Kind] = {
    (kind.api_version, kind.kind): kind for kind in builtin_kinds() if not kind.virtual
}
_SAMPLES = [sample.body for sample in SAMPLES if sample.body["kind"] not in _UNUSED]
_KEPT = 300  # objects that the test knows of


Made = tuple[Kind, str, str]  # namespace and name


class Wild:
    """Writes at random. A refusal is an answer; an error of the server is none."""

    def __init__(self, kube: Kube, seed: int) -> None:
        self.kube = kube
        self.draw = random.Random(seed)
        self.mutator = Mutator(self.draw)
        self.answers: Counter[str] = Counter()
        self.failed: list[str] = []
        self._made: list[Made] = []
        self._chosen: Made | None = None

    async def step(self) -> None:
        acts = [self._create] * 4 + [self._update] * 3 + [self._status] * 4
        acts += [self._metadata, self._metadata, self._scale, self._delete]
        act = self.draw.choice(acts) if self._made else self._create
        name = act.__name__
        self._chosen = None
        try:
            await act()
            self.answers[f"{name} taken"] += 1
        except Refused as error:
            self.answers[f"{name} {error.code}"] += 1
            if error.code == 404:
                self._drop_chosen()  # a controller has deleted it
            if error.code >= 500:
                self.failed.append(f"{name}: {error}")
        except Exception:  # noqa: BLE001 - the server broke, and the others are still to be tried
            self.failed.append(f"{name}: {format_exc()}")

    def _drop_chosen(self) -> None:
        if self._chosen in self._made:
            self._made.remove(self._chosen)

    def _choose(self, among: list[Made]) -> Made:
        self._chosen = self.draw.choice(among)
        return self._chosen

    async def _create(self) -> None:
        sample = self.draw.choice(_SAMPLES)
        kind = _KINDS[sample["apiVersion"], sample["kind"]]
        obj = self.mutator.changed(sample, schema_of(kind.group, kind.version, kind.kind))
        namespace = self.draw.choice(NAMESPACES) if kind.namespaced else ""
        metadata: Obj = {"name": self._name(kind, sample)}
        if namespace:
            metadata["namespace"] = namespace
        obj["metadata"] = {**sample["metadata"], **metadata}
        self.mutator.metadata(obj, kind.kind)
        made = await self.kube.create(_resource(kind), obj)
        self._know(made)
        self._made.append((kind, namespace, metadata["name"]))
        del self._made[:-_KEPT]

    def _name(self, kind: Kind, sample: Obj) -> str:
        if kind.kind in ("CustomResourceDefinition", "Namespace"):
            return str(sample["metadata"]["name"])
        return self.draw.choice(NODES[:2] if kind.kind in ("Node", "CSINode") else NAMES)

    def _know(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        self.mutator.known.append(reference | {"name": metadata["name"], "uid": metadata["uid"]})
        del self.mutator.known[:-_KEPT]

    async def _update(self) -> None:
        kind, namespace, name = self._choose(self._made)
        found = await self.kube.get(_resource(kind), name, namespace)
        schema = schema_of(kind.group, kind.version, kind.kind)
        await self.kube.update(_resource(kind), self.mutator.changed(found, schema))

    async def _status(self) -> None:
        able = [each for each in self._made if each[0].has_status]
        if not able:
            return
        kind, namespace, name = self._choose(able)
        schema = schema_of(kind.group, kind.version, kind.kind).fields["status"]
        path = _resource(kind).path(namespace, name, "status")
        whole = self.mutator.value(schema, "status")
        few = self.draw.sample(sorted(whole), min(len(whole), self.draw.choice((1, 2, 3))))
        status = {key: whole[key] for key in few}
        await self.kube.patch(path, {"status": status}, content_type=MERGE_PATCH)

    async def _metadata(self) -> None:
        kind, namespace, name = self._choose(self._made)
        change: Obj = {"metadata": {"name": name}}
        self.mutator.metadata(change, kind.kind)
        await self.kube.patch(_resource(kind).path(namespace, name), change)

    async def _scale(self) -> None:
        able = [each for each in self._made if each[0].subresource("scale")]
        if not able:
            return
        kind, namespace, name = self._choose(able)
        replicas = self.draw.choice((0, 1, 3, 2_000, 2**31 - 1))
        path = _resource(kind).path(namespace, name, "scale")
        await self.kube.patch(path, {"spec": {"replicas": replicas}})

    async def _delete(self) -> None:
        kind, namespace, name = self._choose(self._made)
        options: Obj = {}
        policy = self.draw.choice((None, "Orphan", "Foreground", "Background"))
        if policy:
            options["propagationPolicy"] = policy
        if self.draw.random() < 0.3:
            options["gracePeriodSeconds"] = self.draw.choice((0, 1, 2**31))
        await self.kube.delete(_resource(kind), name, namespace, options=options)


def _bound(namespace: str) -> Obj:
    hard = {f"count/{resource}": "40" for resource in ("pods", "persistentvolumeclaims")}
    return {"metadata": {"name": "bound", "namespace": namespace}, "spec": {"hard": hard}}


def _resource(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)


async def wild_life(directory: Path, seed: int, steps: int) -> Counter[str]:
    gc.collect()
    gc.freeze()  # what is there already is no business of the cluster
    try:
        async with all_controllers(directory, (*NAMESPACES, "proof")) as cluster:
            for namespace in NAMESPACES:
                # Two thousand million replicas are valid, too, and would keep the cluster busy.
                await cluster.kube.create(RESOURCE_QUOTAS, _bound(namespace))
            wild = Wild(cluster.kube, seed)
            with Watchdog().watching() as watchdog:
                for _ in range(steps):
                    await wild.step()
                cluster.assert_all_live()
                await prove_all(cluster)
            problems = [*wild.failed, *cluster.broken.found, *watchdog.stalls]
    finally:
        gc.unfreeze()
    assert not problems, "\n\n".join(problems[:20])
    return wild.answers


async def prove_all(cluster: AllControllers) -> None:
    for proof in PROOFS:
        await proof(cluster)


async def test_random_valid_objects_leave_every_controller_at_work(tmp_path: Path) -> None:
    answers = await wild_life(tmp_path, seed=1, steps=300)
    assert sum(count for name, count in answers.items() if name.endswith("taken")) > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 12))
async def test_more_random_valid_objects_leave_every_controller_at_work(
    tmp_path: Path, seed: int
) -> None:
    await wild_life(tmp_path, seed=seed, steps=4000)
