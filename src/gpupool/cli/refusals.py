"""What an API server refused, in words for a person: which server, and what to do next.

The server's own sentence is kept as it is: people search for it.
"""

from kubeclient.errors import KubeError, NotFound, Refused

_UNAUTHORIZED = 401
_FORBIDDEN = 403


def words_of(error: KubeError, url: str) -> str:
    """`url`: of the server; empty where it is not known."""
    said = str(error).strip().rstrip(".")
    if not isinstance(error, Refused):
        return said if said.endswith("?") else f"{said}."
    if error.code == _UNAUTHORIZED:
        return (
            f"{url} does not know you: {said}. It wants a token or a certificate that is valid; "
            "look at the user of the context in your kubeconfig, or sign in again."
        )
    if error.code == _FORBIDDEN:
        return f"{said}. Ask for that right, or choose another user with --context."
    if isinstance(error, NotFound):
        return f"{said}. {_where_to_look(error, url)}"
    return f"{said}."


def _where_to_look(error: NotFound, url: str) -> str:
    details = error.status.get("details") or {}
    kind = details.get("kind") if isinstance(details, dict) else None
    if kind:
        every = " -A" if kind in ("pods", "services") else ""
        return f"See which there are: kubectl get {kind}{every}"
    return f"Is the API server of a cluster at {url}? Look at the server in your kubeconfig."
