"""Signing requests, API services, flow schemas and priority levels."""

from __future__ import annotations

from tests.conformance.record.objects import obj
from tests.conformance.record.samples.sample import Sample, named

# Of CN=jane, O=readers, with a key that nobody has.
SIGNING_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0RBZ0VBTUNFeEVE"
    "QU9CZ05WQkFvTUIzSmxZV1JsY25NeERUQUxCZ05WQkFNTUJHcGhibVV3V1RBVApCZ2NxaGtq"
    "T1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFSL25jOGI5RFoyNUxMU2ZJek9QN09kNTk0OVBQL1Ix"
    "RllZCnMvRHR1cU1vSm9kWldFTmQ5S2oycll1SDJyNXR5Ky9IUWpUSXBja1F5WjNKUjdYTVJx"
    "eWtvQUF3Q2dZSUtvWkkKemowRUF3SURTQUF3UlFJaEFPZHdEd0hpQjZzaUcyU3RadlVydFpP"
    "V0VFSlZEeU1CRTFyWlM2Tmw1eDJUQWlBLwpGOUZMaTVHd240c2xNT09jUDJFMVBNSThCNnUz"
    "R1pUZkNNNDNScGZPRHc9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
_CERTIFICATES = "certificates.k8s.io/v1"
_REGISTRATION = "apiregistration.k8s.io/v1"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1"
_CLIENT = "kubernetes.io/kube-apiserver-client"

SAMPLES = (
    named(
        "CertificateSigningRequest",
        "certificatesigningrequests",
        _CERTIFICATES,
        "CertificateSigningRequest",
        spec={"request": SIGNING_REQUEST, "signerName": _CLIENT, "usages": ["client auth"]},
    ),
    named(
        "CertificateSigningRequest-short",
        "certificatesigningrequests",
        _CERTIFICATES,
        "CertificateSigningRequest",
        spec={
            "request": SIGNING_REQUEST,
            "signerName": "example.com/own",
            "usages": ["digital signature", "server auth"],
            "expirationSeconds": 86400,
            "username": "somebody-else",
            "groups": ["system:masters"],
        },
        status={"conditions": [{"type": "Approved", "status": "True"}]},
    ),
    Sample(
        "APIService",
        f"/apis/{_REGISTRATION}/apiservices",
        obj(
            _REGISTRATION,
            "APIService",
            "v1.remote.example.com",
            spec={
                "group": "remote.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "nowhere", "name": "nothing"},
            },
        ),
    ),
    Sample(
        "APIService-local",
        f"/apis/{_REGISTRATION}/apiservices",
        obj(
            _REGISTRATION,
            "APIService",
            "v1.local.example.com",
            spec={
                "group": "local.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
            },
        ),
    ),
    named(
        "FlowSchema",
        "flowschemas",
        _FLOW_CONTROL,
        "FlowSchema",
        spec={
            "priorityLevelConfiguration": {"name": "workload-low"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "jane"}}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/metrics"]}],
                }
            ],
        },
    ),
    named(
        "FlowSchema-dangling",
        "flowschemas",
        _FLOW_CONTROL,
        "FlowSchema",
        spec={
            "matchingPrecedence": 50,
            "distinguisherMethod": {"type": "ByNamespace"},
            "priorityLevelConfiguration": {"name": "nowhere"},
        },
    ),
    named(
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        _FLOW_CONTROL,
        "PriorityLevelConfiguration",
        spec={"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
    ),
    named(
        "PriorityLevelConfiguration-reject",
        "prioritylevelconfigurations",
        _FLOW_CONTROL,
        "PriorityLevelConfiguration",
        spec={
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}},
        },
    ),
)
