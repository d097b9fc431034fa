"""For each controller a piece of work that shows that it still does its own."""

from collections.abc import Awaitable, Callable

from kubeclient import resources as r
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from localkube.controllers.volume_claims import CLASS_NAME
from tests.faults.all_controllers import AllControllers

NAMESPACE = "proof"
NODE = "proof-node"
_CONTAINER: Obj = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
_READY = [{"type": "Ready", "status": "True"}]
Proof = Callable[[AllControllers], Awaitable[None]]


def _template(app: str, restart: str = "Always") -> Obj:
    spec: Obj = {"containers": [_CONTAINER], "restartPolicy": restart}
    # The scheduler is asked only by the pod of its own proof.
    return {"metadata": {"labels": {"app": app}}, "spec": {**spec, "schedulerName": "nobody"}}


async def _make(
    cluster: AllControllers, resource: Resource, name: str, more: Obj | None = None, **parts: object
) -> Obj:
    """`more`: metadata."""
    metadata: Obj = {"name": name} | ({"namespace": NAMESPACE} if resource.namespaced else {})
    return await cluster.kube.create(resource, {"metadata": metadata | (more or {}), **parts})


async def _set_status(cluster: AllControllers, resource: Resource, name: str, status: Obj) -> None:
    namespace = NAMESPACE if resource.namespaced else ""
    await cluster.kube.patch(resource.path(namespace, name, "status"), {"status": status})


async def _workload(cluster: AllControllers, resource: Resource, name: str, **spec: object) -> Obj:
    """Its first pod."""
    selector: Obj = {"matchLabels": {"app": name}}
    spec = {"selector": selector, "template": _template(name), **spec}
    await _make(cluster, resource, name, spec=spec)
    return await cluster.made(r.PODS, NAMESPACE, app=name)


async def a_node_is_judged(cluster: AllControllers) -> None:
    """And one that is ready loses its taint, so that pods can go there."""
    await _make(cluster, r.NODES, NODE)
    ready = [{**_READY[0], "lastHeartbeatTime": "9999-01-01T00:00:00Z"}]
    offer = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    await _set_status(
        cluster, r.NODES, NODE, {"conditions": ready, "allocatable": offer, "capacity": offer}
    )
    await cluster.shows(r.NODES, NODE, "", lambda node: not node["spec"].get("taints"))


async def a_pod_is_placed(cluster: AllControllers) -> None:
    where = {"nodeSelector": {"proof": "yes"}}
    labels = {"metadata": {"labels": {"proof": "yes"}}}
    await cluster.kube.patch(r.NODES.path(name=NODE), labels)
    await _make(cluster, r.PODS, "placed", spec={"containers": [_CONTAINER], **where})
    await cluster.shows(
        r.PODS, "placed", NAMESPACE, lambda pod: pod["spec"].get("nodeName") == NODE
    )


async def the_pods_of_a_node_that_is_gone_go(cluster: AllControllers) -> None:
    spec = {"containers": [_CONTAINER], "nodeName": "nowhere"}
    await _make(cluster, r.PODS, "lost", spec=spec)
    await cluster.gone(r.PODS, "lost", NAMESPACE)


async def a_namespace_gets_its_account_and_goes(cluster: AllControllers) -> None:
    await _make(cluster, r.NAMESPACES, "fleeting")
    await cluster.made(r.SERVICE_ACCOUNTS, "fleeting", name="default")
    await cluster.made(r.CONFIG_MAPS, "fleeting", name="kube-root-ca.crt")
    await cluster.kube.delete(r.NAMESPACES, "fleeting")
    await cluster.gone(r.NAMESPACES, "fleeting")


async def workloads_make_pods(cluster: AllControllers) -> None:
    await _workload(cluster, r.DEPLOYMENTS, "deployment", replicas=1)
    await _workload(cluster, r.REPLICATION_CONTROLLERS, "rc", selector={"app": "rc"}, replicas=1)
    await _workload(cluster, r.STATEFUL_SETS, "stateful", serviceName="s", replicas=1)
    await _workload(cluster, r.DAEMON_SETS, "daemon")


async def an_autoscaler_scales(cluster: AllControllers) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}
    await _make(cluster, r.AUTOSCALERS, "hpa", spec=spec)
    await cluster.shows(
        r.DEPLOYMENTS, "deployment", NAMESPACE, lambda found: found["spec"]["replicas"] == 2
    )


async def a_job_completes_and_is_forgotten(cluster: AllControllers) -> None:
    spec: Obj = {"template": _template("job", "Never"), "ttlSecondsAfterFinished": 0}
    await _make(cluster, r.JOBS, "job", spec=spec)
    pod = await cluster.made(r.PODS, NAMESPACE, app="job")
    await _set_status(cluster, r.PODS, pod["metadata"]["name"], {"phase": "Succeeded"})
    await cluster.gone(r.JOBS, "job", NAMESPACE)


async def a_cron_job_starts_what_it_missed(cluster: AllControllers) -> None:
    job: Obj = {"spec": {"template": _template("cron", "Never")}}
    spec = {"schedule": "* * * * *", "jobTemplate": job}
    await _make(cluster, r.CRON_JOBS, "cron", spec=spec)
    # Then a minute is due, and the test need not wait for the next one.
    await _set_status(cluster, r.CRON_JOBS, "cron", {"lastScheduleTime": "2026-01-01T00:00:00Z"})
    await cluster.made(r.PODS, NAMESPACE, app="cron")


async def a_service_gets_endpoints_and_loses_them(cluster: AllControllers) -> None:
    spec: Obj = {"selector": {"app": "daemon"}, "ports": [{"port": 80}]}
    await _make(cluster, r.SERVICES, "service", spec=spec)
    pod = await cluster.made(r.PODS, NAMESPACE, app="daemon")
    running = {"phase": "Running", "conditions": _READY, "podIP": "10.0.0.7"}
    running["podIPs"] = [{"ip": "10.0.0.7"}]
    await _set_status(cluster, r.PODS, pod["metadata"]["name"], running)

    async def ready() -> bool:
        found = (await cluster.kube.list(r.ENDPOINT_SLICES, NAMESPACE)).items
        return any(each.get("endpoints") for each in found)

    async def none() -> bool:
        return not (await cluster.kube.list(r.ENDPOINT_SLICES, NAMESPACE)).items

    await cluster.until("endpoints", ready)
    await cluster.kube.delete(r.SERVICES, "service", NAMESPACE)
    await cluster.until("no endpoints", none)


async def a_load_balancer_gets_an_address(cluster: AllControllers) -> None:
    spec: Obj = {"selector": {"app": "none"}, "type": "LoadBalancer", "ports": [{"port": 7}]}
    await _make(cluster, r.SERVICES, "balanced", spec=spec)
    await cluster.shows(
        r.SERVICES, "balanced", NAMESPACE, lambda found: found["status"]["loadBalancer"]
    )
    await cluster.kube.delete(r.SERVICES, "balanced", NAMESPACE)


async def a_budget_counts_its_pods(cluster: AllControllers) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "daemon"}}}
    await _make(cluster, r.DISRUPTION_BUDGETS, "budget", spec=spec)
    await cluster.shows(
        r.DISRUPTION_BUDGETS, "budget", NAMESPACE, lambda found: found.get("status")
    )


async def a_crd_takes_its_objects_along(cluster: AllControllers) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "proofs", "kind": "Proof", "listKind": "ProofList"}
    spec = {"group": "proof.test", "scope": "Namespaced", "names": names, "versions": [version]}
    await _make(cluster, r.CRDS, "proofs.proof.test", spec=spec)
    proofs = Resource("proof.test", "v1", "proofs", "Proof")
    head = {"apiVersion": "proof.test/v1", "kind": "Proof"}
    await cluster.kube.create(proofs, {**head, "metadata": {"name": "p", "namespace": NAMESPACE}})
    await cluster.kube.delete(r.CRDS, "proofs.proof.test")
    await cluster.gone(r.CRDS, "proofs.proof.test")


async def a_claim_gets_a_volume_and_gives_it_back(cluster: AllControllers) -> None:
    spec: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": CLASS_NAME}
    spec["resources"] = {"requests": {"storage": "1Gi"}}
    await _make(cluster, r.VOLUME_CLAIMS, "claim", spec=spec)
    await cluster.shows(
        r.VOLUME_CLAIMS, "claim", NAMESPACE, lambda c: c["status"].get("phase") == "Bound"
    )
    volume = (await cluster.kube.get(r.VOLUME_CLAIMS, "claim", NAMESPACE))["spec"]["volumeName"]
    await cluster.kube.delete(r.VOLUME_CLAIMS, "claim", NAMESPACE)
    await cluster.gone(r.VOLUMES, volume)


async def what_has_no_owner_any_more_goes(cluster: AllControllers) -> None:
    owner = await _make(cluster, r.CONFIG_MAPS, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    await _make(cluster, r.CONFIG_MAPS, "owned", {"ownerReferences": [reference]})
    await cluster.kube.delete(r.CONFIG_MAPS, "owner", NAMESPACE)
    await cluster.gone(r.CONFIG_MAPS, "owned", NAMESPACE)


PROOFS: tuple[Proof, ...] = (
    a_node_is_judged,
    a_pod_is_placed,
    the_pods_of_a_node_that_is_gone_go,
    a_namespace_gets_its_account_and_goes,
    workloads_make_pods,
    an_autoscaler_scales,
    a_job_completes_and_is_forgotten,
    a_cron_job_starts_what_it_missed,
    a_service_gets_endpoints_and_loses_them,
    a_load_balancer_gets_an_address,
    a_budget_counts_its_pods,
    a_crd_takes_its_objects_along,
    a_claim_gets_a_volume_and_gives_it_back,
    what_has_no_owner_any_more_goes,
)
