"""Judges what `look.py` found. Pure: each check is a function, and CHECKS lists them all."""

import base64
import datetime
import re
from collections.abc import Callable, Iterator

from cryptography import x509

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ENV_VISIBLE_DEVICES,
    SCHEDULER_LEASE,
    SCHEDULER_NAME,
)
from gpupool.contract.overlooked import MENDS, is_overlooked
from gpupool.doctor.alike import Saying, grouped, some_of
from gpupool.doctor.bypass_checks import cards_by_environment, devices_by_annotation
from gpupool.doctor.evidence import Evidence, Finding, Level
from gpupool.doctor.node_checks import cards, inventory_text
from gpupool.doctor.way_checks import mixed_ways
from kubeclient.objects import Obj
from kubeclient.times import moment_of

OLDEST = (1, 31)
_CLOCK_S = 5.0
_SOON = datetime.timedelta(days=14)
_ENDED = ("Succeeded", "Failed")
_OTHER_PLUGIN = "nvidia-device-plugin"
_EXTENDER, _PROGRAM = "gpupool-extender", "app.kubernetes.io/name"
_PART_OF, _VERSION = "app.kubernetes.io/part-of", "app.kubernetes.io/version"  # labels of the chart


def judge(evidence: Evidence) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(evidence)]


def wrong(about: str, what: str, mend: str) -> Finding:
    return Finding(Level.WRONG, about, what, mend)


def note(about: str, what: str, mend: str = "") -> Finding:
    return Finding(Level.NOTE, about, what, mend)


def server_version(evidence: Evidence) -> Iterator[Finding]:
    if not _is_recent(evidence.version):
        what = f"Kubernetes is {evidence.version or 'of an unknown version'}; wanted 1.31 or newer."
        yield wrong("version", what, "Upgrade the cluster.")
    else:
        yield Finding(Level.OK, "version", f"Kubernetes {evidence.version}.")


def kubelet_versions(evidence: Evidence) -> Iterator[Finding]:
    old: list[tuple[Saying, str]] = []
    for node in evidence.nodes:
        info = (node.get("status") or {}).get("nodeInfo") or {}
        if inventory_text(node) and not _is_recent(version := info.get("kubeletVersion", "v0.0")):
            saying = Saying(
                Level.WRONG,
                "version",
                one=f"The kubelet of node {{}} is {version}; wanted 1.31 or newer.",
                many=f"The kubelets of {{}} nodes are {version}, and 1.31 or newer is wanted",
                mend="Upgrade the node.",
            )
            old.append((saying, _name(node)))
    yield from grouped(old)


def own_versions(evidence: Evidence) -> Iterator[Finding]:
    ours = [pod for pod in evidence.pods if _labels(pod).get(_PART_OF) == "gpupool" and _lives(pod)]
    versions = sorted({str(_labels(pod).get(_VERSION, "none")) for pod in ours})
    if len(versions) > 1:
        what = f"Programs of gpupool run in different versions: {', '.join(versions)}."
        yield note("version", what, "Right only during an upgrade; else: helm upgrade.")


def _is_recent(version: str) -> bool:
    found = re.match(r"v(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST


def may_look(evidence: Evidence) -> Iterator[Finding]:
    for refusal in evidence.unseen:
        yield note("rights", f"Not everything was looked at: {refusal}", "Ask as an administrator.")


def programs_may_act(evidence: Evidence) -> Iterator[Finding]:
    for right in evidence.rights:
        if not right.allowed:
            what = f"The service account {right.account} may not {right.verb} {right.resource}."
            yield wrong("rights", what, "Install the chart's roles again: helm upgrade.")


def webhook(evidence: Evidence) -> Iterator[Finding]:
    """Uses the trial pod, which took the same way through the API server as a user's pod."""
    mend = "See that the pods of gpupool-admission run; they register themselves within a minute."
    if len(evidence.webhooks) < 2:
        # The chart creates them; admission itself may only fill them in.
        what = "A webhook configuration gpupool-admission is missing."
        yield wrong("webhook", what, "Let Helm create it again (helm upgrade), then: " + mend)
    elif not all(configuration.get("webhooks") for configuration in evidence.webhooks):
        yield wrong("webhook", "gpupool-admission is not registered with the API server.", mend)
    if evidence.trial_error:
        yield from _refused_trial(evidence.trial_error)
    elif evidence.trial is not None and not _is_wired(evidence.trial):
        yield wrong("webhook", "GPU pods miss admission, and will see no card.", mend)
    elif evidence.trial is not None:
        yield Finding(Level.OK, "webhook", "GPU pods are wired to their allocation.")


def _refused_trial(error: str) -> Iterator[Finding]:
    # The words with which the API server begins when it cannot reach a webhook at all. Other
    # refusals may come from quotas or policies.
    if "failed calling webhook" in error:
        mend = "See that its pods run and that the API server reaches them (network policies)."
        yield wrong("webhook", f"The API server cannot ask gpupool-admission: {error}", mend)
    else:
        yield note("webhook", f"A pod for trial was refused, which may be right: {error}")


def _is_wired(pod: Obj) -> bool:
    variables = pod["spec"]["containers"][0].get("env") or ()
    return any(each["name"] == ENV_VISIBLE_DEVICES and "valueFrom" in each for each in variables)


def certificate(evidence: Evidence) -> Iterator[Finding]:
    mend = "Delete the Secret gpupool-admission and its pods; they make a new authority."
    for configuration in evidence.webhooks:
        kind = configuration.get("kind", "")
        if not configuration.get("webhooks"):
            continue  # as the chart creates it; `webhook` reports that
        bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"].get("caBundle", ""))
        try:
            trusted = x509.load_pem_x509_certificates(bundle)
        except ValueError:
            yield wrong("certificate", f"The caBundle of the {kind} cannot be read.", mend)
            continue
        if evidence.authority_pem and evidence.authority_pem != bundle:
            what = f"The {kind} trusts another authority than the Secret has."
            yield wrong("certificate", what, "Start the pods of gpupool-admission again.")
        # The latest end: after a rotation the bundle also holds the old authority, which ends
        # earlier.
        end = max(each.not_valid_after_utc for each in trusted)
        if end < evidence.now + _SOON:
            yield wrong("certificate", f"What the {kind} trusts ends on {end:%Y-%m-%d}.", mend)


def scheduler(evidence: Evidence) -> Iterator[Finding]:
    server_now = _server_now(evidence)
    leads = _is_fresh(evidence.lease, server_now)
    if leads:
        holder = evidence.lease["spec"]["holderIdentity"]
        yield Finding(Level.OK, "scheduler", f"{holder} decides about the GPUs.")
    waiting = [pod for pod in evidence.pods if is_overlooked(pod, server_now)]
    for name, mend in MENDS.items():
        theirs = [_name(pod) for pod in waiting if pod["spec"]["schedulerName"] == name]
        if theirs:
            some = some_of(theirs)
            what = f"{len(theirs)} pods of {name} wait, and nobody looks at them: {some}."
            yield wrong("scheduler", what, mend)
    if not waiting and not leads:
        what = f"No scheduler and no extender of gpupool holds the Lease {SCHEDULER_LEASE}."
        yield note("scheduler", what, MENDS[SCHEDULER_NAME])


def extender_callers(evidence: Evidence) -> Iterator[Finding]:
    for pod in evidence.pods:
        if _labels(pod).get(_PROGRAM) == _EXTENDER and _lives(pod):
            said = [text for each in pod["spec"]["containers"] for text in each.get("args") or ()]
            if not any(text.startswith("--client-ca") for text in said):
                what = (
                    f"{_name(pod)} answers whoever reaches its port, also who wants to bind pods."
                )
                mend = (
                    "Let kube-scheduler show a certificate, then: extender.knownCallersOnly=true."
                )
                yield note("extender", what, mend)


def _server_now(evidence: Evidence) -> datetime.datetime:
    # The API server stamped the trial pod. Ages of its objects must be judged by its clock, not by
    # that of this machine.
    created = ((evidence.trial or {}).get("metadata") or {}).get("creationTimestamp")
    return moment_of(created) if created else evidence.now


def _is_fresh(lease: Obj, now: datetime.datetime) -> bool:
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    age_s = (now - moment_of(spec["renewTime"])).total_seconds()
    return age_s < 2 * int(spec["leaseDurationSeconds"])


def clock(evidence: Evidence) -> Iterator[Finding]:
    off_s = (evidence.now - _server_now(evidence)).total_seconds()
    if abs(off_s) > _CLOCK_S:
        what = f"This machine's clock and the API server's are {abs(off_s):.0f} s apart."
        yield note("clock", what, "Certificates and ages will look wrong; run NTP on both.")
    off = {
        f"{lease['spec'].get('holderIdentity')} by {off_s:+.0f} s": off_s
        for lease in (evidence.lease, *evidence.node_leases)
        if lease and abs(off_s := _off_s(lease)) > _CLOCK_S
    }
    if off:
        some = some_of(list(off))
        what = f"{len(off)} clocks differ from the API server's: {some}."
        yield note("clock", what, "Tokens and ages are judged wrongly there; run NTP on them.")


def _off_s(lease: Obj) -> float:
    """How far the holder's clock is ahead of the API server's: renewTime is by the holder's clock,
    the time in managedFields by the server's, to the second."""
    written = [
        each["time"] for each in lease["metadata"].get("managedFields") or () if "time" in each
    ]
    stated = lease["spec"].get("renewTime")
    if not stated or not written:
        return 0.0
    return (moment_of(stated) - moment_of(max(written))).total_seconds()


def runtime_class(evidence: Evidence) -> Iterator[Finding]:
    """The agents' runtime class makes the driver visible where the default runtime does not."""
    spec = ((evidence.agents.get("spec") or {}).get("template") or {}).get("spec") or {}
    wanted = spec.get("runtimeClassName")
    known = {_name(each) for each in evidence.runtime_classes}
    nvidia = [_name(each) for each in evidence.runtime_classes if each.get("handler") == "nvidia"]
    if wanted and wanted not in known:
        what = f"The agents ask for the runtime class {wanted}, and there is none of that name."
        mend = "Let NVIDIA's toolkit make it, or name another: agent.runtimeClassName."
        yield wrong("runtime class", what, mend)
    elif wanted:
        yield Finding(Level.OK, "runtime class", f"The agents run with {wanted}.")
    elif evidence.agents and nvidia and not any(map(inventory_text, evidence.nodes)):
        what = f"No agent sees a card, and none runs with the runtime class {nvidia[0]}."
        yield note("runtime class", what, f"Set agent.runtimeClassName={nvidia[0]}.")


def other_plugins(evidence: Evidence) -> Iterator[Finding]:
    ours = {_name(node) for node in evidence.nodes if inventory_text(node)}
    saying = Saying(
        Level.WRONG,
        "nodes",
        one="NVIDIA's device plugin runs beside ours: {}.",
        many="{} pods of NVIDIA's device plugin run beside ours",
        mend="The last to register wins. Keep it off, or set agent.wholeCards=false.",
    )
    yield from grouped(
        (saying, f"{_name(pod)} on node {node}")
        for pod in evidence.pods
        if (node := pod["spec"].get("nodeName", "")) in ours
        and _OTHER_PLUGIN in pod["metadata"]["name"]
        and _lives(pod)
    )


def pods_without_allocation(evidence: Evidence) -> Iterator[Finding]:
    yield from grouped(
        (_unread(pod, unread.why), _name(pod))
        for pod in evidence.pods
        if pod["spec"].get("nodeName")
        and _lives(pod)
        and (unread := held_allocation(pod, gpu_asks(pod).asks).unread) is not None
    )


def _unread(pod: Obj, why: str) -> Saying:
    closed = "no other pod gets the cards that {}"
    if ANNOTATION_ALLOCATION not in (pod["metadata"].get("annotations") or {}):
        unless = "unless another device plugin gave"
        return Saying(
            Level.WRONG,
            "pods",
            one=f"Pod {{}} came to its node without an allocation, and sees no card {unless} it "
            f"one; {closed.format('it may hold')}.",
            many=f"{{}} pods came to their nodes without an allocation, and see no card {unless} "
            f"them one; {closed.format('they may hold')}",
            mend="Delete it and create it again, without spec.nodeName.",
        )
    return Saying(
        Level.WRONG,
        "pods",
        one=f"Which cards pod {{}} holds cannot be read ({why}); {closed.format('it may hold')}.",
        many=f"Which cards {{}} pods hold cannot be read ({why}); {closed.format('they may hold')}",
        mend="Delete it and create it again, or run the version of gpupool that placed it.",
    )


def _lives(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") not in _ENDED


def _name(obj: Obj) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _labels(obj: Obj) -> Obj:
    labels: Obj = obj["metadata"].get("labels") or {}
    return labels


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    server_version,
    kubelet_versions,
    own_versions,
    may_look,
    programs_may_act,
    webhook,
    certificate,
    scheduler,
    extender_callers,
    clock,
    cards,
    mixed_ways,
    runtime_class,
    other_plugins,
    pods_without_allocation,
    devices_by_annotation,
    cards_by_environment,
)
