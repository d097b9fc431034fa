"""What the server counts, in Prometheus' text form under kube-apiserver's names."""

from collections import Counter

from localkube.apiserver.store.store import Store


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: Counter[tuple[str, str, int]] = Counter()  # verb, resource, code

    def count(self, verb: str, resource: str, code: int) -> None:
        self._requests[verb, resource, code] += 1

    def text(self) -> bytes:
        lines = [
            "# HELP apiserver_request_total Counter of apiserver requests.",
            "# TYPE apiserver_request_total counter",
        ]
        for (verb, resource, code), count in sorted(self._requests.items()):
            labels = f'code="{code}",resource="{resource}",verb="{verb}"'
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        lines += [
            "# HELP apiserver_storage_objects Number of stored objects by resource.",
            "# TYPE apiserver_storage_objects gauge",
        ]
        for resource, count in sorted(self._store.counts().items()):
            lines.append(f'apiserver_storage_objects{{resource="{resource}"}} {count}')
        return ("\n".join(lines) + "\n").encode()
