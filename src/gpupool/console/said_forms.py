"""The forms of what scheduler and agents say; the first one that a text has is taken.

A field stands for a number if it is one of NUMBERS, for a list if it is one of LISTS, else for a
text. A text may have one of FORMS again, unless INSIDE says which forms this field has.
"""

from collections.abc import Mapping

from gpupool.console.said_events import EVENTS, REFUSALS
from gpupool.console.words import word

NUMBERS = frozenset(
    {"all", "best", "cards", "count", "free", "mib", "more", "most", "number", "others"}
    | {"percent", "unit", "units", "wanted_count"}
)
# What stands between their parts.
LISTS = {"reasons": word(", "), "names": word(", "), "facts": word("; "), "complaints": word("; ")}

_WHOLE_MESSAGES = (
    word("{message} Reserved for it since {kept}"),
    word("Reserved for it since {kept}"),
    word(
        "Room that is free for it is left to larger pods: more GPUs are asked for than there are, "
        "and few nodes have as many untouched cards as those pods need. It gets the room if no "
        "larger pod comes within half an hour, or when it has waited for long."
    ),
    word("{message} GPUs: {summary}."),
    word("GPUs: {summary}."),
    word("{message} preemption: {room}"),
    word("0/{count} nodes are available: {reasons}."),
    word("{count}/{all} nodes are available."),
    word("no nodes available to schedule pods"),
    word(
        "quota {name} is {all}: {count} used, {wanted_count} wanted. Raise it with: {command}; "
        "{quotas}"
    ),
    word("quota {name} is {all}: {count} used, {wanted_count} wanted. Raise it with: {command}"),
    word("not eligible due to preemptionPolicy=Never."),
    word("not eligible due to a terminating pod on the nominated node."),
)
# What `scheduler/kept_words.py` says of room that is kept for a pod.
_KEPT = (
    word("{name}: room on {selector}, card {text}, expected in {wait} from then."),
    word("{name}: room on {selector}, cards {text}, expected in {wait} from then."),
)
_TIMES = (word("{count} s"), word("{count} min"), word("{count} h"))
_SUMMARIES = (
    word("the only card is offered in shares (aliyun.com/gpu-mem), not whole"),
    word("the only card is offered whole (nvidia.com/gpu), not in shares"),
    word("all {cards} cards are offered in shares (aliyun.com/gpu-mem), not whole"),
    word("all {cards} cards are offered whole (nvidia.com/gpu), not in shares"),
    word("the pod accepts none of the cards there ({facts})"),
    word("no node has more than {most}, {wanted_count} wanted"),
    word("{free} of {cards} free, at most {most} on one node"),
    word("none of {cards} has {units} units free, the best has {best}"),
    word(
        "{free} of {cards} with {units} units and {percent} % of compute free, "
        "at most {most} on one node"
    ),
    word("{free} of {cards} with {units} units free, at most {most} on one node"),
)
# With a count before them in a message, and alone beside a node.
_REASONS = (
    word("node(s) had no GPU inventory"),
    word("node(s) only shared their GPUs by memory"),
    word("node(s) only gave out whole GPUs"),
    word("node(s) had too few GPUs of the models or uuids that the pod accepts"),
    word("node(s) had no GPU that the pod's card group may use"),
    word("node(s) gave GPUs only to pods with runtimeClassName {name}"),
    word("node(s) had no runtime class {name} for GPUs"),
    word("node(s) didn't have free ports for the requested pod ports"),
    word("node(s) didn't match Pod's node affinity/selector"),
    word("node(s) didn't match the requested node name"),
    word("node(s) were unschedulable"),
    word("node(s) had volume node affinity conflict"),
    word("node(s) had no available volume zone"),
    word("node(s) didn't match pod affinity rules"),
    word("node(s) didn't match pod anti-affinity rules"),
    word("node(s) didn't satisfy existing pods anti-affinity rules"),
    word("node(s) didn't match pod topology spread constraints"),
    word("node(s) didn't match pod topology spread constraints (missing required label)"),
    word("node(s) had untolerated taint {name}"),
    word("node(s) exceed max volume count"),
    word("Too many pods"),
    word("Insufficient GPU Memory in one device"),
    word("Insufficient GPU compute in one device"),
    word("Insufficient GPU Memory in {cards} devices"),
    word("Insufficient GPU compute in {cards} devices"),
    word("Insufficient GPUs for all containers at once"),
    word("Insufficient {name}"),
    word("Preemption is not helpful for scheduling"),
    word("No preemption victims found for incoming pod"),
    word("pod has unbound immediate PersistentVolumeClaims"),
    word('persistentvolumeclaim "{name}" not found'),
    word('persistentvolumeclaim "{name}" is being deleted'),
)
_CARDS = (
    word("card {number}: {state}"),
    word("{state}; {mib} MiB held by processes outside Kubernetes"),
    word("closed: which cards pod {pod} (and {more} more) holds cannot be read"),
    word("closed: which cards pod {pod} holds cannot be read"),
    word("would do"),
    word("left out: {name}, {facts} wanted"),
    word("offered in shares only, a whole card wanted"),
    word("offered whole only, a share wanted"),
    word("has less than one unit of memory"),
    word("not all of it is free"),
    word("held whole by {holders}"),
    word("shared by {holders}"),
    word("{room}; {holders} holds some of it"),
    word("{room}; {holders} hold some of it"),
    word("{free} of {all} units free, {units} wanted"),
    word("{free} % of compute free, {percent} % wanted"),
    word("suspect ({why})"),
    word("unhealthy ({why})"),
    word("cordoned ({why})"),
    word("lost ({why})"),
    word("suspect"),
    word("unhealthy"),
    word("cordoned"),
    word("lost"),
)
_HEALTH = (
    word("XID {number}: {why}"),
    word("it does not answer any more"),
    word("by a person"),
    word("MIG mode is on: its parts cannot be offered yet"),
    word("{mib} MiB are less than a unit of {unit}"),
    word("the driver cannot read it: {why}"),
    word("{count} uncorrected memory errors"),
    word("an error that is not in our list"),
    word("see NVIDIA's list of XIDs"),
    word("the program's work took too long"),
    word("the program made the compute engine fail"),
    word("the program used memory that is not its own"),
    word("damaged commands reached the card"),
    word("error in the driver's firmware"),
    word("the program was stopped by an error of its own"),
    word("the program was ended, and its work cleaned up"),
    word("the card stopped working"),
    word("memory error that could not be corrected"),
    word("the card's power cable is not connected"),
    word("the card's microcontroller stopped"),
    word("the card's microcontroller halted"),
    word("bad memory was taken out of use"),
    word("bad memory could not be taken out of use"),
    word("the program made the video decoder fail"),
    word("the program made the graphics engine fail"),
    word("NVLink error"),
    word("the card has fallen off the bus"),
    word("many memory errors that could be corrected"),
    word("memory error that hit one program only"),
    word("memory error that may have hit every program"),
    word("the program could not be switched in time"),
    word("the card's system processor does not answer"),
    word("error of the card's system processor"),
    word("memory error from which the card did not recover"),
    word("the card could not be started"),
    word("the driver's advice about the card has changed"),
)
_NEXT_STEPS = (
    word(
        "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
        "or add a node."
    ),
    word("See why cards are out of use (gpupool gpu list), or add a node."),
    word("Request {other}, or add a node that offers {offer}."),
    word("Change the node affinity {affinity} ({nodes}), or add a node that meets it."),
    word(
        "Start a pod with {selector} (namespace {name}), "
        "or change the pod affinity: no such pod runs."
    ),
    word("Request {most} or fewer cards, or add a node with {count}."),
    word("Request {most} or fewer units, or add a node with larger cards."),
    word("a share (aliyun.com/gpu-mem)"),
    word("a whole card (nvidia.com/gpu)"),
    word("Change nodeSelector {selector} ({nodes}), or label a node: {command}"),
    word("nodes have {models}"),
    word("no node has that label"),
)
_RESIZES = (
    word("container {name} has whole cards"),
    word("container {name} is an init container"),
    word(
        "container {name} runs without the limiter: nothing would tell it of another share, "
        "or hold it to that"
    ),
    word("container {name}: wanted a multiple of its {cards} cards, found {units}"),
    word("card {number} has {all} units in all, {units} are asked for"),
    word(
        "container {name} uses {mib} MiB of card {number}, more than the {most} MiB of its new "
        "share (if its programs have ended by now, run nvidia-smi in it, and try again)"
    ),
    word("card {text} is not on node {name} any more"),
    word(
        "card {number} of node {name} has {all} units; others hold {others}, "
        "so this pod can have {most} of it, not {units}"
    ),
    word(
        "quota {name} of namespace {selector} has {all} units of gpu-mem; others have {others}, "
        "so this pod can have {most}, not {units}"
    ),
    word("container {name}: {units} units ({selector}) -> {count} units ({command})"),
    word("it has just that"),
    word("its node is not there"),
    word("it has no share of a card"),
)
# What the parser says. With its own words only where nobody has met them yet.
_YAML = (
    word("not valid YAML: mapping values are not allowed in this context"),
    word("not valid YAML: block sequence entries are not allowed in this context"),
    word("not valid YAML: did not find expected <document start>"),
    word("not valid YAML: while parsing a block mapping, did not find expected key"),
    word("not valid YAML: while parsing a block collection, did not find expected '-' indicator"),
    word("not valid YAML: while parsing a flow sequence, did not find expected ',' or ']'"),
    word("not valid YAML: while scanning a simple key, could not find expected ':'"),
    word("not valid YAML: while scanning a quoted scalar, found unexpected end of stream"),
    word(
        "not valid YAML: while scanning for the next token, found character "
        "that cannot start any token"
    ),
    word("not valid YAML: indented by a tab; wanted spaces"),
    word("not valid YAML: an alias (*) without the anchor (&) that it names"),
    word("given twice, first in line {number}; keep one of them"),
    word("nested deeper than {number} levels"),
    word(
        "wanted at most {number} values, found more; an alias (*) counts as all that it stands for"
    ),
    word("wanted text as the name of a field, found a list or a map"),
    word("wanted a map after <<, found none"),
)
_MANIFESTS = (
    *_YAML,
    word("not valid YAML: {name}"),
    word("wanted an object with apiVersion, kind and metadata"),
    word("metadata.name: wanted a name"),
    word("{name}: wanted a text"),
    word("the cluster has no kind {name} in {selector}"),
    word('{name}: wanted "{selector}", found "{command}": it cannot change'),
)
_COUNTED = (word("{count} {reason}"),)
_HOLDERS = (word("{names} and {more} more"), word("{names} and {pod}"), word("{pod} (kept for it)"))
_FACTS = (
    word("no model {models}"),
    word("model {models}"),
    word("no uuid {models}"),
    word("uuid {models}"),
)
_MODELS = (word("{models} or {more} more"), word("{name} or {models}"))

_OTHERS = (
    word("{count} of {all} nodes are ready"),
    word("all cards are healthy"),
    word("card {number} ({name}) is {health}: {why}; {more_cards}"),
    word("card {number} ({name}) is {health}: {why}"),
    word("kubelet has sufficient memory available"),
    word("kubelet has no disk pressure"),
    word("kubelet has sufficient PID available"),
    word("kubelet is posting ready status"),
    word("Reached expected number of succeeded pods"),
    word("Job has reached the specified backoff limit"),
    word("Job was active longer than specified deadline"),
)

_OF_CARDS = (*_RESIZES, *_NEXT_STEPS, *_WHOLE_MESSAGES, *_SUMMARIES, *_CARDS, *_HEALTH)
FORMS = (*_OTHERS, *_MANIFESTS, *EVENTS, *_OF_CARDS, *_REASONS, *REFUSALS)
# Of a list: the forms of its parts. None at all: names that others have given.
INSIDE: Mapping[str, tuple[str, ...]] = {
    "reasons": (*_COUNTED, *_REASONS),
    "kept": _KEPT,
    "wait": _TIMES,
    "holders": _HOLDERS,
    "names": _HOLDERS,
    "pod": _HOLDERS[2:],
    "facts": _FACTS,
    "models": _MODELS,
    "name": (),
    "selector": (),
    "affinity": (),
    "command": (),
    "text": (),
}
