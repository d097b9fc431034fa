"""Kubeconfigs of API servers that tests start."""

from pathlib import Path

import yaml

from tests.conformance.api_server import Address


def written(path: Path, address: Address) -> Path:
    cluster = {
        "server": f"https://127.0.0.1:{address.port}",
        "certificate-authority": str(address.ca),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": address.token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    return path
