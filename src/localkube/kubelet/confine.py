"""What a program of a container loses before it starts, for ever and with all of its children: all
capabilities, the way to get any by exec, system calls that nobody needs, and sockets of others.

Where a wall cannot be built, the program does not start: OSError. Only the one around abstract
sockets may be missing, on kernels before 6.12.
"""

import ctypes
import errno
import os
from functools import cache

from localkube.kubelet import kernel, syscall_filter

_PR_SET_DUMPABLE, _PR_SET_SECUREBITS, _PR_CAPBSET_DROP = 4, 28, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
# Uid 0 has no capabilities by being 0, none are kept over setuid, none become ambient: locked.
_SECUREBITS = 0xEF
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64

# The numbers are the same on every architecture.
_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_VERSION = 1
_FIRST_WITH_SCOPES = 6
_SCOPE_ABSTRACT_UNIX_SOCKET = 1


def confine(*, alone: bool = True) -> None:
    """Everything, in this order: each step needs what the next one takes away. Not `alone`: it is
    one more program of a container, and has to see the others. The kernel would take them for
    others' if it had a wall around sockets of its own; it has the launcher's."""
    drop_capabilities()
    gain_nothing()
    if alone:
        scope_sockets()
    syscall_filter.install()


def prepare() -> None:
    """Computes what is the same for all containers: children of this process have it."""
    if (name := os.uname().machine) in syscall_filter.MACHINES:
        syscall_filter.compiled(name)
    can_scope_sockets()
    kernel.libc()


def drop_capabilities() -> None:
    kernel.prctl(_PR_SET_SECUREBITS, _SECUREBITS)
    kernel.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for number in range(_MOST_CAPABILITIES):
        try:
            kernel.prctl(_PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            break  # the kernel has no more of them
    use_no_capabilities()


def use_no_capabilities() -> None:
    """Enough for a process that executes no other program."""
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: lower and upper halves
    kernel.function("capset", "at at")(head, none)


def gain_nothing() -> None:
    """no_new_privs: exec of a program with setuid or file capabilities gives nothing."""
    kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """Until exec, no other process of this user may look into this one: it is a copy of the
    launcher, whose memory has variables of other containers in it."""
    kernel.prctl(_PR_SET_DUMPABLE, 0)


@cache
def can_scope_sockets() -> bool:
    """Whether the kernel can keep a process from abstract sockets of others (Landlock, Linux
    6.12). They have no place in the file system, so no mount hides them; a network namespace of
    its own would."""
    try:
        version = _create_ruleset(None, 0, _LANDLOCK_VERSION)
    except OSError:  # not built in, or not switched on
        return False
    return version >= _FIRST_WITH_SCOPES


def scope_sockets() -> None:
    """From now on, this process and its children connect only to abstract sockets of their own.
    Where the kernel cannot do it, nothing changes."""
    if not can_scope_sockets():
        return
    # struct landlock_ruleset_attr: access to files, to the network, scopes.
    wanted = (ctypes.c_uint64 * 3)(0, 0, _SCOPE_ABSTRACT_UNIX_SOCKET)
    rules = _create_ruleset(wanted, ctypes.sizeof(wanted), 0)
    try:
        kernel.system_call(_SYS_LANDLOCK_RESTRICT_SELF, "int int")(rules, 0)
    finally:
        os.close(rules)


def _create_ruleset(wanted: object, size: int, flags: int) -> int:
    return kernel.system_call(_SYS_LANDLOCK_CREATE_RULESET, "at size int")(wanted, size, flags)
