"""The variables that admission offers to expressions, and their types."""

from collections.abc import Mapping

from localkube.apiserver.cel.authorizer import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE
from localkube.apiserver.cel.program import Program, compiled
from localkube.apiserver.cel.types import BOOL, DYN, INT, LIST, MAP, STRING, UNKNOWN, Struct, Type
from localkube.apiserver.cel.types import type_text as _text

NULL = "null_type"


def _struct(called: str, /, **fields: Type) -> Struct:
    return Struct(f"kubernetes.{called}", fields)


_KIND = _struct("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _struct("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_REQUEST = _struct(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_struct("UserInfo", username=STRING, uid=STRING, groups=LIST, extra=MAP),
    dryRun=BOOL,
    options=DYN,
)
_NAMESPACE = _struct(
    "Namespace",
    metadata=_struct(
        "NamespaceMetadata",
        name=STRING,
        generateName=STRING,
        namespace=STRING,
        labels=MAP,
        annotations=MAP,
        UID=STRING,
        creationTimestamp=DYN,
        deletionGracePeriodSeconds=INT,
        deletionTimestamp=DYN,
        generation=INT,
        resourceVersion=STRING,
        finalizers=LIST,
    ),
    spec=_struct("NamespaceSpec", finalizers=LIST),
    status=_struct("NamespaceStatus", phase=STRING),
)
_ALWAYS: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": _REQUEST,
    "namespaceObject": _NAMESPACE,
}


class WrongType(Exception):
    """The expression has a value of a type that is not wanted here."""


def admission_program(
    expression: str,
    wanted: tuple[str, ...] = (),
    *,
    params: bool = False,
    authorizer: bool = False,
    variables: Mapping[str, Type] | None = None,
) -> Program:
    """`wanted`: the types that its value may have; any if empty. Raises CompileError, WrongType."""
    declared = dict(_ALWAYS)
    if params:
        declared["params"] = DYN
    if authorizer:
        declared |= {
            "authorizer": AUTHORIZER_TYPE,
            "authorizer.requestResource": RESOURCE_CHECK_TYPE,
        }
    if variables is not None:
        declared["variables"] = Struct("kubernetes.variables", variables)
    program = compiled(expression, declared)
    if wanted and program.type not in (*wanted, UNKNOWN):
        found = _text(program.type)
        if len(wanted) == 1:
            raise WrongType(f"must evaluate to {wanted[0]} but got {found}")
        raise WrongType(f"must evaluate to one of [{' '.join(wanted)}] but got {found}")
    return program
