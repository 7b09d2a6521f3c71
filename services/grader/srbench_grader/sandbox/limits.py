"""The bounds of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one sandbox, all its processes together.

    Attributes:
        wall_s: longest life, from its start.
        cpus: share of processors.
        memory_bytes: most memory; its temporary files count.
        process_count: most processes and threads at a time.
        disk_bytes: size of the only writable folder, `/tmp`, which lies in memory.
        output_bytes: most bytes of standard output, and of standard error, that are read before it is ended.
    """

    wall_s: float = 300.0
    cpus: float = 1.0
    memory_bytes: int = 2048 * MIB
    process_count: int = 128
    disk_bytes: int = 256 * MIB
    output_bytes: int = 64 * MIB
