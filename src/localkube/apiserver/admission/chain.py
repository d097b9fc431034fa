"""Admission: the plugins that change a write, those that refuse it, and their order.

The order is kube-apiserver's. Plugins are functions by resource and do nothing to other resources,
so a write pays only for its own. `mutate` changes `attributes.obj` in place.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

import msgspec
import orjson

from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
    PatientView,
    WriteCheck,
    refusal,
)
from localkube.apiserver.admission.default_classes import (
    check_claim_growth,
    default_ingress_class,
    default_storage_class,
)
from localkube.apiserver.admission.limit_ranges import (
    LIMITED,
    check_limits,
    default_limits,
    most_limits,
)
from localkube.apiserver.admission.namespaces import namespace_lifecycle
from localkube.apiserver.admission.node_restriction import restrict_node
from localkube.apiserver.admission.pod_security import check_levels
from localkube.apiserver.admission.policies import Policies
from localkube.apiserver.admission.priorities import (
    check_priority_class,
    keep_system_class,
    resolve_priority,
)
from localkube.apiserver.admission.quota import QUOTAS, QuotaLedger
from localkube.apiserver.admission.runtime_classes import (
    apply_runtime_class,
    check_overhead,
)
from localkube.apiserver.admission.service_accounts import (
    assign_service_account,
    check_service_account,
)
from localkube.apiserver.admission.signing_subjects import restrict_subject
from localkube.apiserver.admission.taints import (
    taint_new_node,
    tolerate_short_outages,
)
from localkube.apiserver.admission.view import ViewFromThread
from localkube.apiserver.admission.webhook_conditions import check_conditions
from localkube.apiserver.admission.webhooks import Webhooks
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.judges import Judges

Plugin: TypeAlias = Callable[[Attributes, ClusterView], None]
_T = TypeVar("_T")

_REGISTRATION = "admissionregistration.k8s.io"
_FEW_LIMITS = 200  # a pod of three containers has as many values then as a long body
_WRITES = frozenset({Operation.CREATE, Operation.UPDATE})

_MUTATING: dict[str, tuple[Plugin, ...]] = {
    "pods": (
        default_limits,
        assign_service_account,
        resolve_priority,
        tolerate_short_outages,
        apply_runtime_class,
    ),
    "nodes": (restrict_node, taint_new_node),
    "persistentvolumeclaims": (default_storage_class,),
    "ingresses.networking.k8s.io": (default_ingress_class,),
}
_VALIDATING: dict[str, tuple[Plugin, ...]] = {
    "pods": (check_limits, check_service_account, check_overhead),
    "persistentvolumeclaims": (check_limits, check_claim_growth),
    "priorityclasses.scheduling.k8s.io": (check_priority_class,),
    "namespaces": (check_levels,),
    "certificatesigningrequests.certificates.k8s.io": (restrict_subject,),
    f"mutatingwebhookconfigurations.{_REGISTRATION}": (check_conditions,),
    f"validatingwebhookconfigurations.{_REGISTRATION}": (check_conditions,),
}
_DELETING: dict[str, tuple[Plugin, ...]] = {
    "priorityclasses.scheduling.k8s.io": (keep_system_class,),
}


class Admission:
    def __init__(
        self,
        cluster: PatientView,
        quota: QuotaLedger,
        policies: Policies,
        webhooks: Webhooks,
        judges: Judges,
        checks: Mapping[str, WriteCheck],
    ) -> None:
        """`checks`: those of the product whose cluster this is, by resource."""
        self._cluster = cluster
        self._cluster_from_thread = ViewFromThread(cluster, judges.long_work.on_loop)
        self._checks = checks
        self.judges = judges
        self._policies = policies
        self._webhooks = webhooks
        self.quota = quota

    async def mutate(self, attributes: Attributes) -> Attributes:
        """Changes `attributes.obj` in place; what limit ranges or a webhook make long is so from
        now on."""
        namespace_lifecycle(attributes, self._cluster)
        if attributes.operation is Operation.DELETE:
            await self._run(_DELETING, attributes)
        else:
            if attributes.kind.resource in LIMITED and not attributes.is_long:
                ranges = await self._cluster.listed("limitranges", attributes.namespace)
                if ranges and most_limits(ranges) > _FEW_LIMITS:
                    attributes = msgspec.structs.replace(attributes, is_long=True)
            await self._run(_MUTATING, attributes)
        first = await self._webhooks.mutate(attributes)
        if first.changed:
            # What a webhook added gets its defaults too, and other webhooks may want to see it.
            before = orjson.dumps(attributes.obj)
            if is_long(before):
                attributes = msgspec.structs.replace(attributes, is_long=True)
            await self._run(_MUTATING, attributes)
            same = orjson.dumps(attributes.obj) == before
            # If a plugin changed the object after all webhooks, everyone who asked for reinvocation
            # is called; else only those that ran before the last change.
            await self._webhooks.mutate_again(
                attributes, first.again if same else first.reinvocable
            )
        return attributes

    async def validate(self, attributes: Attributes) -> None:
        if attributes.operation in _WRITES:
            await self._run(_VALIDATING, attributes)
            check = self._checks.get(attributes.kind.resource)
            if check is not None:
                await self._check(check, attributes)
        await self._policies.validate(attributes)
        await self._webhooks.validate(attributes)
        if attributes.kind.resource == QUOTAS and attributes.operation in _WRITES:
            await self._prepare_quota(attributes)

    async def _prepare_quota(self, attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if new is None or attributes.subresource or attributes.dry_run:
            return
        if old is None or old.get("spec") != new.get("spec"):
            await self.quota.prepare(new)

    async def _check(self, check: WriteCheck, attributes: Attributes) -> None:
        if why := await self._seen(attributes, partial(check, attributes)):
            raise refusal(attributes, why)

    async def _seen(self, attributes: Attributes, look: Callable[[ClusterView], _T]) -> _T:
        """What is long is looked at aside, and asks the cluster from there."""
        if not attributes.is_long:
            return look(self._cluster)
        user = attributes.user.name if attributes.user is not None else ""
        return await self.judges.long_work.done(user, lambda: look(self._cluster_from_thread))

    async def show_others(self, attributes: Attributes) -> None:
        """For what is no stored object and has no built-in plugin: a Binding, an Eviction."""
        await self._webhooks.mutate(attributes)
        await self._policies.validate(attributes)
        await self._webhooks.validate(attributes)

    def charge(self, attributes: Attributes) -> None:
        """Refuses what no quota has room for. Nothing may wait between this and the write."""
        self.quota.check(attributes)

    async def close(self) -> None:
        self.judges.close()
        await self._webhooks.close()

    async def _run(self, plugins: dict[str, tuple[Plugin, ...]], attributes: Attributes) -> None:
        wanted = plugins.get(attributes.kind.resource)
        if wanted is None:
            return
        if not attributes.is_long:  # nearly always, and so without another function
            for plugin in wanted:
                plugin(attributes, self._cluster)
            return

        def look(cluster: ClusterView) -> None:
            for plugin in wanted:
                plugin(attributes, cluster)

        await self._seen(attributes, look)
