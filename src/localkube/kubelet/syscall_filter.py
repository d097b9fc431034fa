"""A filter of system calls (seccomp) for the programs of containers.

It refuses what no ordinary program needs and what ways out of a container were made of: mounts, new
namespaces, the kernel's keys, modules, BPF. What it does not name is allowed. With the other walls
in place (no capabilities, a second user namespace), it is the second line: it keeps mistakes in
rarely used parts of the kernel out of reach.

Programs may trace one another (ptrace, process_vm_readv): debuggers work, and the process and user
namespaces keep all other processes out of their reach.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from localkube.kubelet import kernel

_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
# Fields of struct seccomp_data. Only the lower half of an argument is looked at: all flags that
# matter are there, and the kernel ignores or refuses the upper half.
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# What a newer kernel adds is not there for containers. Nor is x86_64's second table of calls (x32),
# which has the same architecture and numbers from 0x40000000 on.
_FIRST_UNKNOWN = 470

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET
_NEW_TIME = 0x80  # for unshare alone: in clone, these bits are a signal
_AF_ALG, _AF_VSOCK = 38, 40
_SET_FILTER, _NO_SLOWER_MEMORY = 1, 4  # SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW


class _Machine(NamedTuple):
    architecture: int  # AUDIT_ARCH_*
    seccomp: int
    clone: int
    unshare: int
    socket: int
    refused: tuple[int, ...]


# On every architecture: open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr,
# open_tree_attr; io_uring_setup, -enter, -register; quotactl_fd.
_EVERYWHERE = (428, 429, 430, 431, 432, 433, 442, 467, 425, 426, 427, 443)
_CLONE3 = 435

MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        seccomp=317,
        clone=56,
        unshare=272,
        socket=41,
        refused=(
            *(165, 166, 155, 308),  # mount, umount2, pivot_root, setns
            *(248, 249, 250),  # add_key, request_key, keyctl
            *(304, 321, 323, 298),  # open_by_handle_at, bpf, userfaultfd, perf_event_open
            *(246, 320, 175, 313, 176),  # kexec_load, kexec_file_load, (f)init_, delete_module
            *(163, 167, 168, 169, 179, 103),  # acct, swapon, swapoff, reboot, quotactl, syslog
            *(156, 172, 173, 180, 212),  # _sysctl, iopl, ioperm, nfsservctl, lookup_dcookie
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        seccomp=277,
        clone=220,
        unshare=97,
        socket=198,
        refused=(
            *(40, 39, 41, 268),
            *(217, 218, 219),
            *(265, 280, 282, 241),
            *(104, 294, 105, 273, 106),
            *(89, 224, 225, 142, 60, 116),
            *(42, 18),  # nfsservctl, lookup_dcookie
        ),
    ),
}


def install() -> None:
    """For this process and all of its children, for ever. It needs no_new_privs. Raises OSError,
    also on an architecture whose calls we do not know."""
    name = os.uname().machine
    if name not in MACHINES:
        raise OSError(errno.ENOSYS, f"the system calls of {name} are not known here")
    program = compiled(name)
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are.
    given = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    call = kernel.system_call(MACHINES[name].seccomp, "int int text")
    call(_SET_FILTER, _NO_SLOWER_MEMORY, given)


@cache
def compiled(name: str) -> bytes:
    return b"".join(_instructions(MACHINES[name]))


def _instructions(machine: _Machine) -> Iterator[bytes]:
    """Each rule is a comparison that steps over the answer after it. Jumps in BPF go forward only,
    and by 255 instructions at most: so there are no far jumps."""
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, machine.architecture, then=1)
    yield _step(_RETURN, _KILL)
    yield _step(_LOAD, _NUMBER)
    yield from _when(_AT_LEAST, _FIRST_UNKNOWN, _ERRNO | errno.ENOSYS)
    # Its flags are in memory, where a filter cannot see them. C libraries then use clone.
    yield from _when(_EQUAL, _CLONE3, _ERRNO | errno.ENOSYS)
    for number in (*_EVERYWHERE, *machine.refused):
        yield from _when(_EQUAL, number, _ERRNO | errno.EPERM)
    yield from _when_argument(machine.clone, [(_ANY_BIT, _NEW_NAMESPACES)], errno.EPERM)
    yield from _when_argument(
        machine.unshare, [(_ANY_BIT, _NEW_NAMESPACES | _NEW_TIME)], errno.EPERM
    )
    # Sockets to the hypervisor of this machine, and to the kernel's cryptography.
    families = [(_EQUAL, _AF_VSOCK), (_EQUAL, _AF_ALG)]
    yield from _when_argument(machine.socket, families, errno.EAFNOSUPPORT)
    yield _step(_RETURN, _ALLOW)


def _when(comparison: int, value: int, answer: int) -> Iterator[bytes]:
    yield _step(comparison, value, otherwise=1)
    yield _step(_RETURN, answer)


def _when_argument(number: int, tests: list[tuple[int, int]], error: int) -> Iterator[bytes]:
    """Refuses a call if one of the tests is true of its first argument."""
    yield _step(_EQUAL, number, otherwise=2 + 2 * len(tests))
    yield _step(_LOAD, _ARGUMENT)
    for comparison, value in tests:
        yield from _when(comparison, value, _ERRNO | error)
    yield _step(_RETURN, _ALLOW)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)
