"""What programs in containers cannot do, whatever they call: the wall of sandbox.py and confine.py.
Each attack runs as the container's own program and as one of exec."""

import os
import platform
import socket
import sys
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.resources import CONFIG_MAPS
from localkube.kubelet.confine import can_scope_sockets
from localkube.kubelet.launches import Launches
from tests.localkube.kubelet.world import World, container, pod, settings, shell, timers, world

# Prints "name: what happened" for each call of the kernel.
CALLS = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"

def call(name, x86, arm, *arguments):
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    done = libc.syscall(ctypes.c_long(x86 if X86 else arm), *given)
    print(f"{name}: {done if done >= 0 else errno.errorcode[ctypes.get_errno()]}")

call("mount", 165, 40, b"x", b"/tmp", b"tmpfs", 0, None)
call("umount2", 166, 39, b"/usr", 2)
call("pivot_root", 155, 41, b".", b".")
call("open_tree", 428, 428, -100, b"/", 1)
call("move_mount", 429, 429, -100, b"/usr", -100, b"/tmp", 0)
call("fsopen", 430, 430, b"tmpfs", 0)
call("fspick", 433, 433, -100, b"/usr", 0)
call("mount_setattr", 442, 442, -100, b"/usr", 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)
call("setns", 308, 268, os.open("/proc/self/ns/mnt", 0), 0)
call("unshare", 272, 97, 0x10000000)
call("clone", 56, 220, 0x10000000 | 17, 0, 0, 0, 0)
call("keyctl", 250, 219, 0, -3, 1)
call("add_key", 248, 217, b"user", b"a", b"b", 1, -3)
call("open_by_handle_at", 304, 265, -100, (ctypes.c_char * 16)(), 0)
call("bpf", 321, 280, 0, 0, 0)
call("userfaultfd", 323, 282, 0)
call("perf_event_open", 298, 241, 0, 0, 0, 0, 0)
call("io_uring_setup", 425, 425, 1, 0)
call("init_module", 175, 105, 0, 0, b"")
call("kexec_load", 246, 104, 0, 0, 0, 0)
call("syslog", 103, 116, 3, 0, 0)
call("clone3", 435, 435, 0, 0)
call("a later one", 500, 500)
"""
REFUSED = """mount umount2 pivot_root open_tree move_mount fsopen fspick mount_setattr setns unshare
clone keyctl add_key open_by_handle_at bpf userfaultfd perf_event_open io_uring_setup init_module
kexec_load syslog"""
EXPECTED = [f"{name}: EPERM" for name in REFUSED.split()] + [
    "clone3: ENOSYS",
    "a later one: ENOSYS",
]


@asynccontextmanager
async def walled(directory: Path) -> AsyncIterator[World]:
    launches = Launches(directory / "probe", isolate=True)
    try:
        if not await launches.namespaces():
            pytest.skip("this machine allows no user namespaces")
    finally:
        await launches.close()
    async with world(directory) as here:
        yield here


async def said_by_both(here: World, script: str, program: str = "") -> list[str]:
    """What the script says as the container's program, and then as one of exec; `program` is in the
    file /v/program.py."""
    metadata = {"name": "program", "namespace": "default"}
    await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": {"program.py": program}})
    found = await here.run(
        shell(
            "p",
            f"{{ {script}\n}} 2>&1; echo ---; exec sleep 1000",
            container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            volumes=[{"name": "v", "configMap": {"name": "program"}}],
        )
    )
    own, _, _ = (await here.logged(found, "---\n")).partition("---\n")
    _, other = await here.output(found, f"{{ {script}\n}} 2>&1")
    return [own, other.decode()]


async def test_no_program_makes_mounts_namespaces_or_what_else_leads_out(tmp_path: Path) -> None:
    async with walled(tmp_path) as here:
        for said in await said_by_both(here, "python /v/program.py", CALLS):
            assert said.splitlines() == EXPECTED


async def test_no_program_has_capabilities_or_gets_any(tmp_path: Path) -> None:
    async with walled(tmp_path) as here:
        script = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u"
        for said in await said_by_both(here, script):
            values = [line.split()[-1] for line in said.splitlines()]
            assert values == ["0" * 16] * 5 + ["1", "2", "0"]


async def test_no_program_inherits_descriptors(tmp_path: Path) -> None:
    async with walled(tmp_path) as here:
        # The descriptor by which it reads the directory is closed again.
        look = """
import os
print(*[each for each in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{each}")])
"""
        for said in await said_by_both(here, "python /v/program.py", look):
            assert said.split() == ["0", "1", "2"]


async def test_no_program_looks_into_the_containers_init(tmp_path: Path) -> None:
    """It is a copy of the launcher, and has variables of other containers in its memory."""
    async with walled(tmp_path) as here:
        look = """
import os
for name in ("mem", "environ", "maps", "root/usr", "cwd/usr", "exe"):
    try:
        os.open(f"/proc/1/{name}", os.O_RDONLY)
        print("OPENED", name)
    except PermissionError:
        print("refused")
"""
        for said in await said_by_both(here, "python /v/program.py", look):
            assert said.split() == ["refused"] * 6


# The same permissions again: where this works, others would, too.
CHANGE = """
import os, time
try:
    os.chmod("/proc/self/exe", os.stat("/proc/self/exe").st_mode & 0o7777)
    print("CHANGED")
except OSError as error:
    print(error.strerror)
print("---", flush=True)
"""


@pytest.mark.parametrize("start", [("/proc/self/exe", "-I", "/v/change.py"), ("/v/script",)])
async def test_no_program_changes_the_file_that_it_was_forked_from(
    tmp_path: Path, start: tuple[str, ...]
) -> None:
    """Until its exec, /proc/self/exe of a program is the launcher's, on the machine's own mount. A
    program of this name, or a script with this interpreter, keeps it."""
    data = {"change.py": CHANGE, "script": f"#!/proc/self/exe -I\n{CHANGE}time.sleep(1000)"}
    async with walled(tmp_path) as here:
        metadata = {"name": "program", "namespace": "default"}
        await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
        more: dict[str, object] = {
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            "volumes": [{"name": "v", "configMap": {"name": "program", "defaultMode": 0o755}}],
        }
        await here.create(pod("own", *start, **more))
        own = await here.until("own", lambda found: bool(container(found).get("containerID")))
        assert await here.logged(own, "---\n") == "Read-only file system\n---\n"
        found = await here.run(shell("p", "exec sleep 1000", **more))
        process = await here.exec(found, *start, stdout=True)
        said = b""
        async for chunk in process.stdout():
            said += chunk
            if b"---" in said:
                break
        await process.hang_up()
        assert said == b"Read-only file system\n---\n"


async def test_programs_of_exec_see_the_containers_own(tmp_path: Path) -> None:
    async with walled(tmp_path) as here:
        found = await here.run(shell("p", "exec sleep 1000"))
        # All of them: where /proc is the machine's, its pid is not 2.
        script = "for each in /proc/[0-9]*; do readlink $each/exe; done | grep -vE '/(ba|da)?sh$'"
        _, text = await here.output(found, script)
        assert Path(text.decode().split()[0]).name in ("sleep", "coreutils", "busybox")


async def test_programs_trace_one_another(tmp_path: Path) -> None:
    trace = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
child = os.fork()
if not child:
    signal.pause()
print(libc.ptrace(16, child, None, None), os.waitpid(child, 0)[0] == child)
os.kill(child, 9)
"""
    async with walled(tmp_path) as here:
        for said in await said_by_both(here, "python /v/program.py", trace):
            assert said == "0 True\n"


CONNECT = """
import os, socket, sys
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    with socket.socket(socket.AF_UNIX, kind) as client:
        try:
            client.connect("\\0" + sys.argv[1] + str(int(kind)))
            print("connected")
        except OSError as error:
            print(error.strerror)
with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
    server.bind(f"\\0mine-{os.getpid()}")
    server.listen()
    client.connect(f"\\0mine-{os.getpid()}")
    print("reaches its own")
"""


async def test_no_program_reaches_abstract_sockets_of_the_machine(tmp_path: Path) -> None:
    if not can_scope_sockets():
        pytest.skip("this kernel has no scopes of Landlock")
    name = f"localkube-{os.urandom(8).hex()}-"
    async with walled(tmp_path) as here:
        with (
            socket.socket(socket.AF_UNIX) as stream,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        ):
            stream.bind(f"\0{name}1")
            stream.listen()
            datagrams.bind(f"\0{name}2")
            both = await said_by_both(here, f"python /v/program.py {name}", CONNECT)
        for said in both:
            refused = "Operation not permitted"
            assert said.splitlines() == [refused, refused, "reaches its own"]


async def test_of_the_root_directory_only_what_is_listed_is_there(tmp_path: Path) -> None:
    expected = {"bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var", "v"}
    needed = {Path(path).parts[1] for path in (sys.prefix, sys.base_prefix, __file__)}
    async with walled(tmp_path) as here:
        script = "ls -A /; echo; ls -A /var/tmp /run /dev/shm; ls /sys/fs 2>/dev/null"
        for said in await said_by_both(here, script):
            root, _, rest = said.partition("\n\n")
            names = {name for name in root.split() if not name.startswith("lib")}
            assert names - needed == expected - needed
            assert rest.split() == ["/dev/shm:", "/run:", "lock", "/var/tmp:"]


async def test_shared_memory_and_queues_are_the_containers_own(tmp_path: Path) -> None:
    async with walled(tmp_path) as here:
        for said in await said_by_both(here, "readlink /proc/self/ns/ipc /proc/self/ns/cgroup"):
            ours = {os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "cgroup")}
            assert ours.isdisjoint(said.split())


async def test_files_of_the_kernel_cannot_be_written(tmp_path: Path) -> None:
    """Also not by a container of a cluster that root has started: these files obey root, with or
    without capabilities."""
    files = "/proc/sys/kernel/core_pattern /sys/kernel/mm/transparent_hugepage/enabled /etc/passwd"
    script = f"for each in {files}; do [ -w $each ] && echo WRITABLE $each; done; "
    script += "chmod 666 /dev/null && echo CHANGED; cat /etc/shadow | head -c 1; echo; echo over"
    async with walled(tmp_path) as here:
        for said in await said_by_both(here, script):
            assert "WRITABLE" not in said
            assert "CHANGED" not in said
            assert said.endswith("\n\nover\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="is about the calls of 32-bit programs")
async def test_calls_of_another_architecture_end_the_program(tmp_path: Path) -> None:
    old_call = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # getpid by int 0x80
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""
    async with walled(tmp_path) as here:
        for said in await said_by_both(here, "python /v/program.py; echo $?", old_call):
            assert said.split()[-1] == "159"  # SIGSYS


async def test_a_library_in_place_of_pythons_own_is_not_loaded_by_exec(tmp_path: Path) -> None:
    """Between the join and its program, a process of exec is Python with the launcher's memory. A
    volume over Python's own files must not get code into it."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(len(places))]
    mounts = [{"name": f"v{n}", "mountPath": place} for n, place in enumerate(sorted(places))]
    evil = "open('/tmp/loaded', 'a').write(__name__)"
    names = ("array", "warnings", "socket", "struct", "traceback", "linecache", "encodings/idna")
    write = "; ".join(
        f'mkdir -p $(dirname {place}/{name}.py); echo "{evil}" > {place}/{name}.py'
        for place in sorted(places)
        for name in names
    )
    async with walled(tmp_path) as here:
        found = await here.run(
            shell(
                "p",
                f"{write}; echo ready; exec sleep 1000",
                container={"volumeMounts": mounts},
                volumes=volumes,
            )
        )
        await here.logged(found, "ready")
        assert await here.output(found, "cat /tmp/loaded; echo ran") == (0, b"ran\n")


async def test_links_that_a_program_of_exec_leaves_in_the_root_lead_the_next_one_nowhere(
    tmp_path: Path,
) -> None:
    """A pod of timers has no process; each program of exec makes its view anew, in the same
    root."""
    outside = tmp_path / "outside"
    outside.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    async with walled(data):
        pass
    async with world(data, timers(data)) as here:
        found = await here.run(shell("p", "sleep 1000"))
        plant = f"cd /; mv var x; ln -s {outside} var; mv run y; ln -s {outside} run; echo planted"
        assert (await here.output(found, plant))[1] == b"planted\n"
        assert await here.output(found, "echo ran") == (126, b"")
    assert list(outside.iterdir()) == []


async def test_a_required_wall_that_is_missing_starts_no_container(tmp_path: Path) -> None:
    chosen = replace(settings(tmp_path), isolate=False, wall_required=True)
    async with world(tmp_path, chosen) as here:
        await here.create(shell("p", "touch /tmp/started"))
        event = await here.until_event("Failed", "p")
        assert "--sandbox=required" in event["message"]
