"""A Kubernetes object as the programs pass it around: parsed JSON."""

from typing import Any, TypeAlias

# Kubernetes objects are open-ended: CRDs and new fields must survive a round trip, so the
# programs that move whole objects keep them as parsed JSON and check them against schemas.
Obj: TypeAlias = dict[str, Any]
