"""Upkeep: what the server writes at intervals and not with each request: the usage of quotas, the
rules of aggregated roles, and the audit log.
"""

import asyncio
import contextlib

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.resources import CLUSTER_ROLES, RESOURCE_QUOTAS
from localkube.apiserver.admission.quota import QuotaLedger
from localkube.apiserver.security.audit import AuditLog
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.store.watch_log import Event

_EVERY_S = 0.5
_ROLES = "clusterroles.rbac.authorization.k8s.io"


class Upkeep:
    def __init__(self, quota: QuotaLedger, authorizer: Authorizer, audit: AuditLog) -> None:
        self._quota = quota
        self._authorizer = authorizer
        self._audit = audit
        self._roles_changed = True

    def changed(self, event: Event) -> None:
        """Called with every change in the store."""
        if event.record.resource == _ROLES:
            self._roles_changed = True

    async def run(self, kube: Kube) -> None:
        """Until cancelled."""
        while True:
            self._audit.flush()
            await self._write_quotas(kube)
            if self._roles_changed:
                # Before the writes, which set it again if they change a role: roles that aggregate
                # this one follow in the next turn.
                self._roles_changed = False
                await self._write_roles(kube)
            await asyncio.sleep(_EVERY_S)

    async def _write_quotas(self, kube: Kube) -> None:
        for namespace, name, used in self._quota.changed_statuses():
            with contextlib.suppress(Refused):  # the quota has gone, or its namespace
                path = RESOURCE_QUOTAS.path(namespace, name, "status")
                await kube.patch(path, {"status": used})

    async def _write_roles(self, kube: Kube) -> None:
        for name, rules in list(self._authorizer.stale_aggregates()):
            with contextlib.suppress(Refused):
                await kube.patch(CLUSTER_ROLES.path(name=name), {"rules": rules})
