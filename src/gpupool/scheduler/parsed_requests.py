"""ParsedRequests: requests of pods that are being bound, so that they need not be parsed again.

Parsing is expensive, and every pod that is bound comes back by the watch, with its node.
"""

from gpupool.core.pods import PodRequest
from kubeclient.objects import Obj


class ParsedRequests:
    def __init__(self) -> None:
        self._by_uid: dict[str, tuple[int, PodRequest]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def keep(self, generation: int, request: PodRequest) -> None:
        """`generation`: of the pod's spec; 0: the API server does not set it."""
        if generation:
            self._by_uid[request.uid] = (generation, request)

    def take(self, metadata: Obj) -> PodRequest | None:
        """None: it is not known, or the pod is not the same any more, by generation and labels."""
        generation, request = self._by_uid.pop(metadata["uid"], (0, None))
        if (
            request is not None
            and generation == metadata.get("generation")
            and request.labels == (metadata.get("labels") or {})
            and "deletionTimestamp" not in metadata
        ):
            return request
        return None

    def gone(self, uid: str) -> None:
        self._by_uid.pop(uid, None)
