"""Upkeep: what the server does at intervals and not with each request: it writes the usage of
quotas, the rules of aggregated roles, and the audit log, and forgets old history of watches.
"""

import asyncio
import contextlib
import time

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.resources import CLUSTER_ROLES, RESOURCE_QUOTAS
from localkube.apiserver.admission.quota import QuotaLedger
from localkube.apiserver.long_work import LongWork
from localkube.apiserver.security.audit import AuditLog
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.store.store import Store
from localkube.apiserver.store.watch_log import Event

_EVERY_S = 0.5
_FORGETS_EVERY_S = 5.0
_ROLES = "clusterroles.rbac.authorization.k8s.io"


class Upkeep:
    def __init__(
        self,
        quota: QuotaLedger,
        authorizer: Authorizer,
        audit: AuditLog,
        store: Store,
        long_work: LongWork,
    ) -> None:
        self._quota = quota
        self._authorizer = authorizer
        self._audit = audit
        self._store = store
        self._long_work = long_work
        self._forgets_at_s = 0.0
        self._roles_changed = True

    def changed(self, event: Event) -> None:
        """Called with every change in the store."""
        if event.record.resource == _ROLES:
            self._roles_changed = True

    async def run(self, kube: Kube) -> None:
        """Until cancelled."""
        while True:
            self._audit.flush()
            self._forget()
            await self._write_quotas(kube)
            if self._roles_changed:
                # Before the writes, which set it again if they change a role: roles that aggregate
                # this one follow in the next turn.
                self._roles_changed = False
                await self._write_roles(kube)
            await asyncio.sleep(_EVERY_S)

    def _forget(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._forgets_at_s:
            self._forgets_at_s = now_s + _FORGETS_EVERY_S
            if self._store.forget_stale(now_s):
                self._long_work.tidy()

    async def _write_quotas(self, kube: Kube) -> None:
        for namespace, name, used in self._quota.changed_statuses():
            with contextlib.suppress(Refused):  # the quota has gone, or its namespace
                path = RESOURCE_QUOTAS.path(namespace, name, "status")
                await kube.patch(path, {"status": used})

    async def _write_roles(self, kube: Kube) -> None:
        for name, rules in list(self._authorizer.stale_aggregates()):
            with contextlib.suppress(Refused):
                await kube.patch(CLUSTER_ROLES.path(name=name), {"rules": rules})
