"""What the controllers read of a CRD. Its schemas, which may have megabytes, they never look at."""

import msgspec

from kubeclient.objects import Obj
from kubeclient.resources import CRDS


class _Metadata(msgspec.Struct):
    name: str
    uid: str = ""
    resourceVersion: str = ""
    finalizers: list[str] = []
    deletionTimestamp: str | msgspec.UnsetType = msgspec.UNSET


class _Version(msgspec.Struct):
    name: str
    served: bool = False
    storage: bool = False


class _Spec(msgspec.Struct):
    group: str
    scope: str
    names: Obj
    versions: list[_Version]


class CrdPart(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    apiVersion: str = ""
    kind: str = ""
    status: Obj = {}


PARTS = {CRDS: CrdPart}
