"""run_admission: makes the certificate, registers the webhook, and serves until cancelled."""

import asyncio
import importlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from gpupool.admission.cards import ClusterCards, cluster_cards
from gpupool.admission.foreign.systems import AUTO
from gpupool.admission.identity import Identity
from gpupool.admission.neighbours import Neighbours
from gpupool.admission.registration import (
    ALLOCATION_PATH,
    HINTS_PATH,
    PATHS_PATH,
    POD_PATH,
    VISIBLE_PATH,
    Reach,
    register,
)
from gpupool.admission.review import (
    Rules,
    review_allocation,
    review_hints,
    review_paths,
    review_pod,
    review_visible,
)
from gpupool.contract.nodes import node_of
from gpupool.core.nodes import NodeInfo
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES

log = logging.getLogger(__name__)

# How often certificates and registration are checked. If somebody deletes the registration, GPU
# pods created meanwhile miss admission and see no card, so the interval must be short. It is also
# the time that API servers have to read a new CA bundle before we show certificates of it.
_CHECK_S = 60.0
_RETRY_S = 10.0


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    rules: Rules
    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    service: str = ""  # the Service by which the API server reaches us; empty: our own address
    namespace: str = "kube-system"
    secret: str = "gpupool-admission"
    translate: str = AUTO  # of other systems' words: one of foreign.systems.SETTINGS
    hide_unrequested: bool = False  # cards from pods that have not asked for any


class Cards:
    """The cluster's cards now, from a mirror of its nodes; calculated again only after changes."""

    def __init__(self, nodes: Mirror) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._known: ClusterCards | None = ClusterCards()
        nodes.on_change(self._take)

    def _take(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._nodes[new["metadata"]["name"]] = node_of(new)
        elif old is not None:
            self._nodes.pop(old["metadata"]["name"], None)
        # Calculated by the next review, not with each of the many changes of nodes.
        self._known = None

    def now(self) -> ClusterCards:
        if self._known is None:
            self._known = cluster_cards(self._nodes.values())
        return self._known


async def run_admission(
    kube: Kube, settings: AdmissionSettings, *, ready: Callable[[int], None]
) -> None:
    """Serves until cancelled. `ready` is called with the port each time we have registered.

    The HTTP library takes a third of a second to load. It is loaded after the registration, while
    the socket listens already: calls that come meanwhile wait in its backlog.
    """
    mirror = Mirror(kube, NODES)
    cards = Cards(mirror)
    neighbours = Neighbours(mirror, settings.translate)
    identity = Identity(kube, settings.namespace, settings.secret, _names(settings))
    # Opened before the registration, because the registered URL contains the port.
    with listening_on(settings.host, settings.port) as listening:
        port: int = listening.getsockname()[1]
        is_registered = asyncio.Event()

        def registered() -> None:
            is_registered.set()
            ready(port)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(mirror.run())
            # Before the registration: while no nodes are known, no request is found too large.
            await mirror.wait_synced()
            tasks.create_task(
                _keep_registered(kube, settings, identity, neighbours, port, registered)
            )
            await is_registered.wait()
            # In a thread, because in a local cluster the API server runs in the same event loop.
            await asyncio.to_thread(importlib.import_module, "gpupool.admission.server")
            from gpupool.admission.server import serve

            rules = settings.rules
            reviews = {
                POD_PATH: lambda review: review_pod(
                    review, rules, cards.now(), neighbours.understood()
                ),
                ALLOCATION_PATH: lambda review: review_allocation(review, rules),
                PATHS_PATH: review_paths,
                VISIBLE_PATH: review_visible,
                HINTS_PATH: lambda review: review_hints(
                    review, cards.now(), neighbours.understood(), neighbours.running()
                ),
            }
            await serve(listening, identity.context, reviews)


def listening_on(host: str, port: int) -> socket.socket:
    """Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # Loads the HTTP library, for which a start has no time.
        from gpupool.health import Address, CannotListen

        raise CannotListen(Address(host, port), error) from error


async def _keep_registered(
    kube: Kube,
    settings: AdmissionSettings,
    identity: Identity,
    neighbours: Neighbours,
    port: int,
    registered: Callable[[], None],
) -> None:
    """Renews the certificate and the registration, again and again until cancelled."""
    reach, schedulers = _reach(settings, port), settings.rules.schedulers
    # Our agents, and what keeps the nodes, look at all cards.
    platform = sorted({"kube-system", settings.namespace})
    hide_from = platform if settings.hide_unrequested else None
    while True:
        try:
            bundle_pem = await identity.refresh()
            await neighbours.look(kube)
            systems = neighbours.understood()
            await register(kube, reach, bundle_pem, schedulers, systems, hide_from=hide_from)
        # BadAuthority is not caught: only a person can repair the Secret.
        except KubeError as error:
            log.warning("not registered, trying again", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_S)
        else:
            identity.registered(bundle_pem)
            registered()
            await asyncio.sleep(_CHECK_S)


def _names(settings: AdmissionSettings) -> list[str]:
    if not settings.service:
        return [settings.host]
    full = f"{settings.service}.{settings.namespace}.svc"
    return [full, f"{full}.cluster.local"]


def _reach(settings: AdmissionSettings, port: int) -> Reach:
    if settings.service:
        return Reach(service=settings.service, namespace=settings.namespace)
    return Reach(url=f"https://{settings.host}:{port}")
