"""All functions that an expression may call, by name."""

from localkube.apiserver.cel.authorizer import AUTHORIZER_FUNCTIONS
from localkube.apiserver.cel.collections import COLLECTION_FUNCTIONS
from localkube.apiserver.cel.conversions import CONVERSIONS
from localkube.apiserver.cel.function import Function
from localkube.apiserver.cel.quantities import QUANTITY_FUNCTIONS
from localkube.apiserver.cel.texts import TEXT_FUNCTIONS

__all__ = ["FUNCTIONS", "UNSUPPORTED", "Function"]

FUNCTIONS: dict[str, Function] = {
    **CONVERSIONS,
    **TEXT_FUNCTIONS,
    **COLLECTION_FUNCTIONS,
    **QUANTITY_FUNCTIONS,
    **AUTHORIZER_FUNCTIONS,
}
# Libraries of Kubernetes that are not here.
UNSUPPORTED = frozenset(
    {
        *("url", "isURL", "find", "findAll", "ip", "isIP", "cidr", "isCIDR", "format.named"),
        *("semver", "isSemver"),
    }
)
