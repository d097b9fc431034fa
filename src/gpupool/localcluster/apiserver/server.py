"""ApiServer: all parts put together, started and stopped in order."""

import asyncio
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.objects import Obj
from gpupool.kube.client import Kube
from gpupool.localcluster.apiserver import bootstrap, custom
from gpupool.localcluster.apiserver.admission.chain import Admission
from gpupool.localcluster.apiserver.admission.quota import QuotaLedger
from gpupool.localcluster.apiserver.admission.view import StoreView
from gpupool.localcluster.apiserver.admission.webhook_client import WebhookClient
from gpupool.localcluster.apiserver.admission.webhooks import Webhooks
from gpupool.localcluster.apiserver.allocation import ServiceAddresses
from gpupool.localcluster.apiserver.api import Api, Nodes, Stored
from gpupool.localcluster.apiserver.app import App
from gpupool.localcluster.apiserver.custom import CustomKinds
from gpupool.localcluster.apiserver.defaults.apply import apply_defaults
from gpupool.localcluster.apiserver.discovery import Discovery
from gpupool.localcluster.apiserver.front import Front
from gpupool.localcluster.apiserver.http.server import Server, serve
from gpupool.localcluster.apiserver.inprocess import InProcess
from gpupool.localcluster.apiserver.kinds import Kind, Kinds
from gpupool.localcluster.apiserver.kinds_builtin import builtin_kinds
from gpupool.localcluster.apiserver.metrics import Metrics
from gpupool.localcluster.apiserver.openapi import OpenApi
from gpupool.localcluster.apiserver.request import User
from gpupool.localcluster.apiserver.schema.check import conform
from gpupool.localcluster.apiserver.schema.load import schema_of
from gpupool.localcluster.apiserver.security.audit import AuditLog
from gpupool.localcluster.apiserver.security.authentication import Authenticator
from gpupool.localcluster.apiserver.security.certificates import Certificates, server_context
from gpupool.localcluster.apiserver.security.identities import ADMIN
from gpupool.localcluster.apiserver.security.in_flight import InFlight
from gpupool.localcluster.apiserver.security.limits import Limits
from gpupool.localcluster.apiserver.security.rbac import GROUP as RBAC
from gpupool.localcluster.apiserver.security.rbac import Authorizer
from gpupool.localcluster.apiserver.security.service_account_tokens import ServiceAccountTokens
from gpupool.localcluster.apiserver.security.tokens import StaticTokens
from gpupool.localcluster.apiserver.store.store import Store
from gpupool.localcluster.apiserver.store.watch_log import DELETED, Event
from gpupool.localcluster.apiserver.upkeep import Upkeep

STORE_FILE = "store.db"


@dataclass(frozen=True, slots=True)
class ApiServer:
    api: Api
    app: App
    certificates: Certificates
    front: Front
    _audit: AuditLog
    _upkeep: Upkeep

    def client(self, user: User) -> Kube:
        """A client inside the process, with that user's rights."""
        return Kube(InProcess(self.app.handle, user))

    async def listen(self, port: int) -> Server:
        """Starts writing and answering; raises OSError when the port is taken."""
        return await serve(
            self.front.handle,
            port=port,
            ssl_context=server_context(self.certificates),
            limits=Limits().wire,
        )

    async def bootstrap(self, port: int) -> None:
        itself = Kube(InProcess(self.app.handle, ADMIN, manager="kube-apiserver"))
        await bootstrap.bootstrap(itself, port)
        # What is there now stays; the collector need not look at it ever again. And it may wait
        # longer: almost everything a request makes is gone when it is answered.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 1000)

    async def keep_records(self) -> None:
        """Until cancelled."""
        await self._upkeep.run(self.client(ADMIN))

    async def end(self) -> None:
        """Closes everything; `close` will do where no webhook was ever called."""
        await self.api.admission.close()
        self.close()

    def close(self) -> None:
        self.api.store.close()
        self._audit.close()


def build(
    directory: Path, certificates: Certificates, tokens: StaticTokens, nodes: Nodes
) -> ApiServer:
    """Opens the store; raises StoreDamaged. Runs on the event loop."""
    kinds = Kinds(builtin_kinds())
    custom_kinds = CustomKinds(kinds)
    store = Store(directory / STORE_FILE, _selectable(kinds))
    stored = Stored(store)
    authorizer = Authorizer(stored)
    account_tokens = ServiceAccountTokens(certificates.service_account_key_pem, stored)
    addresses = ServiceAddresses()
    quota = QuotaLedger(store, time.time)
    store.on_change(quota.on_change)
    api = Api(
        kinds=kinds,
        store=store,
        custom=custom_kinds,
        addresses=addresses,
        admission=_admission(store, kinds, custom_kinds, quota),
        authorizer=authorizer,
        authenticator=Authenticator(tokens, account_tokens, authorizer),
        account_tokens=account_tokens,
        stored=stored,
        discovery=Discovery(kinds),
        openapi=OpenApi(kinds, custom_kinds.document),
        in_flight=InFlight(Limits()),
        metrics=Metrics(store),
        nodes=nodes,
    )
    _follow(store, _followers(custom_kinds, authorizer, addresses))
    store.start()
    asyncio.get_running_loop().run_in_executor(None, account_tokens.warm_up)
    audit = AuditLog(directory / "audit.log")
    upkeep = Upkeep(quota, authorizer, audit)
    store.on_change(upkeep.changed)
    app = App(api)
    return ApiServer(api, app, certificates, Front(api, app, audit), audit, upkeep)


def _admission(
    store: Store, kinds: Kinds, custom_kinds: CustomKinds, quota: QuotaLedger
) -> Admission:
    def complete(obj: Obj, kind: Kind) -> None:
        """What a webhook made of an object has to pass what every body passes."""
        schema = custom_kinds.schema(kind) or schema_of(kind.group, kind.version, kind.kind)
        conform(obj, kind, schema, "Ignore")
        apply_defaults(obj, kind)

    view = StoreView(store)
    return Admission(view, quota, Webhooks(view, kinds, complete, WebhookClient()))


def _selectable(kinds: Kinds) -> Callable[[str], tuple[str, ...]]:
    """Which fields the store keeps beside each object, for field selectors."""
    known: dict[str, tuple[str, ...]] = {}
    generation = -1

    def selectable(resource: str) -> tuple[str, ...]:
        nonlocal generation
        if kinds.generation != generation:
            generation = kinds.generation
            known.clear()
            known.update({k.resource: k.selectable for k in kinds if k.storage_group is None})
        return known.get(resource, ())

    return selectable


Follower = Callable[[Event], None]


def _followers(
    custom_kinds: CustomKinds, authorizer: Authorizer, addresses: ServiceAddresses
) -> dict[str, Follower]:
    """Who must know of a change of these resources at once, before the next request."""

    def crd(event: Event) -> None:
        obj = None if event.type == DELETED else event.record.obj()
        custom_kinds.replace(event.record.name, obj)

    def role(plural: str) -> Follower:
        def changed(event: Event) -> None:
            record = event.record
            obj = None if event.type == DELETED else record.obj()
            authorizer.replace(plural, record.namespace, record.name, obj)

        return changed

    plurals = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    followers: dict[str, Follower] = {f"{plural}.{RBAC}": role(plural) for plural in plurals}
    return followers | {custom.CRDS: crd, "services": addresses.changed}


def _follow(store: Store, followers: dict[str, Follower]) -> None:
    def changed(event: Event) -> None:
        follower = followers.get(event.record.resource)
        if follower is not None:
            follower(event)

    for resource in followers:
        for record in store.records(resource):
            changed(Event("ADDED", record, None))
    store.on_change(changed)
