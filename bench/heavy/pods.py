"""Pods with too much of something."""

from collections.abc import Callable

from bench.heavy.bodies import (
    CORE,
    DRY,
    JSON,
    PROTOBUF,
    Heavy,
    Named,
    containers,
    environment,
    json_bytes,
    pod_body,
    pod_of,
    ports,
    proto_field,
    protobuf_pod,
)


def pods() -> Named:
    pods = f"{CORE}/pods{DRY}"

    def pod(body: Callable[[], bytes], media: str = JSON) -> Callable[[], Heavy]:
        return lambda: Heavy("POST", pods, body(), media)

    yield (
        "pod of 100,000 containers",
        pod(lambda: pod_of(lambda n: b'{"name":"c%d","image":"i"}' % n)),
    )
    yield "pod of empty containers", pod(lambda: pod_of(lambda n: b"{}"))
    yield "pod of equal containers", pod(lambda: pod_of(lambda n: b'{"name":"a","image":"b"}'))
    yield "pod of numbers for containers", pod(lambda: pod_of(lambda n: b"1"))
    yield "pod of 30,000 containers", pod(lambda: pod_body(containers=containers(30_000)))
    yield "pod of 48,000 empty containers", pod(lambda: pod_body(containers=[{}] * 48_000))
    yield "pod of 90,000 numbers for containers", pod(lambda: pod_body(containers=[1] * 90_000))
    yield (
        "pod with 30,000 variables",
        pod(lambda: pod_body(containers=[{"name": "c", "image": "i", "env": environment(30_000)}])),
    )
    yield (
        "pod with 30,000 ports",
        pod(lambda: pod_body(containers=[{"name": "c", "image": "i", "ports": ports(30_000)}])),
    )
    yield (
        "pod with 25,000 volumes",
        pod(lambda: pod_body(volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(25_000)])),
    )
    yield (
        "pod with 30,000 tolerations",
        pod(
            lambda: pod_body(
                tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(30_000)]
            )
        ),
    )
    yield (
        "pod with 60,000 labels",
        pod(
            lambda: json_bytes(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "heavy", "labels": {f"l{n}": "v" for n in range(60_000)}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
            )
        ),
    )
    yield "pod in protobuf, empty containers", pod(lambda: protobuf_pod(b""), PROTOBUF)
    yield (
        "pod in protobuf, named containers",
        pod(lambda: protobuf_pod(proto_field(1, b"c") + proto_field(2, b"i")), PROTOBUF),
    )
