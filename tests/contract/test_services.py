"""Where a Service answers, as a link."""

from typing import Any

import pytest

from gpupool.contract.names import ANNOTATION_ADDRESS
from gpupool.contract.services import link_of
from gpupool.local.config.settings import NAMES


def service(port: int, *ingress: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", **more},
        "spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": port, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": list(ingress)}},
    }


@pytest.mark.parametrize(
    ("made", "link"),
    [
        (service(80, {"ip": "203.0.113.9"}), "http://203.0.113.9"),
        (service(8080, {"hostname": "lb.example.com"}), "http://lb.example.com:8080"),
        (service(443, {"ip": "2001:db8::1"}), "https://[2001:db8::1]"),
        (service(80), ""),
        (
            service(80, annotations={ANNOTATION_ADDRESS: "http://127.96.0.1:31000"}),
            "http://127.96.0.1:31000",
        ),
    ],
)
def test_the_link_is_what_a_browser_takes(made: dict[str, Any], link: str) -> None:
    assert link_of(made) == link


def test_the_local_cluster_writes_the_annotation_that_commands_read() -> None:
    assert NAMES.address_annotation == ANNOTATION_ADDRESS
