"""run_admission: the webhook from its first certificate to its last answer."""

import asyncio
import datetime
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from cryptography import x509

from gpupool.admission.authority import (
    is_due,
    load_certificate,
    server_context,
    shared_authority,
)
from gpupool.admission.cards import ClusterCards, NodeCards, cluster_cards, node_cards
from gpupool.admission.registration import Reach, register
from gpupool.admission.review import Rules, review_allocation, review_pod
from gpupool.admission.server import application
from gpupool.contract.objects import Obj
from gpupool.kube.client import Kube
from gpupool.kube.errors import KubeError
from gpupool.kube.mirror import Mirror
from gpupool.kube.resources import NODES

log = logging.getLogger(__name__)

# How often certificates and registration are looked at. While somebody has deleted that, GPU pods
# miss admission, and see no card.
_CHECK_S = 60.0
_RETRY_S = 10.0


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    rules: Rules
    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    service: str = ""  # how the API server reaches us; without it, by our own address
    namespace: str = "kube-system"
    secret: str = "gpupool-admission"
    owner: str = ""  # the ClusterRole with which our registration goes away


class Cards:
    """The cluster's cards as they are now, from a mirror of its nodes."""

    def __init__(self, nodes: Mirror) -> None:
        self._nodes: dict[str, NodeCards] = {}
        self._known: ClusterCards | None = ClusterCards()
        nodes.on_change(self._take)

    def _take(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._nodes[new["metadata"]["name"]] = node_cards(new)
        elif old is not None:
            self._nodes.pop(old["metadata"]["name"], None)
        self._known = None

    def now(self) -> ClusterCards:
        if self._known is None:
            self._known = cluster_cards(list(self._nodes.values()))
        return self._known


async def run_admission(
    kube: Kube, settings: AdmissionSettings, *, ready: Callable[[int], None]
) -> None:
    """Serves until cancelled. `ready` is told the port each time we are registered."""
    mirror = Mirror(kube, NODES)
    cards = Cards(mirror)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(mirror.run())
        await mirror.wait_synced()
        pods = partial(_review_pod, rules=settings.rules, cards=cards)
        allocations = partial(review_allocation, rules=settings.rules)
        runner = web.AppRunner(application(pods, allocations), access_log=None)
        await runner.setup()
        try:
            await _serve(kube, settings, runner, ready)
        finally:
            await runner.cleanup()


def _review_pod(review: Obj, rules: Rules, cards: Cards) -> Obj:
    return review_pod(review, rules, cards.now())


async def _serve(
    kube: Kube, settings: AdmissionSettings, runner: web.AppRunner, ready: Callable[[int], None]
) -> None:
    """Listens once there is a certificate; then keeps it and our registration good."""
    identity = _Identity(kube, settings)
    port = 0
    while True:
        try:
            bundle_pem = await identity.refresh()
            if not port:
                await web.TCPSite(
                    runner, settings.host, settings.port, ssl_context=identity.context
                ).start()
                port = runner.addresses[0][1]
            schedulers = settings.rules.schedulers
            await register(kube, _reach(settings, port), bundle_pem, schedulers, settings.owner)
        except KubeError as error:
            log.warning("not registered, trying again", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_S)
        else:
            ready(port)
            await asyncio.sleep(_CHECK_S)


class _Identity:
    """The certificate that we show, always good and always of the authority that all share."""

    def __init__(self, kube: Kube, settings: AdmissionSettings) -> None:
        self.context = server_context()
        self._kube = kube
        self._settings = settings
        self._shown: tuple[bytes, x509.Certificate] | None = None

    async def refresh(self) -> bytes:
        """What the API server must trust."""
        now = datetime.datetime.now(datetime.UTC)
        settings = self._settings
        authority = await shared_authority(self._kube, settings.namespace, settings.secret, now)
        bundle_pem = authority.bundle_pem
        shown = self._shown
        if shown is None or shown[0] != bundle_pem or is_due(shown[1], now):
            made = load_certificate(self.context, authority, _names(settings), now)
            self._shown = (bundle_pem, made)
        return bundle_pem


def _names(settings: AdmissionSettings) -> list[str]:
    if not settings.service:
        return [settings.host]
    full = f"{settings.service}.{settings.namespace}.svc"
    return [full, f"{full}.cluster.local"]


def _reach(settings: AdmissionSettings, port: int) -> Reach:
    if settings.service:
        return Reach(service=settings.service, namespace=settings.namespace)
    return Reach(url=f"https://{settings.host}:{port}")
