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
# Libraries of Kubernetes that are not here, with the methods of their values: a rule may call one
# of these on what it got elsewhere, such as a variable.
UNSUPPORTED = frozenset(
    {
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"),
        *("getQuery", "find", "findAll"),
        *("ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        *("cidr", "isCIDR", "containsIP", "containsCIDR", "masked", "prefixLength"),
        *("semver", "isSemver", "major", "minor", "patch"),
        *("validate", "format.named", "format.dns1123Label", "format.dns1123Subdomain"),
        *("format.dns1035Label", "format.qualifiedName", "format.dns1123LabelPrefix"),
        *("format.dns1123SubdomainPrefix", "format.dns1035LabelPrefix", "format.labelValue"),
        *("format.uri", "format.uuid", "format.byte", "format.date", "format.datetime"),
    }
)
