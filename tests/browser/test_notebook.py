"""A notebook as a data scientist uses it: signs in, types a program, runs it."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.local.programs import jupyter
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.browser.chromium import OpenBrowser
from tests.browser.notebook_pages import LIST_DEVICES, new_notebook, run_cell, sign_in
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, pod

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not jupyter.is_installed(),
        reason="NO JUPYTERLAB: no notebook was tested in a browser. Install it: make browser",
    ),
]

ROOT = Path(__file__).parent.parent.parent
POOLS = [
    {"name": "gpu", "instanceType": "ecs.gn4-c4g1.xlarge", "count": 1},  # a Tesla M40
    *SHARED_POOLS,
]
ALLOCATE = """\
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, place, text = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_char_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def take(mib):
    code = cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(mib << 20))
    cuda.cuGetErrorName(code, ctypes.byref(text))
    return text.value.decode()
print("within:", take(2048))
print("beyond:", take(2048))
"""
STILL_THERE = 'print("within:", take(512), "in", 6 * 7)'


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with Cluster(pools=POOLS) as cluster:
        made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path_factory.mktemp("notebook"))
        labelled = ("nodes", "-l", "aliyun.accelerator/nvidia_name")
        eventually(lambda: len(made.names(*labelled)) == 3, within_s=60)
        yield made


@contextlib.contextmanager
def forwarded(kubectl: Kubectl, what: str) -> Iterator[str]:
    """The address at which the notebook is reached."""
    with kubectl.start("port-forward", what, ":8888") as running:
        said = running.shows("Forwarding from 127.0.0.1:")
        found = re.search(r"127\.0\.0\.1:(\d+) ->", said)
        assert found
        yield f"http://127.0.0.1:{found[1]}/"


async def test_the_program_of_the_document_lists_the_gpu(
    kubectl: Kubectl, open_browser: OpenBrowser
) -> None:
    kubectl("apply", "-f", str(ROOT / "examples/notebook.yaml"))
    kubectl("rollout", "status", "deployment/tf-notebook", "--timeout=60s")
    with forwarded(kubectl, "deployment/tf-notebook") as address:
        async with open_browser() as page:
            await page.open(address)
            await sign_in(page, "wrong")
            await page.shows("Invalid credentials")
            await sign_in(page, "mypassw0rdv")
            await new_notebook(page)
            printed = await run_cell(page, 1, LIST_DEVICES)
            assert "['/device:CPU:0', '/device:GPU:0']" in printed
            assert "gpupool's stand-in" in printed
            described = await run_cell(page, 2, "print(device_lib.list_local_devices()[1])")
            assert "name: Tesla M40, pci bus id: 0000:00:" in described
            assert "compute capability: 5.2" in described
            # Nothing from elsewhere, and no question whether to fetch news.
            assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)
            assert "news" not in str(await page.run("document.body.innerText"))
    log = kubectl("logs", "deployment/tf-notebook")
    assert "token" not in log
    assert "mypassw0rdv" not in log
    files = kubectl("exec", "deployment/tf-notebook", "--", "sh", "-c", "ls ~")
    assert "Untitled.ipynb" in files


def shared(name: str, token: str) -> Obj:
    """Two pods may have the same port: neither gets that of this machine."""
    notebook = container(
        "jupyter",
        "quay.io/jupyter/tensorflow-notebook:latest",
        resources={"limits": {"aliyun.com/gpu-mem": 3}},
        env=[{"name": "JUPYTER_TOKEN", "value": token}],
        ports=[{"containerPort": 8888}],
    )
    return pod(name, notebook, nodeSelector={"cgpu.disable.isolation": "false"})


async def test_a_cell_gets_no_more_than_its_share_and_the_kernel_lives_on(
    kubectl: Kubectl, open_browser: OpenBrowser
) -> None:
    kubectl.apply(shared("a", "first"), shared("b", "second"))
    kubectl.wait("condition=Ready", "pod/a", "pod/b")
    with forwarded(kubectl, "pod/b") as address:
        async with open_browser() as page:
            await page.open(address)
            await sign_in(page, "first")
            await page.shows("Invalid credentials")
            await sign_in(page, "second")
            await new_notebook(page)
            printed = await run_cell(page, 1, ALLOCATE)
            assert "within: CUDA_SUCCESS" in printed
            assert "beyond: CUDA_ERROR_OUT_OF_MEMORY" in printed
            assert "within: CUDA_SUCCESS in 42" in await run_cell(page, 2, STILL_THERE)
            seen = await run_cell(page, 3, "!nvidia-smi; hostname; echo $HOME")
            assert "3226MiB |" in seen
            assert " python3 " in seen
            assert sys.prefix not in seen
            assert seen.rstrip().endswith("b\n/home/jovyan")
