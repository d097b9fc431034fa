"""What each container does with its part of each card, from one sample of the driver to the next.

Pure: time comes in as an argument. A sample says what processes hold now, and how long their
kernels ran since the sample before. The peak of memory and the time of the last kernel are what the
samples together say. They begin with the first sample of a container (`watched_since_s`): what was
before, nobody knows. They are not stored, so they begin again with a new agent. Whoever keeps a
history has older samples, and can tell more.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gpupool.agent.owners import Owner, container_names
from gpupool.contract.allocation import pod_allocation
from gpupool.core.gpu import ContainerGpus, Inventory, Isolation, Wall
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.hardware.driver import Loads, Uses
from kubeclient.objects import Obj

# Without a sample for so long, kernels may have run unseen: the container is watched anew.
LONGEST_GAP_S = 60.0
_ENDED = ("Succeeded", "Failed")


class Part(NamedTuple):
    """A container and a card. Also one that has processes on the card, and was not given it."""

    uid: str
    container: str  # empty: only the pod is known
    uuid: str


class Given(NamedTuple):
    """What a container was given of a card."""

    share_mib: int
    limit_mib: int | None
    wall: Wall | None


class Work(NamedTuple):
    """What all processes of a container do on a card."""

    used_mib: int = 0
    sm_percent: int = 0


class Track(NamedTuple):
    """What is remembered of a part from one sample to the next. `_s`: of a clock that never goes
    back; `watched_since_s` is the time of day."""

    watched_since_s: float
    peak_mib: int
    busy_s: float  # when a kernel was last seen, or the first sample was taken
    seen_s: float  # of the last sample that told its memory


class Sample(NamedTuple):
    cards: tuple[CardReading, ...]
    uses: Uses
    loads: Loads
    now_s: float
    day_s: float


Tracks = Mapping[Part, Track]


class KnownPod(NamedTuple):
    """What usage needs of a pod. Made when the pod changes, and not again for each sample."""

    namespace: str
    name: str
    uid: str
    containers: Mapping[str, str]  # ids -> names
    gpus: tuple[ContainerGpus, ...]  # of containers that have not ended for good


def known_pod(pod: Obj) -> KnownPod:
    metadata = pod["metadata"]
    has_ended = (pod.get("status") or {}).get("phase") in _ENDED
    over = _ended_init_containers(pod)
    gpus = () if has_ended else pod_allocation(pod).containers
    return KnownPod(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        container_names(pod),
        tuple(each for each in gpus if each.container not in over),
    )


def _ended_init_containers(pod: Obj) -> set[str]:
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or ()
    return {each["name"] for each in statuses if "terminated" in (each.get("state") or {})}


def parts_given(pods: Iterable[KnownPod], inventory: Inventory) -> dict[Part, Given]:
    found: dict[Part, Given] = {}
    for pod in pods:
        for gpus in pod.gpus:
            wall = inventory.wall_of(pod.uid, gpus)
            for share in gpus.shares:
                part = Part(pod.uid, gpus.container, share.uuid)
                mib = share.memory_mib + (found[part].share_mib if part in found else 0)
                found[part] = Given(mib, mib if gpus.isolation is Isolation.LIMIT else None, wall)
    return found


def work_of_parts(
    sample: Sample,
    pods: Collection[KnownPod],
    given: Mapping[Part, Given],
    owner: Owner,
    container: Owner,
) -> dict[Part, Work]:
    """Processes that belong to no pod are left out."""
    by_name = {name: pod for pod in pods for name in (pod.uid, *pod.containers)}
    times = Counter((part.uid, part.uuid) for part in given)
    only = {(part.uid, part.uuid): part for part in given if times[part.uid, part.uuid] == 1}
    # A process is looked up once, however many cards it uses.
    pids = {pid for pid, *_ in _programs(sample)}
    places = {pid: _place(by_name.get(owner(pid)), container, pid) for pid in pids}
    found: dict[Part, Work] = {}
    for pid, uuid, used, percent in _programs(sample):
        place = places[pid]
        if place is None:
            continue
        uid, name = place
        # Runtimes differ in how they name cgroups. Where one container of the pod has the card, it
        # is that one.
        part = Part(uid, name, uuid) if name else only.get((uid, uuid), Part(uid, "", uuid))
        before = found.get(part, Work())
        found[part] = Work(before.used_mib + used, min(100, before.sm_percent + percent))
    return found


def _place(pod: KnownPod | None, container: Owner, pid: int) -> tuple[str, str] | None:
    """The uid of the pod and the name of the container."""
    if pod is None:
        return None
    # Looked up among the containers of its own pod only.
    return pod.uid, pod.containers.get(container(pid), "")


def _programs(sample: Sample) -> Iterable[tuple[int, str, int, int]]:
    yield from ((each.pid, each.uuid, each.used_mib, 0) for each in sample.uses.programs)
    yield from ((each.pid, each.uuid, 0, each.sm_percent) for each in sample.loads.programs)


def next_tracks(
    before: Tracks, sample: Sample, work: Mapping[Part, Work | None]
) -> dict[Part, Track]:
    """`work`: of all parts that there are; None: not known this time."""
    found = {}
    for part, done in work.items():
        track = before.get(part)
        if track is None or sample.now_s - track.seen_s > LONGEST_GAP_S:
            if done is None:
                continue
            track = Track(sample.day_s, 0, sample.now_s, sample.now_s)
        if done is not None:
            peak = max(track.peak_mib, done.used_mib)
            track = track._replace(peak_mib=peak, seen_s=sample.now_s)
        # Whoever may be busy is not called idle.
        percent = sm_percent(part, sample, work)
        if percent is None or percent > 0:
            track = track._replace(busy_s=sample.now_s)
        found[part] = track
    return found


def sm_percent(part: Part, sample: Sample, work: Mapping[Part, Work | None]) -> int | None:
    done = work.get(part)
    if part.uuid in sample.loads.told:
        return done.sm_percent if done is not None else None
    # The driver does not tell it by process. It tells the card's, and that is enough where the card
    # is idle, or where all processes on it belong to this container.
    card = next((card for card in sample.cards if card.uuid == part.uuid), None)
    if done is None or card is None or part.uuid not in sample.uses.read:
        return None
    users = [
        each for each, other in work.items() if each.uuid == part.uuid and other and other.used_mib
    ]
    if part not in users:
        return 0
    ours = done.used_mib
    everybody = sum(each.used_mib for each in sample.uses.programs if each.uuid == part.uuid)
    return card.sm_percent if card.sm_percent == 0 or ours == everybody else None


def container_uses(
    card: CardReading,
    sample: Sample,
    pods: Mapping[str, KnownPod],
    given: Mapping[Part, Given],
    work: Mapping[Part, Work | None],
    tracks: Tracks,
) -> tuple[ContainerUse, ...]:
    """Of one card, sorted. `pods`: by uid."""
    found = []
    total = sum(each.sm_percent for each in sample.loads.programs if each.uuid == card.uuid)
    for part, done in work.items():
        if part.uuid != card.uuid:
            continue
        share, track = given.get(part), tracks.get(part)
        percent = sm_percent(part, sample, work)
        pod = pods[part.uid]
        found.append(
            ContainerUse(
                pod.namespace,
                pod.name,
                part.container,
                None if done is None else done.used_mib,
                part.uid,
                None if share is None else share.share_mib,
                None if share is None else share.limit_mib,
                None if share is None else share.wall,
                None if track is None else track.peak_mib,
                percent,
                None if track is None or percent is None else sample.now_s - track.busy_s,
                _power_mw(card, percent, total),
                None if track is None else track.watched_since_s,
            )
        )
    return tuple(sorted(found, key=lambda use: (use.namespace, use.pod, use.container)))


def _power_mw(card: CardReading, percent: int | None, total: int) -> int | None:
    """The card's power, divided by how long kernels ran. What an idle card draws is nobody's."""
    if card.power_mw is None or percent is None:
        return None
    return card.power_mw * percent // max(total, percent, 1)
