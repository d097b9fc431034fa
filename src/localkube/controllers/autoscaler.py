"""The HorizontalPodAutoscaler controller: sizes a workload by its load, every 15 seconds."""

import datetime
from dataclasses import dataclass, field

from kubeclient.errors import KubeError, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.quantity import NANOS_PER_MILLI, Format, milli_value, of_nanos, parse
from kubeclient.resources import AUTOSCALERS, PODS, Resource
from kubeclient.selectors import SelectorError, parse_label_selector
from localkube.controllers import autoscaler_limits, autoscaler_metrics
from localkube.controllers.autoscaler_limits import Past, ScaleHistory
from localkube.controllers.autoscaler_metrics import NoMetric, Proposal, Target
from localkube.controllers.pods import is_terminating, stamp
from localkube.controllers.run import Context, Controller, Watch
from localkube.controllers.selecting import add_pod_index, selected_pods

PERIOD_S = 15.0
_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods"
_CUSTOM = "no custom metrics API (custom.metrics.k8s.io) registered"
_EXTERNAL = "no external metrics API (external.metrics.k8s.io) registered"


@dataclass(slots=True)
class _Watched:
    """The state of an autoscaler between two reconciles."""

    uid: str
    spec: Obj
    looked: datetime.datetime
    history: ScaleHistory = field(default_factory=ScaleHistory)


def controller() -> Controller:
    watched: dict[Key, _Watched] = {}

    async def reconcile(key: Key, context: Context) -> float | None:
        hpa = context.of(AUTOSCALERS).get(key[1], key[0])
        if hpa is None or is_terminating(hpa):
            watched.pop(key, None)
            return None
        uid, spec, now = hpa["metadata"]["uid"], hpa["spec"], context.now()
        known = watched.get(key)
        if known is None or known.uid != uid:
            known = watched[key] = _Watched(uid, spec, now)
        elif known.spec == spec:
            wait_s = PERIOD_S - (now - known.looked).total_seconds()
            if wait_s > 0:
                return wait_s  # the change was our own write of the status
        known.spec, known.looked = spec, now
        await _Autoscaler(hpa, context, known.history).step()
        return PERIOD_S

    return Controller(
        "horizontal-pod-autoscaler",
        (Watch(AUTOSCALERS),),
        reconcile,
        reads=(PODS,),
        add_indexes=add_pod_index,
    )


class _Unable(Exception):
    """No decision is possible; the message says why."""


class _Autoscaler:
    """One reconcile of one autoscaler."""

    def __init__(self, hpa: Obj, context: Context, history: ScaleHistory) -> None:
        self.hpa = hpa
        self.spec = hpa["spec"]
        self.context = context
        self.history = history
        self.now = context.now()
        status = hpa.get("status", {})
        self.conditions = {c["type"]: c for c in status.get("conditions") or ()}
        self.metrics: list[Obj] = []
        self.current: int = status.get("currentReplicas", 0)
        self.desired: int = status.get("desiredReplicas", 0)
        self.last_scale: str | None = status.get("lastScaleTime")

    async def step(self) -> None:
        try:
            target = await self._target()
            scale = await self._scale(target)
            await self._decide(target, scale)
        except _Unable:
            pass
        await self._write_status()

    def _say(self, kind: str, reason: str, text: str) -> None:
        self.context.events.event(self.hpa, kind, reason, text)

    def _put(self, kind: str, status: bool, reason: str, message: str) -> None:
        known = self.conditions.get(kind)
        text = "True" if status else "False"
        kept = known.get("lastTransitionTime") if known and known["status"] == text else None
        self.conditions[kind] = {
            "type": kind,
            "status": text,
            "lastTransitionTime": kept or stamp(self.now),
            "reason": reason,
            "message": message,
        }

    # -- the target ----------------------------------------------------------------------------

    async def _target(self) -> Resource:
        """The resource of the kind in scaleTargetRef."""
        reference = self.spec["scaleTargetRef"]
        api_version, kind = reference.get("apiVersion") or "v1", reference["kind"]
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{api_version}" if group else f"/api/{version}"
        try:
            listed = (await self.context.kube.page(path))["resources"]
        except NotFound:
            listed = []
        for row in listed:
            if row["kind"] == kind and "/" not in row["name"]:
                return Resource(group, version, row["name"], kind, row["namespaced"])
        self._no_scale(f'no matches for kind "{kind}" in group "{group}"')
        raise _Unable

    async def _scale(self, target: Resource) -> Obj:
        path = target.path(
            self.hpa["metadata"]["namespace"], self.spec["scaleTargetRef"]["name"], "scale"
        )
        try:
            scale = await self.context.kube.page(path)
        except KubeError as error:
            self._no_scale(str(error))
            raise _Unable from error
        text = "the HPA controller was able to get the target's current scale"
        self._put("AbleToScale", True, "SucceededGetScale", text)
        return scale

    def _no_scale(self, why: str) -> None:
        self._say(WARNING, "FailedGetScale", why)
        text = f"the HPA controller was unable to get the target's current scale: {why}"
        self._put("AbleToScale", False, "FailedGetScale", text)

    # -- the size ------------------------------------------------------------------------------

    async def _decide(self, target: Resource, scale: Obj) -> None:
        current = self.current = scale["spec"].get("replicas", 0)
        least, most = self.spec.get("minReplicas", 1), self.spec["maxReplicas"]
        if not self.history.wishes:
            self.history.wishes.append(Past(current, self.now))
        if current == 0 and least != 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._put("ScalingActive", False, "ScalingDisabled", text)
            self.desired = 0
        elif current > most:
            why = "Current number of replicas above Spec.MaxReplicas"
            await self._rescale(target, scale, most, why)
        elif current < least:
            why = "Current number of replicas below Spec.MinReplicas"
            await self._rescale(target, scale, least, why)
        else:
            wish, metric = await self._wish(scale, current)
            size = self._limited(current, wish)
            why = f"{metric} above target" if wish > current else "All metrics below target"
            if size != current:
                await self._rescale(target, scale, size, why)
            else:
                self.desired = current

    def _limited(self, current: int, wish: int) -> int:
        allowed = autoscaler_limits.allow(self.spec, self.history, current, wish, self.now)
        self._put("AbleToScale", True, *allowed.able)
        self._put("ScalingLimited", allowed.is_limited, *allowed.limited)
        return allowed.replicas

    async def _rescale(self, target: Resource, scale: Obj, size: int, why: str) -> None:
        path = target.path(scale["metadata"]["namespace"], scale["metadata"]["name"], "scale")
        # Of the version that was judged: what somebody else has set meanwhile must not be undone.
        basis = {"resourceVersion": scale["metadata"]["resourceVersion"]}
        try:
            await self.context.kube.patch(path, {"metadata": basis, "spec": {"replicas": size}})
        except KubeError as error:
            self._say(WARNING, "FailedRescale", f"New size: {size}; reason: {why}; error: {error}")
            text = f"the HPA controller was unable to update the target scale: {error}"
            self._put("AbleToScale", False, "FailedUpdateScale", text)
            return
        text = f"the HPA controller was able to update the target scale to {size}"
        self._put("AbleToScale", True, "SucceededRescale", text)
        self._say(NORMAL, "SuccessfulRescale", f"New size: {size}; reason: {why}")
        autoscaler_limits.remember_change(self.spec, self.history, size - self.current, self.now)
        self.desired, self.last_scale = size, stamp(self.now)

    # -- the load ------------------------------------------------------------------------------

    async def _wish(self, scale: Obj, current: int) -> tuple[int, str]:
        """The largest size that a metric proposes. If a metric is missing, the others may still
        raise the size, but not lower it."""
        pods = await self._pods(scale)
        wish, name, failures = 0, "", list[tuple[str, str, str]]()
        for metric in self.spec.get("metrics") or ():
            try:
                proposal, label, shown = await self._proposal(metric, pods, current)
            except NoMetric as error:
                reason = f"FailedGet{_REASONS[metric['type']]}"
                self._say(WARNING, reason, str(error))
                failures.append((reason, str(error), _subject(metric)))
                continue
            self.metrics.append(shown)
            if not wish or proposal.replicas > wish:
                wish, name = proposal.replicas, label
        if failures and (not name or wish < current):
            self._say_no_metrics(failures)
            raise _Unable
        text = f"the HPA was able to successfully calculate a replica count from {name}"
        self._put("ScalingActive", True, "ValidMetricFound", text)
        return wish, name

    def _say_no_metrics(self, failures: list[tuple[str, str, str]]) -> None:
        reason, why, subject = failures[0]
        text = f"the HPA was unable to compute the replica count: {why}"
        self._put("ScalingActive", False, reason, text)
        count = f"{len(failures)} invalid out of {len(self.spec['metrics'])}"
        text = f"invalid metrics ({count}), first error is: failed to get {subject}: {why}"
        self._say(WARNING, "FailedComputeMetricsReplicas", text)

    async def _pods(self, scale: Obj) -> list[Obj]:
        text = scale.get("status", {}).get("selector", "")
        if not text:
            self._say(WARNING, "SelectorRequired", "selector is required")
            why = "the HPA target's scale is missing a selector"
            self._put("ScalingActive", False, "InvalidSelector", why)
            raise _Unable
        try:
            selector = parse_label_selector(text)
        except SelectorError as error:
            why = (
                f"couldn't convert selector into a corresponding internal selector object: {error}"
            )
            self._say(WARNING, "InvalidSelector", why)
            self._put("ScalingActive", False, "InvalidSelector", why)
            raise _Unable from error
        return await selected_pods(self.context, self.hpa["metadata"]["namespace"], selector)

    async def _proposal(
        self, metric: Obj, pods: list[Obj], current: int
    ) -> tuple[Proposal, str, Obj]:
        """With the metric's name, and how it stands for the status. Raises NoMetric."""
        kind = metric["type"]
        if kind not in ("Resource", "ContainerResource"):
            raise NoMetric(_unsupported(metric))
        source = metric["resource" if kind == "Resource" else "containerResource"]
        target = self._target_of(source)
        try:
            samples = await self._samples(target, pods)
            found = autoscaler_metrics.propose(current, pods, samples, target, self.now)
        except NoMetric as error:
            what = "usage" if target.utilization is None else "utilization"
            raise NoMetric(f"failed to get {target.resource} {what}: {error}") from error
        return found, _name(kind, target), _shown(kind, source, found)

    def _target_of(self, source: Obj) -> Target:
        wanted, behavior = source["target"], self.spec.get("behavior") or {}
        average = wanted.get("averageValue")
        tolerances = [
            float((behavior.get(way) or {}).get("tolerance", autoscaler_metrics.TOLERANCE))
            for way in ("scaleUp", "scaleDown")
        ]
        return Target(
            None if average else wanted.get("averageUtilization"),
            milli_value(parse(average)) if average else None,
            source["name"],
            source.get("container", ""),
            *tolerances,
        )

    async def _samples(
        self, target: Target, pods: list[Obj]
    ) -> dict[str, autoscaler_metrics.Sample]:
        path = _METRICS.format(self.hpa["metadata"]["namespace"])
        start = f"unable to get metrics for resource {target.resource}"
        try:
            listed = (await self.context.kube.page(path)).get("items") or []
        except KubeError as error:
            why = f"unable to fetch metrics from resource metrics API: {error}"
            raise NoMetric(f"{start}: {why}") from error
        ours = {pod["metadata"]["name"] for pod in pods}
        found = [metric for metric in listed if metric["metadata"]["name"] in ours]
        if not found:
            raise NoMetric(f"{start}: no metrics returned from resource metrics API")
        return autoscaler_metrics.samples_of(found, target.resource, target.container)

    async def _write_status(self) -> None:
        status: Obj = {
            "currentReplicas": self.current,
            "desiredReplicas": self.desired,
            "lastScaleTime": self.last_scale,
            "currentMetrics": self.metrics,
            "conditions": list(self.conditions.values()),
        }
        always = ("desiredReplicas", "currentMetrics", "conditions")
        status = {name: value for name, value in status.items() if value or name in always}
        if not status["currentMetrics"]:
            status["currentMetrics"] = None
        if _settled(status) != _settled(self.hpa.get("status", {})):
            await self.context.kube.update_status(AUTOSCALERS, {**self.hpa, "status": status})


_REASONS = {
    "Resource": "ResourceMetric",
    "ContainerResource": "ContainerResourceMetric",
    "Pods": "PodsMetric",
    "Object": "ObjectMetric",
    "External": "ExternalMetric",
}


def _settled(status: Obj) -> Obj:
    return {name: value for name, value in status.items() if value not in (None, [], 0)}


def _subject(metric: Obj) -> str:
    match metric["type"]:
        case "Resource":
            return f"{metric['resource']['name']} resource metric value"
        case "ContainerResource":
            return f"{metric['containerResource']['container']} container metric value"
        case "External":
            return f"{metric['external']['metric']['name']} external metric value"
        case kind:
            return f"{kind.lower()} metric value"


def _unsupported(metric: Obj) -> str:
    """The local cluster has no API for custom or external metrics, like many clusters."""
    match metric["type"]:
        case "External":
            name = metric["external"]["metric"]["name"]
            return (
                f"unable to get external metric {name}: unable to fetch metrics from external "
                f"metrics API: {_EXTERNAL}"
            )
        case kind:
            name = metric[kind.lower()]["metric"]["name"]
            why = f"unable to fetch metrics from custom metrics API: {_CUSTOM}"
            return f"unable to get metric {name}: {why}"


def _name(kind: str, target: Target) -> str:
    if target.utilization is None:
        return f"{target.resource} resource"
    of = "container resource" if kind == "ContainerResource" else "resource"
    return f"{target.resource} {of} utilization (percentage of request)"


def _shown(kind: str, source: Obj, found: Proposal) -> Obj:
    form = Format.BINARY_SI if source["name"] == "memory" else Format.DECIMAL_SI
    current: Obj = {"averageValue": of_nanos(found.average * NANOS_PER_MILLI, form).text}
    if found.utilization is not None:
        current["averageUtilization"] = found.utilization
    named = {key: source[key] for key in ("name", "container") if key in source}
    field = "resource" if kind == "Resource" else "containerResource"
    return {"type": kind, field: {**named, "current": current}}
