"""Every built-in controller of a cluster."""

from dataclasses import dataclass
from pathlib import Path

from localkube.controllers import (
    admission_policy_status,
    api_services,
    autoscaler,
    certificate_approval,
    certificate_cleanup,
    certificate_signing,
    crd_cleanup,
    cron_job,
    daemon_set,
    deployment,
    disruption,
    endpoints,
    event_expiry,
    flow_schemas,
    job,
    load_balancer,
    namespace,
    node_lifecycle,
    pod_garbage,
    replica_set,
    service_account,
    stateful_set,
    volume_claims,
)
from localkube.controllers.load_balancer import Balancers
from localkube.controllers.run import Controller
from localkube.controllers.service_front import Dial
from localkube.names import Names


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the controllers need to know of their cluster."""

    ca_pem: str
    authority: Path  # the directory with ca.crt and ca.key
    volumes: Path  # a directory for the volumes of claims
    dial: Dial
    names: Names
    balancers: Balancers | None = None


def builtin_controllers(settings: ControllerSettings) -> list[Controller]:
    return [
        namespace.CONTROLLER,
        service_account.controller(settings.ca_pem),
        deployment.controller(),
        *replica_set.controllers(),
        stateful_set.controller(),
        daemon_set.controller(),
        job.controller(),
        job.TTL_CONTROLLER,
        cron_job.CONTROLLER,
        autoscaler.controller(),
        endpoints.controller(),
        endpoints.REMOVAL_CONTROLLER,
        disruption.controller(),
        event_expiry.CONTROLLER,
        crd_cleanup.CONTROLLER,
        admission_policy_status.CONTROLLER,
        api_services.CONTROLLER,
        certificate_approval.CONTROLLER,
        certificate_signing.controller(settings.authority),
        certificate_cleanup.CONTROLLER,
        flow_schemas.CONTROLLER,
        node_lifecycle.CONTROLLER,
        pod_garbage.CONTROLLER,
        load_balancer.controller(settings.dial, settings.names, settings.balancers),
        volume_claims.controller(settings.volumes, settings.names.provisioner),
        volume_claims.reclaimer(settings.volumes, settings.names.provisioner),
    ]
