"""What is on the stage (console_stage.py): objects of every kind that the console shows."""

from collections.abc import Iterator

from kubeclient.objects import Obj

NAMESPACES = ("team-a", "team-b", "research")
PODS = 22  # that there are at least, once all workloads have made theirs
SEEN_CONTAINER = "team-a/train-0/main"
_SHARE, _WHOLE = "aliyun.com/gpu-mem", "nvidia.com/gpu"
# Takes so many MiB of its card, and keeps them.
_TAKES = (
    "import sys, signal; sys.path.insert(0, '/app'); import main; cuda = main.Cuda(); "
    "[cuda.take(gpu, {mib} << 20) for gpu in cuda.gpus()]; "
    "print('loading the data set', flush=True); "
    "[print(f'step {{n}} of 9000, loss {{4 / (n + 2):.4f}}', flush=True) for n in range(40)]; "
    "signal.pause()"
)


def everything() -> Iterator[tuple[str, Obj]]:
    yield from _running()
    yield from _waiting()
    yield from _batch()
    yield from _rest()


def _container(gpus: Obj, mib: int = 0, image: str = "tensorflow-gpu-mem") -> Obj:
    made: Obj = {"name": "main", "image": image, "resources": {"limits": gpus}}
    if mib:
        made["command"] = ["python3", "-c", _TAKES.format(mib=mib)]
    return made


def _template(labels: Obj, container: Obj, pool: str = "", **spec: object) -> Obj:
    found: Obj = {"containers": [container], **spec}
    if pool:
        found["nodeSelector"] = {"cgpu.disable.isolation": {"cgpu": "false"}.get(pool, "true")}
    return {"metadata": {"labels": labels}, "spec": found}


def _workload(kind: str, name: str, replicas: int, template: Obj) -> Obj:
    spec: Obj = {
        "replicas": replicas,
        "selector": {"matchLabels": template["metadata"]["labels"]},
        "template": template,
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _apps(namespace: str, plural: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/{plural}"


def _running() -> Iterator[tuple[str, Obj]]:
    train = _template({"app": "train"}, _container({_SHARE: 6}, 4000), "cgpu")
    yield _apps("team-a", "statefulsets"), _workload("StatefulSet", "train", 3, train)
    embed = _template({"app": "embed"}, _container({_SHARE: 3}, 2600), "cgpu")
    yield _apps("team-b", "deployments"), _workload("Deployment", "embed", 3, embed)
    serve = _template({"app": "serve"}, _container({_SHARE: 4}, 3300), "cgpu-no-isolation")
    yield _apps("research", "deployments"), _workload("Deployment", "serve", 2, serve)
    whole = _template({"app": "notebook"}, _container({_WHOLE: 1}, 9000))
    yield _apps("research", "deployments"), _workload("Deployment", "notebook", 1, whole)
    idle = _template({"app": "idle"}, _container({_SHARE: 5}, image="pause"), "cgpu")
    yield _apps("team-b", "deployments"), _workload("Deployment", "idle", 1, idle)


def _pod(name: str, container: Obj, **spec: object) -> Obj:
    metadata = {"name": name, "labels": {"app": name}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def _waiting() -> Iterator[tuple[str, Obj]]:
    """For a share that is too large, for more cards than a node has, for a node that nobody has,
    for cards of a model that there is not, for more compute than is free."""
    pods = "/api/v1/namespaces/team-a/pods"
    large = _template({"app": "large"}, _container({_SHARE: 15}), "cgpu")
    yield _apps("team-a", "deployments"), _workload("Deployment", "large", 5, large)
    yield pods, _pod("eight-cards", _container({_WHOLE: 8}))
    yield pods, _pod("two-cards", _container({_WHOLE: 2}))
    yield pods, _pod("elsewhere", _container({_SHARE: 2}), nodeSelector={"disk": "nvme"})
    yield pods, _pod("processors", _container({}, image="pause") | _cpus("900"))
    picky = _pod("picky", _container({_SHARE: 2}))
    picky["metadata"]["annotations"] = {"gpupool.io/card-models": "A100"}
    yield pods, picky


def _cpus(count: str) -> Obj:
    return {"resources": {"requests": {"cpu": count}}}


def _batch() -> Iterator[tuple[str, Obj]]:
    jobs = "/apis/batch/v1/namespaces/research/jobs"
    done = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo done"]}
    failed = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo no; exit 3"]}
    for name, container in (("prepare", done), ("convert", failed)):
        spec: Obj = {"backoffLimit": 0, "template": {"spec": {"containers": [container]}}}
        spec["template"]["spec"]["restartPolicy"] = "Never"
        yield jobs, {"metadata": {"name": name}, "spec": spec}
    template = {"spec": {"containers": [done], "restartPolicy": "Never"}}
    nightly: Obj = {"schedule": "30 2 * * *", "jobTemplate": {"spec": {"template": template}}}
    path = "/apis/batch/v1/namespaces/research/cronjobs"
    yield path, {"metadata": {"name": "nightly-report"}, "spec": nightly}
    exporter = {"name": "main", "image": "pause"}
    template = _template({"app": "exporter"}, exporter)
    daemons = {"selector": {"matchLabels": {"app": "exporter"}}, "template": template}
    yield _apps("team-b", "daemonsets"), {"metadata": {"name": "exporter"}, "spec": daemons}


def _rest() -> Iterator[tuple[str, Obj]]:
    core = "/api/v1/namespaces/research"
    ports = [{"name": "http", "port": 80, "targetPort": 8888}]
    spec: Obj = {"type": "LoadBalancer", "selector": {"app": "notebook"}, "ports": ports}
    yield f"{core}/services", {"metadata": {"name": "notebook"}, "spec": spec}
    inner: Obj = {"selector": {"app": "serve"}, "ports": [{"port": 8000}]}
    yield f"{core}/services", {"metadata": {"name": "serve"}, "spec": inner}
    data = {"train.yaml": "epochs: 9\nbatch: 64\n", "classes.txt": "cat\ndog\n"}
    yield f"{core}/configmaps", {"metadata": {"name": "training"}, "data": data}
    secret = {"token": "not-a-real-one", "user": "trainer"}
    yield f"{core}/secrets", {"metadata": {"name": "registry"}, "stringData": secret}
    rule = {"minAvailable": 3, "selector": {"matchLabels": {"app": "train"}}}
    budgets = "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets"
    yield budgets, {"metadata": {"name": "train"}, "spec": rule}
