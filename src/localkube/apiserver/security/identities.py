"""The users that the cluster itself defines: administrator, components and service accounts."""

from collections.abc import Mapping

from localkube.apiserver.request import User

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"

ADMIN = User("kubernetes-admin", ("system:masters", AUTHENTICATED))
SCHEDULER = User("system:kube-scheduler", (AUTHENTICATED,))
CONTROLLER_MANAGER = User("system:kube-controller-manager", (AUTHENTICATED,))
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def node_user(node: str) -> User:
    return User(f"system:node:{node}", ("system:nodes", AUTHENTICATED))


def party_of(user: str) -> str:
    """Who is limited together, by the name of one of them: the service accounts of a namespace,
    because whoever may write there makes as many as he likes."""
    if user.startswith(SERVICE_ACCOUNT_PREFIX):
        return user.rpartition(":")[0]
    return user


def service_account_groups(namespace: str) -> tuple[str, str]:
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def service_account_user(
    namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]
) -> User:
    groups = (*service_account_groups(namespace), AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", groups, uid, extra)
