"""Jobs of a Prometheus: the one of the documents, and those that the monitors of the chart mean."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from kubeclient.objects import Obj
from testbed.cluster import Kubernetes
from testbed.installation import CHART, NAMESPACE
from tests.e2e.kubectl import Kubectl
from tests.kubernetes.chart import helm

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_META = "__meta_kubernetes_pod_"
_PAGE = Path(__file__).parent.parent.parent / "docs" / "metrics.md"


def documented_text() -> str:
    """The scrape configuration of docs/metrics.md."""
    text = _PAGE.read_text(encoding="utf-8").partition("## How to scrape")[2]
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return str(block)


def documented_job() -> Obj:
    (job,) = yaml.safe_load(documented_text())["scrape_configs"]
    return {**job, "job_name": "documented"}


def as_in_a_pod(kubernetes: Kubernetes, folder: Path, token: str) -> list[str]:
    """What goes before a command, so that it finds the API server and its token where every pod
    does. It has the files in a mount namespace of its own."""
    folder.mkdir()
    (folder / "token").write_text(token)
    (folder / "namespace").write_text("monitoring")
    (folder / "ca.crt").write_bytes(kubernetes.plane.ca_file.read_bytes())
    host, _, port = kubernetes.plane.url.removeprefix("https://").partition(":")
    script = f"""
mount -t tmpfs none /run && mkdir -p {_ACCOUNT} && cp {folder}/* {_ACCOUNT} || exit 1
export KUBERNETES_SERVICE_HOST={host} KUBERNETES_SERVICE_PORT={port}
exec "$@"
"""
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def monitor_jobs(kubernetes: Kubernetes) -> Iterator[Obj]:
    """What the Prometheus operator makes of the PodMonitors of the chart."""
    flags = "monitoring.enabled=true,monitoring.podMonitor.enabled=true"
    secret = "monitoring.tokenSecret.name=scraper,monitoring.tokenSecret.key=token"
    made = helm(kubernetes, "template", "gpupool", str(CHART), f"--set={flags},{secret}")
    for each in yaml.safe_load_all(made):
        if not each or each["kind"] != "PodMonitor":
            continue
        (end,) = each["spec"]["podMetricsEndpoints"]
        assert end["authorization"]["credentials"] == {"name": "scraper", "key": "token"}
        wanted = {
            meta_label(key): text for key, text in each["spec"]["selector"]["matchLabels"].items()
        }
        wanted[f"{_META}container_port_name"] = end["port"]
        yield {
            "job_name": f"monitor/{each['metadata']['name']}",
            "scheme": end["scheme"],
            "metrics_path": end["path"],
            "honor_labels": end["honorLabels"],
            "tls_config": {"insecure_skip_verify": end["tlsConfig"]["insecureSkipVerify"]},
            "relabel_configs": [
                {"source_labels": [label], "regex": re.escape(text), "action": "keep"}
                for label, text in wanted.items()
            ],
        }


def meta_label(key: str) -> str:
    return f"{_META}label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}"


def discovered(admin: Kubectl) -> list[Obj]:
    """Every port of every pod, as discovery by Kubernetes finds them. Debian's Prometheus is built
    without it."""
    return [
        {
            "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
            "labels": {
                f"{_META}container_port_name": port.get("name", ""),
                **{meta_label(key): text for key, text in pod["metadata"]["labels"].items()},
            },
        }
        for pod in admin.within(NAMESPACE).json("get", "pods")["items"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
    ]


def scraped_by(job: Obj, token_file: Path, targets: list[Obj]) -> Obj:
    found = {key: text for key, text in job.items() if key != "kubernetes_sd_configs"}
    token = {"credentials_file": str(token_file)}
    return {**found, "authorization": token, "static_configs": targets}
