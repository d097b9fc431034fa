"""The Deployment controller: one replica set per version of the template, and the rollout from one
to the next."""

from kubeclient.errors import AlreadyExists, KubeError
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from localkube.controllers import deployment_sets as sets
from localkube.controllers import deployment_status, ownership, revisions
from localkube.controllers.deployment_status import PROGRESSING, Conditions
from localkube.controllers.pod_writes import namespace_is_going
from localkube.controllers.pods import annotation, is_finished, is_terminating
from localkube.controllers.run import Context, Controller, Watch


def controller() -> Controller:
    adopters = ownership.Adopters("Deployment")

    async def reconcile(key: Key, context: Context) -> float | None:
        deployment = context.of(DEPLOYMENTS).get(key[1], key[0])
        if deployment is None:
            return None
        return await _Rollout(deployment, context).step()

    def add_indexes(context: Context) -> None:
        ownership.add_indexes(context.of(REPLICA_SETS))
        ownership.add_indexes(context.of(PODS))
        adopters.follow(context.of(DEPLOYMENTS))

    return Controller(
        "deployment-controller",
        (Watch(DEPLOYMENTS), Watch(REPLICA_SETS, adopters.keys())),
        reconcile,
        reads=(PODS,),
        add_indexes=add_indexes,
    )


class _Rollout:
    """One reconcile of one Deployment. `sets` come oldest first."""

    def __init__(self, deployment: Obj, context: Context) -> None:
        self.deployment = deployment
        self.spec = deployment["spec"]
        self.context = context
        self.now = context.now()
        self.limits = sets.limits_of(deployment)
        self.conditions = Conditions(deployment, self.now)
        self.sets: list[Obj] = []
        self.new: Obj | None = None

    @property
    def old(self) -> list[Obj]:
        return [each for each in self.sets if each is not self.new]

    async def step(self) -> float | None:
        self.sets = sorted(await self._claimed(), key=sets.age)
        self.new = sets.new_of(self.deployment, self.sets)
        if is_terminating(self.deployment):
            await self._write_status()
            return None
        deployment_status.note_pause(self.conditions, self.deployment)
        if self.new is not None:
            await self._refresh_new(self.new)
        if self.spec.get("paused") or sets.was_resized(self.deployment, self.sets):
            await self._rescale()
            if self.spec.get("paused"):
                await self._forget_old_history()
            status = await self._write_status()
        else:
            status = await self._roll_out()
        return deployment_status.seconds_to_deadline(self.deployment, status, self.now)

    async def _claimed(self) -> list[Obj]:
        found = ownership.candidates(self.context.of(REPLICA_SETS), self.deployment)
        judged = ownership.judge(self.deployment, found, ownership.selected_by(self.deployment))
        ties = ownership.Ties(DEPLOYMENTS)
        return await ownership.claim(self.context, self.deployment, ties, REPLICA_SETS, judged)

    # -- the strategies ------------------------------------------------------------------------

    async def _roll_out(self) -> Obj:
        recreates = self.spec["strategy"]["type"] == "Recreate"
        moved = await (self._recreate() if recreates else self._roll())
        if not moved and deployment_status.is_complete(
            self.deployment, self.deployment.get("status", {})
        ):
            await self._forget_old_history()
        return await self._write_status(rolling_out=True)

    async def _roll(self) -> bool:
        """One step of a rolling update. True: a size has changed, and the next step waits until the
        mirrors show it."""
        new = self.new or await self._create_new()
        size, old = self._size(new), [self._size(each) for each in self.old]
        if await self._scale(new, sets.new_size(self.limits, size, old)):
            return True
        smaller = sets.old_sizes(self.limits, size, old)
        for replica_set in self.old:
            name = replica_set["metadata"]["name"]
            if name in smaller:
                await self._scale(replica_set, smaller[name])
        return bool(smaller)

    async def _recreate(self) -> bool:
        """Deletes all old pods before it creates new ones. True: a size has changed, or old pods
        are left."""
        running = [each for each in self.old if each["spec"]["replicas"]]
        for replica_set in running:
            await self._scale(replica_set, 0)
        if running or self._old_pods_are_left():
            return True
        new = self.new or await self._create_new()
        return await self._scale(new, self.spec["replicas"])

    def _old_pods_are_left(self) -> bool:
        pods = self.context.of(PODS)
        return any(
            # Terminating pods are not in status.replicas but still run, so the pods are looked at
            # as well.
            each.get("status", {}).get("replicas")
            or not all(map(is_finished, pods.by(ownership.BY_CONTROLLER, each["metadata"]["uid"])))
            for each in self.old
        )

    async def _rescale(self) -> None:
        """The Deployment was resized or is paused: changes sizes, but does not roll out."""
        active = [each for each in self.sets if each["spec"]["replicas"]]
        if len(active) <= 1:
            only = active[0] if active else self.new or (self.sets[-1] if self.sets else None)
            if only is not None:
                await self._scale(only, self.spec["replicas"])
        elif sets.is_saturated(self.deployment, self.new):
            for replica_set in self.old:
                if replica_set["spec"]["replicas"]:
                    await self._scale(replica_set, 0)
        elif self.spec["strategy"]["type"] == "RollingUpdate":
            sizes = sets.proportional_sizes(self.limits, [self._size(rs) for rs in active])
            for replica_set in active:
                await self._scale(replica_set, sizes[replica_set["metadata"]["name"]])

    # -- replica sets --------------------------------------------------------------------------

    def _size(self, replica_set: Obj) -> sets.Size:
        return sets.size_of(replica_set, self.deployment)

    def _next_revision(self) -> int:
        return max(map(sets.revision_of, self.old), default=0) + 1

    async def _refresh_new(self, new: Obj) -> None:
        """Gives the new replica set the highest revision number and the Deployment's annotations,
        and the Deployment its number."""
        known = new["metadata"].get("annotations") or {}
        wanted = sets.annotations(self.deployment, known, self._next_revision())
        min_ready_s = self.spec.get("minReadySeconds", 0)
        if wanted != known or new["spec"].get("minReadySeconds", 0) != min_ready_s:
            new["metadata"]["annotations"] = wanted
            new["spec"]["minReadySeconds"] = min_ready_s
            # In place: `self.sets` holds the same object, and the next update needs its
            # resourceVersion.
            new |= await self.context.kube.update(REPLICA_SETS, new)
        await self._set_revision(sets.revision_of(new))
        if (
            deployment_status.has_deadline(self.deployment)
            and self.conditions.get(PROGRESSING) is None
        ):
            text = f'Found new replica set "{new["metadata"]["name"]}"'
            self.conditions.put(PROGRESSING, "True", "FoundNewReplicaSet", text)

    async def _set_revision(self, revision: int) -> None:
        if annotation(self.deployment, sets.REVISION) != str(revision):
            metadata = self.deployment["metadata"]
            # Through the status subresource, so that the Deployment's generation does not change.
            path = DEPLOYMENTS.path(metadata["namespace"], metadata["name"], "status")
            patch = {"metadata": {"annotations": {sets.REVISION: str(revision)}}}
            self.deployment = await self.context.kube.patch(path, patch)

    async def _create_new(self) -> Obj:
        collisions = self.deployment.get("status", {}).get("collisionCount", 0)
        size = self.spec["replicas"]
        if self.spec["strategy"]["type"] == "RollingUpdate":
            old = [self._size(each) for each in self.old]
            size = sets.new_size(self.limits, sets.Size("", 0, 0), old)
        wanted = sets.new_replica_set(self.deployment, self._next_revision(), size, collisions)
        name = wanted["metadata"]["name"]
        try:
            self.new = await self.context.kube.create(REPLICA_SETS, wanted)
        except AlreadyExists as error:
            self.new = await self._taken_name(name, collisions, error)
        except KubeError as error:
            await self._say_not_created(name, error)
            raise
        else:
            if size:
                self._say_scaled(name, 0, size)
            if deployment_status.has_deadline(self.deployment):
                text = f'Created new replica set "{name}"'
                self.conditions.put(PROGRESSING, "True", "NewReplicaSetCreated", text)
        self.sets.append(self.new)
        await self._set_revision(sets.revision_of(self.new))
        return self.new

    async def _taken_name(self, name: str, collisions: int, error: AlreadyExists) -> Obj:
        """The name exists. Either we created it and the mirror is late: take it. Or another
        template has the same hash: count the collision, which changes the next name."""
        namespace = self.deployment["metadata"]["namespace"]
        found = await self.context.kube.get(REPLICA_SETS, name, namespace)
        mine = controller_uid(found) == self.deployment["metadata"]["uid"]
        if mine and sets.template_of(found) == sets.template_of(self.deployment):
            return found
        status = {**self.deployment.get("status", {}), "collisionCount": collisions + 1}
        await self.context.kube.update_status(DEPLOYMENTS, {**self.deployment, "status": status})
        raise error

    async def _scale(self, replica_set: Obj, size: int) -> bool:
        """True: the size has changed. The annotations note in any case for which size of the
        Deployment it was chosen."""
        was, metadata = replica_set["spec"]["replicas"], replica_set["metadata"]
        known = metadata.get("annotations") or {}
        noted = sets.with_sizes(known, self.deployment)
        if was == size and noted == known:
            return False
        metadata["annotations"], replica_set["spec"]["replicas"] = noted, size
        replica_set |= await self.context.kube.update(REPLICA_SETS, replica_set)
        if was != size:
            self._say_scaled(metadata["name"], was, size)
        return bool(was != size)

    def _say_scaled(self, name: str, was: int, size: int) -> None:
        way = "up" if size > was else "down"
        text = f"Scaled {way} replica set {name} from {was} to {size}"
        self.context.events.event(self.deployment, NORMAL, "ScalingReplicaSet", text)

    async def _say_not_created(self, name: str, error: KubeError) -> None:
        if namespace_is_going(error):
            return
        text = f'Failed to create new replica set "{name}": {error}'
        self.context.events.event(self.deployment, WARNING, "ReplicaSetCreateError", text)
        if deployment_status.has_deadline(self.deployment):
            self.conditions.put(PROGRESSING, "False", "ReplicaSetCreateError", text)
            await self._write_status()

    async def _forget_old_history(self) -> None:
        surplus = sets.to_forget(self.deployment, self.old)
        await revisions.forget(self.context, REPLICA_SETS, surplus)

    # -- status --------------------------------------------------------------------------------

    async def _write_status(self, *, rolling_out: bool = False) -> Obj:
        status = deployment_status.counts(self.deployment, self.new, self.sets)
        deployment_status.note_available(self.conditions, status, self.limits)
        if rolling_out:
            deployment_status.note_progress(
                self.conditions, self.deployment, status, self.new, self.now
            )
            deployment_status.note_failures(self.conditions, self.new, self.sets)
        status["conditions"] = self.conditions.listed()
        if status != self.deployment.get("status"):
            changed = {**self.deployment, "status": status}
            await self.context.kube.update_status(DEPLOYMENTS, changed)
        return status
