"""The cluster's own kubeconfig: who reads it is the administrator.

Cluster, user and context share one name (`Names.kubeconfig_entry`), and carry an extension that
says who wrote them (`Names.kubeconfig_extension`).
"""

import base64
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kubeclient.objects import Obj
from kubeclient.yaml_writing import dump_yaml
from localkube.data_directory import read_private, write_private
from localkube.names import Names


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    cluster: str
    server: str  # "https://127.0.0.1:6443"
    ca_pem: bytes
    token: str
    names: Names = field(default_factory=Names)

    @property
    def entry(self) -> str:
        return self.names.kubeconfig_entry(self.cluster)

    def __repr__(self) -> str:
        return f"Kubeconfig({self.cluster!r}, {self.server!r})"  # the token is for files only


def render(kubeconfig: Kubeconfig) -> bytes:
    config: Obj = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": kubeconfig.entry,
    }
    config |= {key: [entry] for key, entry in entries(kubeconfig).items()}
    return dump_yaml(config).encode()


def write(path: Path, kubeconfig: Kubeconfig) -> None:
    data = render(kubeconfig)
    if read_private(path) != data:
        write_private(path, data)


def read_token(path: Path) -> str:
    """The token in a kubeconfig that `write` has written; "" if there is none to be read."""
    try:
        config = yaml.load(read_private(path) or b"", yaml.CSafeLoader)
        return str(config["users"][0]["user"]["token"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return ""


def entries(kubeconfig: Kubeconfig) -> dict[str, Obj]:
    """What it has under `clusters`, `users` and `contexts`."""
    name = kubeconfig.entry
    ca = base64.b64encode(kubeconfig.ca_pem).decode()
    cluster = {"server": kubeconfig.server, "certificate-authority-data": ca, **_mark(kubeconfig)}
    return {
        "clusters": {"name": name, "cluster": cluster},
        "users": {"name": name, "user": {"token": kubeconfig.token}},
        "contexts": {
            "name": name,
            "context": {"cluster": name, "user": name, **_mark(kubeconfig)},
        },
    }


def _mark(kubeconfig: Kubeconfig) -> Obj:
    """A new dictionary each time: YAML would write one that is used twice as anchor and alias."""
    return {
        "extensions": [
            {
                "name": kubeconfig.names.kubeconfig_extension,
                "extension": {"cluster": kubeconfig.cluster},
            }
        ]
    }
