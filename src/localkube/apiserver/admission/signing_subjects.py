"""CertificateSubjectRestriction: nobody becomes an administrator by an ordinary client certificate.

Members of system:masters may do everything, whatever RBAC says; whoever approves requests for
clients must not be able to make more of them by oversight.
"""

from localkube.apiserver.admission.attributes import Attributes, ClusterView, refusal
from localkube.signing_requests import API_SERVER_CLIENT, decoded, parse

_MASTERS = "system:masters"


def restrict_subject(attributes: Attributes, cluster: ClusterView) -> None:
    made = attributes.created
    if made is None or made["spec"]["signerName"] != API_SERVER_CLIENT:
        return
    request = parse(decoded(made["spec"]["request"]))  # validated before
    if _MASTERS in request.organizations:
        why = f"use of {API_SERVER_CLIENT} signer with {_MASTERS} group is not allowed"
        raise refusal(attributes, why)
