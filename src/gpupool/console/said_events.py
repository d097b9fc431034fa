"""The forms of events, and of what the API server and our admission say when they refuse something.
As those of `said_forms.py`, which takes them in."""

from gpupool.console.words import word

# Reasons are names that programs read; in other languages the name stands beside the words.
REASONS = (
    *(word("Scheduled"), word("FailedScheduling"), word("Preempted"), word("TaintManagerEviction")),
    word("Reserved"),
    *(word("Pulling"), word("Pulled"), word("Created"), word("Started"), word("Killing")),
    *(word("BackOff"), word("Unhealthy"), word("Failed"), word("Evicted"), word("FailedMount")),
    *(word("SuccessfulCreate"), word("SuccessfulDelete"), word("FailedCreate")),
    *(word("FailedDelete"), word("ScalingReplicaSet"), word("Completed")),
    *(word("BackoffLimitExceeded"), word("DeadlineExceeded"), word("SawCompletedJob")),
    *(word("NodeReady"), word("NodeNotReady"), word("NodeNotSchedulable")),
    *(word("NodeSchedulable"), word("ScaledUp"), word("ScaledDown"), word("Autoscaled")),
    *(word("GpusFound"), word("GpuCordoned"), word("GpuLost"), word("GpuUnhealthy")),
    *(word("GpuSuspect"), word("GpuHealthy"), word("GpuIdle"), word("GpuIdleScaledToZero")),
    *(word("CardsGetIn"), word("QuotaExceeded"), word("ProvisioningSucceeded")),
)
EVENTS = (
    word("Successfully assigned {pod} to {name}"),
    word('Container image "{name}" already present on machine and can be accessed by the pod'),
    word("Container created"),
    word("Container started"),
    word("Stopping container {name}"),
    word("Back-off restarting failed container {name} in pod {selector}"),
    word("Created pod: {name}"),
    word("Deleted pod: {name}"),
    word("Create Pod {name} in StatefulSet {selector} successful"),
    word("delete Pod {name} in StatefulSet {selector} successful"),
    word("Scaled up replica set {name} from {count} to {number}"),
    word("Scaled down replica set {name} from {count} to {number}"),
    word("Added {count} node(s) to the pool"),
    word("Job completed"),
    word("Node {name} status is now: NodeReady"),
    word("found {count} x {name}; driver {selector}"),
    word("cards get into containers by NVIDIA's runtime, the default of the node"),
)
REFUSALS = (
    word("{name} is forbidden: {why}"),
    word('admission webhook "{name}" denied the request: {complaints}'),
    word("exceeded quota: {name}, requested: {selector}, used: {command}, limited: {text}"),
    word('Pool "{name}": wanted machines of type {selector}; "{text}" is of type {command}.'),
    word("{name}: wanted GPUs in limits, found {selector} in requests only"),
    word("{name}: wanted a whole number, found {selector}"),
    word("{name}: wanted 0 or more, found {selector}"),
    word(
        "{name}: wanted whole cards (nvidia.com/gpu) or a share of one (aliyun.com/gpu-mem), "
        "found both"
    ),
    word(
        "{name}: wanted a number of {selector}, at most {command} as the largest shared card has, "
        "found {text}; write the number without a unit"
    ),
    word(
        "{name}: wanted a number of {selector}, at most {command} as the largest shared card has, "
        "found {text}"
    ),
    word("{name}: wanted a multiple of the {cards} cards of label {selector}, found {command}"),
    word(
        "spec.nodeName: wanted none (the scheduler also chooses the card; use nodeSelector or "
        "affinity), found {name}"
    ),
    word('unknown field "{name}"'),
    word("{name}: field not declared in schema"),
    word("{name}: Required value"),
)
