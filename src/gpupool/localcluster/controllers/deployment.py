"""Deployment: one replica set per version of its template, and the way from one to the next."""

from gpupool.contract.objects import Obj
from gpupool.kube.errors import AlreadyExists
from gpupool.kube.events import NORMAL
from gpupool.kube.mirror import Key, controller_uid
from gpupool.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from gpupool.localcluster.controllers import deployment_status, rollout
from gpupool.localcluster.controllers.pods import content_hash, controller_reference
from gpupool.localcluster.controllers.rollout import Bounds, Size
from gpupool.localcluster.controllers.run import Context, Controller, Watch, controlled_by

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAX = "deployment.kubernetes.io/max-replicas"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BY_CONTROLLER = "controller"


async def reconcile(key: Key, context: Context) -> float | None:
    deployment = context.of(DEPLOYMENTS).get(key[1], key[0])
    if deployment is None:
        return None
    owned = context.of(REPLICA_SETS).by(_BY_CONTROLLER, deployment["metadata"]["uid"])
    sets = sorted(owned, key=_age)
    if "deletionTimestamp" not in deployment["metadata"]:
        await _Rollout(deployment, sets, context).step()
    return deployment_status.seconds_to_deadline(deployment, context.now()) or None


def _prepare(context: Context) -> None:
    for resource in (REPLICA_SETS, PODS):
        context.of(resource).add_index(_BY_CONTROLLER, lambda obj: [controller_uid(obj)])


CONTROLLER = Controller(
    "deployment-controller",
    (Watch(DEPLOYMENTS), Watch(REPLICA_SETS, controlled_by("Deployment"))),
    reconcile,
    reads=(PODS,),
    prepare=_prepare,
)


def _age(replica_set: Obj) -> tuple[str, str]:
    metadata = replica_set["metadata"]
    return metadata["creationTimestamp"], metadata["name"]


def _template(replica_set: Obj) -> Obj:
    """The template as the deployment has it: without the label that was added."""
    template: Obj = replica_set["spec"]["template"]
    labels = dict(template["metadata"].get("labels") or {})
    labels.pop(HASH_LABEL, None)
    return {**template, "metadata": {**template["metadata"], "labels": labels}}


def _revision(obj: Obj) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _size(replica_set: Obj) -> Size:
    status = replica_set.get("status", {})
    return Size(
        replica_set["metadata"]["name"],
        replica_set["spec"]["replicas"],
        status.get("availableReplicas", 0),
        status.get("readyReplicas", 0),
    )


class _Rollout:
    """One look at one deployment. `sets` come oldest first."""

    def __init__(self, deployment: Obj, sets: list[Obj], context: Context) -> None:
        self.deployment = deployment
        self.sets = sets
        self.context = context
        self.spec = deployment["spec"]
        self.new = next((rs for rs in sets if _template(rs) == self._wanted_template()), None)
        self.limits = self._limits()

    @property
    def old(self) -> list[Obj]:
        return [rs for rs in self.sets if rs is not self.new]

    async def step(self) -> None:
        if self.spec.get("paused") or self._was_resized_in_mid_rollout():
            await self._rescale()
        elif self.spec["strategy"]["type"] == "Recreate":
            await self._recreate()
        else:
            await self._roll()
        await self._write_status()
        await self._forget_old_history()

    def _wanted_template(self) -> Obj:
        template: Obj = self.spec["template"]
        metadata = template.get("metadata") or {}
        return {**template, "metadata": {**metadata, "labels": metadata.get("labels") or {}}}

    def _limits(self) -> Bounds:
        rolling = self.spec["strategy"].get("rollingUpdate")
        if rolling is None:
            return Bounds(self.spec["replicas"], 0, 0)
        return rollout.bounds(self.spec["replicas"], rolling["maxSurge"], rolling["maxUnavailable"])

    # -- the strategies --------------------------------------------------------------------

    async def _roll(self) -> None:
        new = await self._ensure_new()
        grown = rollout.new_size(self.limits, _size(new), [_size(rs) for rs in self.old])
        if grown != new["spec"]["replicas"]:
            await self._scale(new, grown)
            return
        smaller = rollout.old_sizes(self.limits, _size(new), [_size(rs) for rs in self.old])
        for replica_set in self.old:
            name = replica_set["metadata"]["name"]
            if name in smaller:
                await self._scale(replica_set, smaller[name])

    async def _recreate(self) -> None:
        """Everything old goes before anything new comes."""
        running = [rs for rs in self.old if rs["spec"]["replicas"]]
        for replica_set in running:
            await self._scale(replica_set, 0)
        pods = self.context.of(PODS)
        left = [
            pod
            for rs in self.old
            for pod in pods.by(_BY_CONTROLLER, rs["metadata"]["uid"])
            if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        ]
        if running or left:
            return
        new = await self._ensure_new()
        await self._scale(new, self.spec["replicas"])

    def _was_resized_in_mid_rollout(self) -> bool:
        active = [rs for rs in self.sets if rs["spec"]["replicas"]]
        made_for = {(rs["metadata"].get("annotations") or {}).get(_DESIRED) for rs in active}
        return len(active) > 1 and bool(made_for - {None, str(self.spec["replicas"])})

    async def _rescale(self) -> None:
        """A new size and no new version: everybody grows or shrinks in place."""
        active = [rs for rs in reversed(self.sets) if rs["spec"]["replicas"]]
        if len(active) <= 1:
            only = active[0] if active else self.new or (self.sets[-1] if self.sets else None)
            if only is not None:
                await self._scale(only, self.spec["replicas"])
            return
        if self.new and self.new["status"].get("availableReplicas", 0) == self.spec["replicas"]:
            for rs in self.old:
                await self._scale(rs, 0)
            return
        were = (active[0]["metadata"].get("annotations") or {}).get(_MAX, "0")
        sizes = rollout.proportional_sizes(self.limits, [_size(rs) for rs in active], int(were))
        for replica_set in active:
            name = replica_set["metadata"]["name"]
            await self._scale(replica_set, sizes.get(name, replica_set["spec"]["replicas"]))

    # -- replica sets ----------------------------------------------------------------------

    async def _ensure_new(self) -> Obj:
        if self.new is None:
            self.new = await self._create_new()
            self.sets.append(self.new)
        revision = max((_revision(rs) for rs in self.old), default=0) + 1
        if _revision(self.new) < revision:
            await self._annotate(self.new, revision)
        current = (self.deployment["metadata"].get("annotations") or {}).get(REVISION)
        if current != str(_revision(self.new)):
            metadata = self.deployment["metadata"]
            path = DEPLOYMENTS.path(metadata["namespace"], metadata["name"])
            patch = {"metadata": {"annotations": {REVISION: str(_revision(self.new))}}}
            self.deployment = await self.context.kube.patch(path, patch)
        return self.new

    async def _create_new(self) -> Obj:
        metadata, template = self.deployment["metadata"], self._wanted_template()
        collisions = self.deployment.get("status", {}).get("collisionCount", 0)
        suffix = content_hash(template, collisions)
        labels = {**template["metadata"]["labels"], HASH_LABEL: suffix}
        selector = dict(self.spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: suffix}
        name = f"{metadata['name']}-{suffix}"
        empty = Size(name, 0, 0)
        first = rollout.new_size(self.limits, empty, [_size(rs) for rs in self.old])
        wanted = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": self._annotations(max(map(_revision, self.old), default=0) + 1),
                "ownerReferences": [controller_reference(self.deployment, DEPLOYMENTS)],
            },
            "spec": {
                "replicas": first if self.spec["strategy"]["type"] != "Recreate" else 0,
                "minReadySeconds": self.spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": {
                    **template,
                    "metadata": {**template["metadata"], "labels": labels},
                },
            },
        }
        try:
            created = await self.context.kube.create(REPLICA_SETS, wanted)
        except AlreadyExists:
            return await self._taken_name(name, template, collisions)
        if created["spec"]["replicas"]:
            self._say_scaled("up", name, 0, created["spec"]["replicas"])
        return created

    async def _taken_name(self, name: str, template: Obj, collisions: int) -> Obj:
        """Ours already, and the mirror late; or another template with the same hash."""
        namespace = self.deployment["metadata"]["namespace"]
        found = await self.context.kube.get(REPLICA_SETS, name, namespace)
        mine = controller_uid(found) == self.deployment["metadata"]["uid"]
        if mine and _template(found) == template:
            return found
        status = {**self.deployment.get("status", {}), "collisionCount": collisions + 1}
        await self.context.kube.update_status(DEPLOYMENTS, {**self.deployment, "status": status})
        raise AlreadyExists({"code": 409, "message": f"replica set name {name} is taken"})

    def _annotations(self, revision: int) -> Obj:
        own = self.deployment["metadata"].get("annotations") or {}
        kept = {k: v for k, v in own.items() if k not in (_LAST_APPLIED, REVISION)}
        return kept | {
            REVISION: str(revision),
            _DESIRED: str(self.spec["replicas"]),
            _MAX: str(self.spec["replicas"] + self.limits.surge),
        }

    async def _annotate(self, replica_set: Obj, revision: int) -> None:
        """An old version comes back under a new number; the numbers it had stay on record."""
        metadata = replica_set["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        had = annotations.get(REVISION)
        if had:
            annotations[_HISTORY] = ",".join(filter(None, (annotations.get(_HISTORY), had)))
        annotations |= self._annotations(revision)
        metadata["annotations"] = annotations
        replica_set |= await self.context.kube.update(REPLICA_SETS, replica_set)

    async def _scale(self, replica_set: Obj, size: int) -> None:
        was, metadata = replica_set["spec"]["replicas"], replica_set["metadata"]
        annotations = {**(metadata.get("annotations") or {})}
        annotations |= {
            _DESIRED: str(self.spec["replicas"]),
            _MAX: str(self.spec["replicas"] + self.limits.surge),
        }
        if was == size and annotations == metadata.get("annotations"):
            return
        metadata["annotations"], replica_set["spec"]["replicas"] = annotations, size
        replica_set |= await self.context.kube.update(REPLICA_SETS, replica_set)
        if was != size:
            self._say_scaled("up" if size > was else "down", metadata["name"], was, size)

    def _say_scaled(self, way: str, name: str, was: int, size: int) -> None:
        text = f"Scaled {way} replica set {name} from {was} to {size}"
        self.context.events.event(self.deployment, NORMAL, "ScalingReplicaSet", text)

    # -- afterwards ------------------------------------------------------------------------

    async def _write_status(self) -> None:
        status = deployment_status.counts(self.deployment, self.new, self.sets)
        least = self.limits.replicas - self.limits.unavailable
        found = deployment_status.conditions(
            self.deployment, status, self.new, self.context.now(), least
        )
        status["conditions"] = found
        if status != self.deployment.get("status"):
            await self.context.kube.update_status(
                DEPLOYMENTS, {**self.deployment, "status": status}
            )

    async def _forget_old_history(self) -> None:
        limit = self.spec.get("revisionHistoryLimit", 10)
        idle = [
            rs
            for rs in self.old
            if not rs["spec"]["replicas"] and not rs.get("status", {}).get("replicas")
        ]
        if self.new is None or self.spec.get("paused"):
            return
        for replica_set in sorted(idle, key=_revision)[: max(0, len(idle) - limit)]:
            metadata = replica_set["metadata"]
            await self.context.kube.delete(REPLICA_SETS, metadata["name"], metadata["namespace"])
