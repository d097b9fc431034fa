"""ApiServer: all parts put together, started and stopped in order."""

import asyncio
import gc
import logging
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kubeclient.client import Kube
from kubeclient.objects import Obj
from localkube.apiserver import bootstrap, custom
from localkube.apiserver.admission.attributes import WriteCheck
from localkube.apiserver.admission.chain import Admission
from localkube.apiserver.admission.policies import Allowed, Policies
from localkube.apiserver.admission.quota import QuotaLedger
from localkube.apiserver.admission.view import StoreView
from localkube.apiserver.admission.webhook_client import WebhookClient
from localkube.apiserver.admission.webhooks import Webhooks
from localkube.apiserver.aggregation import Aggregation
from localkube.apiserver.aggregation.availability import Availability
from localkube.apiserver.aggregation.proxy import Forwarder
from localkube.apiserver.aggregation.registry import RESOURCE as API_SERVICES
from localkube.apiserver.aggregation.registry import Remotes
from localkube.apiserver.allocation import apart
from localkube.apiserver.api import Api, Nodes, Stored
from localkube.apiserver.app import App
from localkube.apiserver.conversion.convert import Conversions
from localkube.apiserver.custom import CustomKinds
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.discovery import Discovery
from localkube.apiserver.front import Front
from localkube.apiserver.http.server import Server, serve
from localkube.apiserver.inprocess import InProcess
from localkube.apiserver.judges import Judges
from localkube.apiserver.kinds import Kind, Kinds, builtin_kinds
from localkube.apiserver.large_writes import LargeWrites
from localkube.apiserver.long_work import LongWork
from localkube.apiserver.metrics import Metrics
from localkube.apiserver.openapi import OpenApi
from localkube.apiserver.request import Handler, User
from localkube.apiserver.schema.check import conform
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.security.access import ALLOWED, Access, Verdict
from localkube.apiserver.security.audit import AuditLog
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.certificates import Certificates, server_context
from localkube.apiserver.security.identities import ADMIN, service_account_user
from localkube.apiserver.security.in_flight import InFlight
from localkube.apiserver.security.limits import Limits
from localkube.apiserver.security.rbac import GROUP as RBAC
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.service_addresses import ServiceAddresses
from localkube.apiserver.store.store import Store
from localkube.apiserver.store.watch_log import DELETED, Event
from localkube.apiserver.upkeep import Upkeep

log = logging.getLogger(__name__)

STORE_FILE = "store.db"
_OPEN_FILES = 16_384


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
        return Kube(InProcess(self._counted(self.app.handle), user))

    async def listen(self, port: int) -> Server:
        """Starts writing and answering; raises OSError when the port is taken."""
        return await serve(
            self._counted(self.front.handle),
            port=port,
            ssl_context=server_context(self.certificates),
            limits=Limits().wire,
        )

    async def bootstrap(self, port: int, roles: Iterable[Obj] = ()) -> None:
        itself = Kube(InProcess(self._counted(self.app.handle), ADMIN, manager="kube-apiserver"))
        await bootstrap.bootstrap(itself, port, self.certificates, roles)

    def _counted(self, handle: Handler) -> Handler:
        return self.api.metrics.counted(handle)

    async def keep_records(self) -> None:
        """Writes quota usage, aggregated roles and the audit log, until cancelled."""
        await self._upkeep.run(self.client(ADMIN))

    async def watch_api_services(self) -> None:
        """Says which API servers behind APIServices answer, until cancelled."""
        api = self.api
        await api.aggregation.availability.run(self.client(ADMIN), api.clock)

    async def end(self) -> None:
        """Closes everything. `close` alone is enough if no webhook was ever called."""
        await self.api.admission.close()
        self.close()

    def close(self) -> None:
        self.api.long_work.close()
        self.api.store.close()
        self._audit.close()


def raise_open_files_limit() -> None:
    """Raises the soft limit of open files as far as the hard one allows.

    Most shells allow 1024. A thousand nodes or clients need several thousand.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune_garbage_collector() -> None:
    """For a process that is an API server and little else, once the server answers.

    What is there then stays: the collector need not look at it again. And it may run more rarely,
    because almost everything that a request makes is freed when the request is answered.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 1000)


def build(
    directory: Path,
    certificates: Certificates,
    tokens: StaticTokens,
    nodes: Nodes,
    checks: Mapping[str, WriteCheck] = MappingProxyType({}),
) -> ApiServer:
    """Opens the store; raises StoreDamaged. Runs on the event loop."""
    kinds = Kinds(builtin_kinds())
    judges = Judges()
    custom_kinds = CustomKinds(kinds, judges.long_work.aside)
    store = Store(directory / STORE_FILE, _selectable(kinds))
    stored = Stored(store)
    authorizer = Authorizer(stored)
    account_tokens = ServiceAccountTokens(certificates.service_account_key_pem, stored)
    addresses = ServiceAddresses()
    quota = QuotaLedger(store, time.time)
    view = StoreView(store)
    webhook_client = WebhookClient(nodes.streams, judges.long_work)
    conversions = Conversions(view, webhook_client)
    complete = _completion(custom_kinds)
    between = conversions.between
    webhooks = Webhooks(view, kinds, complete, webhook_client, between, judges)
    permission = _permission(authorizer, judges.long_work)
    policies = Policies(view, kinds, between, permission, judges)
    store.on_change(quota.on_change)
    aggregation = _aggregation(kinds, view, nodes, certificates)
    api = Api(
        kinds=kinds,
        store=store,
        custom=custom_kinds,
        conversions=conversions,
        addresses=addresses,
        admission=Admission(view, quota, policies, webhooks, judges, checks),
        aggregation=aggregation,
        authorizer=authorizer,
        authenticator=Authenticator(tokens, account_tokens, authorizer),
        account_tokens=account_tokens,
        stored=stored,
        discovery=Discovery(kinds, aggregation.remotes),
        openapi=OpenApi(kinds, custom_kinds.document),
        in_flight=InFlight(Limits()),
        metrics=Metrics(store),
        nodes=nodes,
        long_work=judges.long_work,
        large_writes=LargeWrites(),
    )
    remotes = aggregation.remotes
    _follow(store, _followers(custom_kinds, conversions, authorizer, addresses, remotes))
    store.on_change(aggregation.availability.changed)
    store.start()
    asyncio.get_running_loop().run_in_executor(None, account_tokens.warm_up)
    audit = AuditLog(directory / "audit.log")
    upkeep = Upkeep(quota, authorizer, audit, store, judges.long_work)
    store.on_change(upkeep.changed)
    app = App(api)
    return ApiServer(api, app, certificates, Front(api, app, audit), audit, upkeep)


def _aggregation(
    kinds: Kinds, view: StoreView, nodes: Nodes, certificates: Certificates
) -> Aggregation:
    remotes, forwarder = Remotes(kinds), Forwarder(view, nodes.streams, certificates)
    return Aggregation(remotes, forwarder, Availability(remotes, forwarder))


def _completion(custom_kinds: CustomKinds) -> Callable[[Obj, Kind], None]:
    def complete(obj: Obj, kind: Kind) -> None:
        """What a webhook returns must pass the same checks as a body that a client sends."""
        schema = custom_kinds.schema(kind) or schema_of(kind.group, kind.version, kind.kind)
        conform(obj, kind, schema, "Ignore")
        apply_defaults(obj, kind)

    return complete


def _permission(authorizer: Authorizer, long_work: LongWork) -> Allowed:
    def allowed(
        user: User | None, account: tuple[str, str] | None, question: dict[str, str]
    ) -> Verdict:
        """Of the user, or of the service account that a policy asks about."""
        asked = user if account is None else service_account_user(*account, "", {})
        if asked is None:  # the cluster's own programs
            return ALLOWED
        access = Access(**question)
        # Policies that ask for much are judged in a thread, and roles belong to the loop.
        return long_work.on_loop(lambda: authorizer.allowed(asked, access))

    return allowed


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
    custom_kinds: CustomKinds,
    conversions: Conversions,
    authorizer: Authorizer,
    addresses: ServiceAddresses,
    remotes: Remotes,
) -> dict[str, Follower]:
    """Functions that must see a change of these resources at once, before the next request."""

    def crd(event: Event) -> None:
        with apart():
            obj = None if event.type == DELETED else event.record.obj()
            custom_kinds.replace(event.record.name, obj)
            conversions.replace(event.record.name, obj)

    def role(plural: str) -> Follower:
        def changed(event: Event) -> None:
            record = event.record
            obj = None if event.type == DELETED else record.obj()
            try:
                authorizer.replace(plural, record.namespace, record.name, obj)
            except Exception:
                # What cannot be understood grants nothing, nor does what it was before.
                authorizer.replace(plural, record.namespace, record.name, None)
                raise

        return changed

    def api_service(event: Event) -> None:
        obj = None if event.type == DELETED else event.record.obj()
        remotes.replace(event.record.name, obj)

    plurals = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    followers: dict[str, Follower] = {f"{plural}.{RBAC}": role(plural) for plural in plurals}
    return followers | {custom.CRDS: crd, "services": addresses.changed, API_SERVICES: api_service}


def _follow(store: Store, followers: dict[str, Follower]) -> None:
    def changed(event: Event) -> None:
        follower = followers.get(event.record.resource)
        if follower is not None:
            follower(event)

    for name in followers:
        for record in store.records(name):
            try:
                changed(Event("ADDED", record, None))
            except Exception:  # one object must not keep the server from starting
                where = f"{name} {record.namespace}/{record.name}"
                log.exception("object not understood", extra={"object": where})
    # Nothing is written between the loop above and this line, because nothing awaits.
    store.on_change(changed)
