"""English: where the console says something in other words than the program that said it first.

A unit of memory is called GiB on all pages, and the sentence about cards stands beside what the pod
waits for.
"""

EN = {
    "container {name}: {units} units ({selector}) -> {count} units ({command})": (
        "container {name}: {units} GiB ({selector}) -> {count} GiB ({command})"
    ),
    "GPUs: {summary}.": "{summary}.",
    "{message} GPUs: {summary}.": "{message} {summary}.",
    "the only card is offered in shares (aliyun.com/gpu-mem), not whole": (
        "The only card is offered in shares (aliyun.com/gpu-mem), not whole"
    ),
    "the only card is offered whole (nvidia.com/gpu), not in shares": (
        "The only card is offered whole (nvidia.com/gpu), not in shares"
    ),
    "all {cards} cards are offered in shares (aliyun.com/gpu-mem), not whole": (
        "All {cards} cards are offered in shares (aliyun.com/gpu-mem), not whole"
    ),
    "all {cards} cards are offered whole (nvidia.com/gpu), not in shares": (
        "All {cards} cards are offered whole (nvidia.com/gpu), not in shares"
    ),
    "the pod accepts none of the cards there ({facts})": (
        "It accepts none of the cards there ({facts})"
    ),
    "no node has more than {most}, {wanted_count} wanted": (
        "No node has more than {most} cards, {wanted_count} are wanted"
    ),
    "{free} of {cards} free, at most {most} on one node": (
        "{free} of {cards} cards are free, at most {most} on one node"
    ),
    "none of {cards} has {units} units free, the best has {best}": (
        "None of {cards} cards has {units} GiB free, the best has {best} GiB"
    ),
    "{free} of {cards} with {units} units and {percent} % of compute free, "
    "at most {most} on one node": (
        "{free} of {cards} cards have {units} GiB and {percent} % of compute free, "
        "at most {most} on one node"
    ),
    "{free} of {cards} with {units} units free, at most {most} on one node": (
        "{free} of {cards} cards have {units} GiB free, at most {most} on one node"
    ),
    "{free} of {all} units free, {units} wanted": "{free} of {all} GiB free, {units} GiB wanted",
    "Request {most} or fewer units, or add a node with larger cards.": (
        "Request {most} GiB or less, or add a node with larger cards."
    ),
    "card {number} has {all} units in all, {units} are asked for": (
        "card {number} has {all} GiB in all, {units} GiB are asked for"
    ),
    "card {number} of node {name} has {all} units; others hold {others}, "
    "so this pod can have {most} of it, not {units}": (
        "card {number} of node {name} has {all} GiB; others hold {others}, "
        "so this pod can have {most} GiB of it, not {units}"
    ),
    "quota {name} of namespace {selector} has {all} units of gpu-mem; others have {others}, "
    "so this pod can have {most}, not {units}": (
        "quota {name} of namespace {selector} has {all} GiB of gpu-mem; others have {others}, "
        "so this pod can have {most} GiB, not {units}"
    ),
}
