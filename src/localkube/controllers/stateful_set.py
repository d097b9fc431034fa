"""The StatefulSet controller: numbered pods. The name and the volume claims of an ordinal outlive
its pod."""

import asyncio
from collections.abc import Mapping

from kubeclient.errors import AlreadyExists, KubeError, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS, Resource
from localkube.controllers import ownership, revisions
from localkube.controllers import stateful_set_pods as pods
from localkube.controllers.expectations import Expectations
from localkube.controllers.pods import (
    count_of,
    is_ready,
    is_terminating,
    label,
    ready_since_s,
    seconds_to_available,
)
from localkube.controllers.run import Context, Controller, Watch, controlled_by
from localkube.controllers.stateful_set_plan import Goal, Replica, plan, status_of

_BURST = 100  # pods created at the same time
_LATE_S = 1.0  # until the next look, while the mirrors do not show our own writes yet


def controller() -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters("StatefulSet")

    async def reconcile(key: Key, context: Context) -> float | None:
        stateful_set = context.of(STATEFUL_SETS).get(key[1], key[0])
        if stateful_set is None:
            expectations.forget(key)
            return None
        now_s = context.now().timestamp()
        if not expectations.met(key, context.of, frozenset(), now_s):
            return _LATE_S
        return await _Set(stateful_set, key, context, expectations).step()

    def add_indexes(context: Context) -> None:
        for resource in (PODS, CONTROLLER_REVISIONS):
            ownership.add_indexes(context.of(resource))
        adopters.follow(context.of(STATEFUL_SETS))

    return Controller(
        "statefulset-controller",
        (
            Watch(STATEFUL_SETS),
            Watch(PODS, adopters.keys()),
            Watch(CONTROLLER_REVISIONS, controlled_by("StatefulSet")),
        ),
        reconcile,
        reads=(VOLUME_CLAIMS,),
        add_indexes=add_indexes,
    )


class _Set:
    """One reconcile of one StatefulSet."""

    def __init__(
        self, stateful_set: Obj, key: Key, context: Context, expectations: Expectations
    ) -> None:
        self.set = stateful_set
        self.spec = stateful_set["spec"]
        self.key = key
        self.context = context
        self.expectations = expectations
        self.now = context.now()
        self.members: dict[int, Obj] = {}
        self.waits_for_claims = False

    async def step(self) -> float | None:
        known = await revisions.claimed(self.context, self.set, STATEFUL_SETS)
        collisions = self.set.get("status", {}).get("collisionCount", 0)
        # Nothing is created for a set that is being deleted, not even a revision.
        if is_terminating(self.set) and known:
            update = known[-1]
        else:
            update, collisions = await revisions.current(
                self.context, self.set, STATEFUL_SETS, known, collisions
            )
        named = {revision["metadata"]["name"]: revision for revision in known}
        current = named.get(self.set.get("status", {}).get("currentRevision"), update)
        self.members = await self._members()
        replicas = {o: self._replica(o, pod) for o, pod in self.members.items()}
        names = current["metadata"]["name"], update["metadata"]["name"]
        status = status_of(self.set, replicas.values(), *names, collisions)
        failure: Exception | None = None
        try:
            if not is_terminating(self.set):
                await self._act(replicas, current, update)
        except Exception as error:  # noqa: BLE001 - raised again below
            failure = error
        # After a failure, too: the counts are from before the action, and are right in any case.
        # Not in a `finally`: a conflict here would take the place of a cancellation, and the
        # worker would go on.
        if status != self.set.get("status"):
            changed = {**self.set, "status": status}
            answer = await self.context.kube.update_status(STATEFUL_SETS, changed)
            self._expect(STATEFUL_SETS, answer)
        if failure is not None:
            raise failure
        live = {*names, *(replica.revision for replica in replicas.values())}
        limit = self.spec.get("revisionHistoryLimit", 10)
        surplus = revisions.surplus(known, live, limit)
        await revisions.forget(self.context, CONTROLLER_REVISIONS, surplus)
        return self._next_look()

    async def _members(self) -> dict[int, Obj]:
        is_selected = ownership.selected_by(self.set)

        def fits(pod: Obj) -> bool:
            return is_selected(pod) and pods.ordinal_of(pod, self.set) is not None

        found = ownership.candidates(self.context.of(PODS), self.set)
        judged = ownership.judge(self.set, found, fits)
        ties = ownership.Ties(STATEFUL_SETS)
        own = await ownership.claim(self.context, self.set, ties, PODS, judged)
        numbered = {pods.ordinal_of(pod, self.set): pod for pod in own}
        return {ordinal: pod for ordinal, pod in numbered.items() if ordinal is not None}

    def _replica(self, ordinal: int, pod: Obj) -> Replica:
        return Replica(
            ordinal=ordinal,
            revision=label(pod, revisions.POD_LABEL),
            phase=pod.get("status", {}).get("phase", "Pending"),
            ready=is_ready(pod),
            available=self._seconds_to_available(pod) == 0,
            terminating=is_terminating(pod),
            in_order=(
                pods.has_identity(pod)
                and pods.has_volumes(pod, self.set, ordinal)
                and not self._claims_to_retie(ordinal, pod)
            ),
        )

    def _goal(self, update: Obj) -> Goal:
        strategy = self.spec["updateStrategy"]
        rolling = strategy.get("rollingUpdate") or {}
        ordinals = pods.ordinals(self.set)
        return Goal(
            replicas=self.spec["replicas"],
            update_revision=update["metadata"]["name"],
            start=ordinals.start,
            parallel=self.spec["podManagementPolicy"] == "Parallel",
            rolling=strategy["type"] == "RollingUpdate",
            partition=rolling.get("partition", 0),
            max_unavailable=self._max_unavailable(rolling.get("maxUnavailable")),
            is_stale=self._has_stale_claims,
        )

    def _max_unavailable(self, given: int | str | None) -> int | None:
        if given is None:
            return None
        return max(1, count_of(given, self.spec["replicas"], round_up=False))

    async def _act(self, replicas: Mapping[int, Replica], current: Obj, update: Obj) -> None:
        goal = self._goal(update)
        todo = plan(goal, replicas)
        self.waits_for_claims = todo.waits_for_claims
        for ordinal in todo.claim:
            await self._ensure_claims(ordinal)
        for ordinal in todo.repair:
            await self._repair(ordinal)
        kept = goal.start + goal.partition if goal.rolling else goal.start
        batch = 1
        while todo.create:
            chosen, todo.create = todo.create[:batch], todo.create[batch:]
            made = [self._create(o, current if o < kept else update) for o in chosen]
            # All of a batch end before a failure is raised: none may go on unobserved after this
            # reconcile.
            results = await asyncio.gather(*made, return_exceptions=True)
            for failed in results:
                if isinstance(failed, BaseException):
                    raise failed
            batch = min(2 * batch, _BURST)
        for ordinal in [*todo.delete, *todo.update]:
            await self._delete(ordinal)

    # -- pods ----------------------------------------------------------------------------------

    async def _create(self, ordinal: int, revision: Obj) -> None:
        try:
            await self._ensure_claims(ordinal)
            pod = await self.context.kube.create(PODS, pods.new_pod(self.set, revision, ordinal))
        except AlreadyExists:
            raise
        except KubeError as error:
            self._say_failed("Create", ordinal, error)
            raise
        self._expect(PODS, pod)
        self.members[ordinal] = pod
        await self._retie_claims(ordinal, pod)
        self._say("Create", ordinal)

    async def _repair(self, ordinal: int) -> None:
        pod = self.members[ordinal]
        await self._retie_claims(ordinal, pod)
        wanted = pods.repaired(pod, self.set, ordinal)
        if wanted == pod or ordinal not in pods.ordinals(self.set):
            return
        try:
            await self._ensure_claims(ordinal)
            self._expect(PODS, await self.context.kube.update(PODS, wanted))
        except KubeError as error:
            self._say_failed("Update", ordinal, error)
            raise
        self._say("Update", ordinal)

    async def _delete(self, ordinal: int) -> None:
        metadata = self.members[ordinal]["metadata"]
        options = {"preconditions": {"uid": metadata["uid"]}}
        try:
            await self.context.kube.delete(
                PODS, metadata["name"], metadata["namespace"], options=options
            )
        except NotFound:
            return
        except KubeError as error:
            self._say_failed("Delete", ordinal, error)
            raise
        self._say("Delete", ordinal)

    # -- claims --------------------------------------------------------------------------------

    def _known_claims(self, ordinal: int) -> list[Obj]:
        mirror, namespace = self.context.of(VOLUME_CLAIMS), self.set["metadata"]["namespace"]
        found = (mirror.get(name, namespace) for name in pods.claim_names(self.set, ordinal))
        return [claim for claim in found if claim is not None]

    def _has_stale_claims(self, ordinal: int) -> bool:
        if not pods.deletes_when_scaled(self.set) or ordinal in self.members:
            return False
        name = pods.pod_name(self.set, ordinal)
        return any(pods.is_stale(claim, name) for claim in self._known_claims(ordinal))

    def _claims_to_retie(self, ordinal: int, pod: Obj) -> list[Obj]:
        """The claims whose owner references have to change, already with the new ones."""
        changed = []
        for claim in self._known_claims(ordinal):
            owners = pods.owners_of_claim(claim, self.set, pod)
            if owners != (claim["metadata"].get("ownerReferences") or []):
                claim["metadata"]["ownerReferences"] = owners
                changed.append(claim)
        return changed

    async def _retie_claims(self, ordinal: int, pod: Obj) -> None:
        for claim in self._claims_to_retie(ordinal, pod):
            if pods.has_other_controller(claim, self.set, pod):
                text = (
                    f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting "
                    "OwnerReference that acts as a manging controller, the retention policy is "
                    "ignored for this claim"
                )
                self.context.events.event(self.set, WARNING, "ConflictingController", text)
            self._expect(VOLUME_CLAIMS, await self.context.kube.update(VOLUME_CLAIMS, claim))

    async def _ensure_claims(self, ordinal: int) -> None:
        known = {claim["metadata"]["name"]: claim for claim in self._known_claims(ordinal)}
        for wanted in pods.claims(self.set, ordinal):
            name = wanted["metadata"]["name"]
            found = known.get(name)
            if found is None:
                await self._create_claim(wanted, ordinal)
            elif is_terminating(found):
                raise KubeError(f"pvc {name} is being deleted")

    async def _create_claim(self, claim: Obj, ordinal: int) -> None:
        name, where = claim["metadata"]["name"], self._described(ordinal)
        try:
            self._expect(VOLUME_CLAIMS, await self.context.kube.create(VOLUME_CLAIMS, claim))
        except AlreadyExists:
            return
        except KubeError as error:
            text = f"Create Claim {name} for {where} failed error: {error}"
            self.context.events.event(self.set, WARNING, "FailedCreate", text)
            raise KubeError(f"failed to create PVC {name}: {error}") from error
        text = f"Create Claim {name} {where} success"
        self.context.events.event(self.set, NORMAL, "SuccessfulCreate", text)

    # -- events and expectations ---------------------------------------------------------------

    def _described(self, ordinal: int) -> str:
        name = self.set["metadata"]["name"]
        return f"Pod {pods.pod_name(self.set, ordinal)} in StatefulSet {name}"

    def _say(self, verb: str, ordinal: int) -> None:
        text = f"{verb} {self._described(ordinal)} successful"
        self.context.events.event(self.set, NORMAL, f"Successful{verb}", text)

    def _say_failed(self, verb: str, ordinal: int, error: KubeError) -> None:
        text = f"{verb} {self._described(ordinal)} failed error: {error}"
        self.context.events.event(self.set, WARNING, f"Failed{verb}", text)

    def _expect(self, resource: Resource, answer: Obj) -> None:
        self.expectations.wrote(self.key, resource, answer, self.now.timestamp())

    def _seconds_to_available(self, pod: Obj) -> float | None:
        min_ready_s = self.spec.get("minReadySeconds", 0)
        return seconds_to_available(ready_since_s(pod), min_ready_s, self.now.timestamp())

    def _next_look(self) -> float | None:
        """When the next pod becomes available by time alone, or claims may have gone."""
        waits = [self._seconds_to_available(pod) for pod in self.members.values()]
        later = [wait for wait in waits if wait]
        if self.waits_for_claims:
            later.append(_LATE_S)
        return min(later) if later else None
