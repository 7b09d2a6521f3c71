"""A filter of system calls for bubblewrap: what untrusted programs have no use for and kernels have had faults in."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_LOAD, _JUMP_EQUAL, _JUMP_GE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# Offsets in `struct seccomp_data`: the number, the architecture, the low half of the first and of the second argument.
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
# Every CLONE_NEW* flag that clone takes.
_NEW_NAMESPACES = 0x7E020080
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


@dataclass(frozen=True, slots=True)
class _Machine:
    """System call numbers of one architecture. `audit` is the kernel's name for it."""

    audit: int
    clone: int
    ioctl: int
    refused: Mapping[str, int]


# The same on all architectures since 5.1 and for the calls of the generic table.
_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
}
_CLONE3 = 435
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        56,
        16,
        _COMMON
        | {"ptrace": 101, "syslog": 103, "personality": 135, "pivot_root": 155, "acct": 163, "chroot": 161, "mount": 165}
        | {"umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175}
        | {"delete_module": 176, "quotactl": 179, "mbind": 237, "set_mempolicy": 238, "kexec_load": 246, "add_key": 248}
        | {"request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272, "vmsplice": 278, "move_pages": 279}
        | {"perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308}
        | {"process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320}
        | {"bpf": 321, "userfaultfd": 323},
    ),
    "aarch64": _Machine(
        0xC00000B7,
        220,
        29,
        _COMMON
        | {"umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "vmsplice": 75, "acct": 89}
        | {"personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116}
        | {"ptrace": 117, "reboot": 142, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225}
        | {"mbind": 235, "set_mempolicy": 237, "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241}
        | {"name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270}
        | {"process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282}
        | {"kexec_file_load": 294},
    ),
}


def program(machine: str = "") -> bytes:
    """The filter as classic BPF, as the kernel takes it; empty for an architecture without a table here.

    Refused calls fail with EPERM. clone3 fails with ENOSYS: its flags lie in memory, out of a filter's sight, and only
    ENOSYS makes the C library fall back to clone, without which threads could not start.
    """
    found = _MACHINES.get(machine or platform.machine())
    if found is None:
        return b""
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    code = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, found.audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if machine in ("", "x86_64") and found.audit == 0xC000003E:
        # The x32 calls of the same kernel have numbers from here on.
        code += [(_JUMP_GE, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    code += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    code += [(_JUMP_EQUAL, 0, 4, found.clone), (_LOAD, 0, 0, _FIRST), (_JUMP_BITS, 0, 1, _NEW_NAMESPACES), refuse]
    code += [(_RETURN, 0, 0, _ALLOW)]
    code += [(_JUMP_EQUAL, 0, 5, found.ioctl), (_LOAD, 0, 0, _SECOND), (_JUMP_EQUAL, 1, 0, _TIOCSTI)]
    code += [(_JUMP_EQUAL, 0, 1, _TIOCLINUX), refuse, (_RETURN, 0, 0, _ALLOW)]
    for number in sorted(found.refused.values()):
        code += [(_JUMP_EQUAL, 0, 1, number), refuse]
    code += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)
