"""The cluster's own kubeconfig: who reads it is the administrator.

Cluster, user and context have one name: gpupool-<cluster>. kubeconfig_merge.py puts the same
entries into somebody else's file.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import yaml

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.security.data_directory import read_private, write_private

# An extension by this name says that an entry is ours, whatever its name.
MARK = "gpupool.io/cluster"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    cluster: str
    server: str  # "https://127.0.0.1:6443"
    ca_pem: bytes
    token: str

    def __repr__(self) -> str:
        return f"Kubeconfig({self.cluster!r}, {self.server!r})"  # the token is for files only


def entry_name(cluster: str) -> str:
    return f"gpupool-{cluster}"


def render(kubeconfig: Kubeconfig) -> bytes:
    config: Obj = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": entry_name(kubeconfig.cluster),
    }
    config |= {key: [entry] for key, entry in entries(kubeconfig).items()}
    return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, encoding="utf-8")


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
    name = entry_name(kubeconfig.cluster)
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
    """A new one each time: of one that is used twice, YAML makes an anchor and an alias."""
    return {"extensions": [{"name": MARK, "extension": {"cluster": kubeconfig.cluster}}]}
