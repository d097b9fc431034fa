"""The README's five minutes: every command of its part, in its order, with what it shows."""

import re
import sys
from pathlib import Path

from tests.walk.browsing import Browser
from tests.walk.terminal import Terminal

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
FIRST_CARD = "cn-shanghai.192.168.7.158"
# Command -> words that its output has. Three commands go on until Ctrl-C and are walked apart.
STEPS: dict[str, tuple[str, ...]] = {
    'export PATH="$PWD/.venv/bin:$PATH"': (),
    "export KUBECONFIG=\"$(gpupool status | sed -n 's/^Kubeconfig: *//p')\"": (),
    "kubectl get nodes -L aliyun.accelerator/nvidia_name,aliyun.accelerator/nvidia_mem,cgpu": (
        "Tesla-M40              12209MiB",
        "Tesla-V100-SXM2-16GB   16130MiB     true",
    ),
    "kubectl get nodes -l aliyun.accelerator/nvidia_name=Tesla-M40": (
        "cn-beijing.i-2ze8o1a45qdv5q8a7luz",
        "cn-beijing.i-2ze8o1a45qdv5q8a7lv0",
    ),
    "kubectl get pods -n kube-system -l name=gpushare-device-plugin-ds -o wide": (
        "gpushare-device-plugin-ds-",
        "cn-shanghai.192.168.7.157",
        "cn-shanghai.192.168.7.158",
    ),
    "gpupool gpu pods": ("3226MiB", "3 of 15 GiB", "ISOLATION", "limiter", "none"),
    "kubectl exec cgpu-test-0 -- nvidia-smi": ("/   3226MiB |", " python3 "),
    "kubectl exec cgpu-test-no-isolation-0 -- nvidia-smi": ("/  16130MiB |", " gpu-player "),
    "kubectl exec cgpu-test-no-isolation-0 -- env | grep ALIYUN": (
        "ALIYUN_COM_GPU_MEM_CONTAINER=3",
        "ALIYUN_COM_GPU_MEM_DEV=15",
    ),
    "gpupool inspect -d": ("cgpu-test-no-isolation-0", "6/30 (20%)"),
    "kubectl apply -f examples/notebook.yaml": ("deployment.apps/tf-notebook created",),
    "kubectl rollout status deployment tf-notebook": ("successfully rolled out",),
    "kubectl port-forward deployment/tf-notebook 8888": (),
    "kubectl create deployment greedy --image=pause --replicas=3": ("greedy created",),
    "kubectl set resources deployment greedy --limits=nvidia.com/gpu=1": ("requirements updated",),
    "kubectl get events -w --field-selector reason=FailedScheduling": (),
    "gpupool explain $(kubectl get pods -l app=greedy -o name "
    "--field-selector spec.nodeName= | cut -d/ -f2)": (
        "0/8 nodes are available",
        "Insufficient nvidia.com/gpu",
        "card 0: held whole by default/",
        "delete one that holds a card (gpupool gpu pods lists them)",
    ),
    "kubectl delete deployment greedy": ('deployment.apps "greedy" deleted',),
    f"gpupool gpu fault {FIRST_CARD} 0 xid=79": ("XID 79 (the card has fallen off the bus)",),
    "gpupool gpu list": ("cn-shanghai.192.168.7.158", "XID 79"),
    f"gpupool gpu fault {FIRST_CARD} 0 recover": (": repaired.",),
    "kubectl get nodepools": ("cgpu-no-isolation", "Active"),
    "kubectl scale nodepool cgpu --replicas=3": ("nodepool.gpupool.io/cgpu scaled",),
    "kubectl get nodes -w": (),
    "kill -9 $(gpupool status | awk '/^Process/ {print $2}')": (),
    "gpupool up": ("10 of 10 nodes are ready",),
    "kubectl get pods": ("cgpu-test-0", "cgpu-test-no-isolation-0", "tf-notebook-"),
    "gpupool up --config training.yaml": ("4 of 4 nodes are ready", "export KUBECONFIG="),
    "gpupool console": (),
}


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for its_language, block in found if its_language == language]


def commands() -> list[str]:
    """Of the part "Five minutes", as one types them."""
    part = README.partition("## Five minutes")[2].partition("## On a real cluster")[0]
    return [line for block in blocks(part, "") for line in block.splitlines()]


def program(language: str) -> str:
    """The only block of this language."""
    (found,) = blocks(README, language)
    return found


def walk(terminal: Terminal, browser: Browser) -> None:
    assert commands() == list(STEPS), "README.md and this file name different commands"
    terminal.types("make up", "8 of 8 nodes are ready", "cgpu-test-0", "limiter")
    for command, words in STEPS.items():
        if command == "kubectl port-forward deployment/tf-notebook 8888":
            _open_the_notebook(terminal, browser)
        elif command.startswith("kubectl get events -w"):
            with terminal.starts(command) as watch:
                watch.shows("Insufficient nvidia.com/gpu")
        elif command == "kubectl get nodes -w":
            with terminal.starts(command) as watch:
                watch.shows("cn-shanghai.192.168.0.8")
        elif command == "gpupool console":
            _look_at_the_console(terminal, browser)
        else:
            terminal.types(_placed(command, terminal), *words)
    _use_it_in_a_test(terminal)
    terminal.types("gpupool down --name training")


def _placed(command: str, terminal: Terminal) -> str:
    """Files that the reader writes are not written into the checkout."""
    file = terminal.scratch / "training.yaml"
    file.write_text(program("yaml"), encoding="utf-8")
    return command.replace("training.yaml", str(file))


def _open_the_notebook(terminal: Terminal, browser: Browser) -> None:
    # Any free port instead of 8888, which somebody may use who runs this test.
    with terminal.starts("kubectl port-forward deployment/tf-notebook :8888") as forward:
        said = forward.shows("Forwarding from 127.0.0.1:")
        found = re.search(r"127\.0\.0\.1:(\d+) ->", said)
        assert found
        url = f"http://localhost:{found[1]}"
        browser.lists_devices_in_a_notebook(url, "mypassw0rdv", "Tesla M40")


def _look_at_the_console(terminal: Terminal, browser: Browser) -> None:
    # Any free port instead of 8080.
    with terminal.starts("gpupool console --port 0") as console:
        said = console.shows("Ctrl-C ends it.")
        found = re.search(r"http://\S+\.localhost:\S+", said)
        assert found
        browser.sees(found[0], "cn-shanghai.192.168.7.157", "cgpu-test-0")


def _use_it_in_a_test(terminal: Terminal) -> None:
    file = terminal.scratch / "test_nodes.py"
    file.write_text(program("python"), encoding="utf-8")
    run = f"{sys.executable} -m pytest -q -p no:cacheprovider --rootdir {terminal.scratch} {file}"
    terminal.types(run, "1 passed")
