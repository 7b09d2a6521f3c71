"""Hostile programs against both backends: each ends within its limits, gets nothing, and leaves nothing."""

from __future__ import annotations

import contextlib
import os
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from srbench_grader.sandbox.limits import MIB, Limits
from srbench_grader.sandbox.session import Finished
from srbench_grader.sandbox.values import Program, Sandbox
from srbench_kit.ids import uuid7_hex

from tests.waiting import until

# Who ends by itself has time enough on a machine that stands still for a while.
LIMITS = Limits(wall_s=60, memory_bytes=192 * MIB, process_count=48, disk_bytes=32 * MIB, output_bytes=4 * MIB, cpus=1.0)
# A sandbox that does not end its program would wait for ever.
SLACK_S = 60.0


def run(sandbox: Sandbox, code: str, wall_s: float = LIMITS.wall_s, **mounts: Path) -> Finished:
    limits = Limits(
        wall_s=wall_s,
        memory_bytes=LIMITS.memory_bytes,
        process_count=LIMITS.process_count,
        disk_bytes=LIMITS.disk_bytes,
        output_bytes=LIMITS.output_bytes,
    )
    began = time.monotonic()
    places = {f"/{name}": path for name, path in mounts.items()}
    finished = sandbox.start(Program(python=("-I", "-c", code), mounts=places), limits).finish()
    assert time.monotonic() - began < wall_s + SLACK_S
    return finished


def nobody(whose: str) -> bool:
    """Whether no process has `whose` in its command line or as its name."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if whose in (folder / "cmdline").read_text(errors="replace") + (folder / "comm").read_text(errors="replace"):
                return False
    return True


def said(finished: Finished) -> str:
    return finished.stdout.decode("utf-8", "replace").strip()


def test_an_honest_program_gets_what_it_needs(sandbox: Sandbox) -> None:
    code = (
        "import subprocess, sys, tempfile, threading, json\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.run([sys.executable, '-c', 'print(6*7)'], capture_output=True, text=True).stdout.strip())\n"
        "open(tempfile.mkstemp()[1], 'w').write('x')\n"
        "sys.exit(3)"
    )
    finished = run(sandbox, code)
    assert (said(finished), finished.end, finished.exit_code) == ("thread\n42", "exited", 3)


def test_input_and_output_pass_through(sandbox: Sandbox) -> None:
    program = Program(python=("-I", "-c", "import sys; sys.stdout.write(sys.stdin.read()[::-1])"))
    finished = sandbox.start(program, LIMITS).finish(b"abc" * 200_000)
    assert finished.stdout == (b"abc" * 200_000)[::-1]


def test_a_memory_bomb_is_ended(sandbox: Sandbox) -> None:
    finished = run(sandbox, "x = []\nwhile True: x.append(bytearray(8 << 20))")
    assert (finished.end, said(finished)) == ("exited", "")
    assert finished.exit_code != 0


def test_a_fork_bomb_ends_with_its_sandbox(sandbox: Sandbox) -> None:
    mark = f"bomb-{os.getpid()}-{uuid7_hex()}"
    finished = run(sandbox, f"'{mark}'\nimport os\nwhile True:\n  try: os.fork()\n  except OSError: pass", wall_s=3)
    assert finished.end in ("timeout", "exited")
    assert finished.wall_s < 3 + SLACK_S
    until(lambda: nobody(mark))


def test_processes_are_counted(sandbox: Sandbox) -> None:
    code = (
        "import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(600); os._exit(0)\n    n += 1\n"
        "except OSError: pass\nprint(n)"
    )
    assert int(said(run(sandbox, code))) <= LIMITS.process_count


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_a_disk_filler_is_stopped(sandbox: Sandbox, place: str) -> None:
    code = (
        f"n = 0\ntry:\n  for i in range(64):\n    with open('{place}/%d' % i, 'wb') as f: f.write(b'x' * (4 << 20))\n"
        "    n += 4\nexcept OSError as e: pass\nprint(n)"
    )
    finished = run(sandbox, code)
    # Ended by the memory that it fills, or told that the disk is full.
    assert finished.exit_code == 137 or int(said(finished)) <= LIMITS.disk_bytes // MIB


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/lib", "/etc", "/dev", "/proc/sys/kernel", "/sys", "/root", "/var"])
def test_nothing_else_can_be_written(sandbox: Sandbox, folder: str) -> None:
    code = f"open('{folder}/srbench-was-here', 'w').write('x'); print('WROTE')"
    finished = run(sandbox, code)
    assert "WROTE" not in said(finished)
    assert not Path(folder, "srbench-was-here").exists()


@pytest.mark.parametrize(
    "code",
    [
        "while True: print('x' * 10000)",
        "import sys\nprint(1)\nwhile True: sys.stderr.write('e' * 10000)",
        "import os\nwhile True: os.write(1, b'\\0' * 65536)",
    ],
)
def test_endless_output_is_cut_while_it_is_read(sandbox: Sandbox, code: str) -> None:
    before = memory_mib()
    finished = run(sandbox, code)
    assert finished.end == "output_limit"
    assert len(finished.stdout) <= LIMITS.output_bytes
    assert memory_mib() - before < 64


def memory_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import signal, time\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)",
        "while True: pass",
        "import os, time\nos.close(1); os.close(2); time.sleep(60)",
    ],
)
def test_time_is_over_for_everybody(sandbox: Sandbox, code: str) -> None:
    finished = run(sandbox, code, wall_s=2)
    assert finished.end == "timeout"
    assert finished.wall_s < 2 + SLACK_S


def test_a_daemon_dies_with_its_sandbox(sandbox: Sandbox) -> None:
    mark = f"d{uuid7_hex()[-14:]}"
    code = (
        f"import os, time\nreads, writes = os.pipe()\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
        f"    open('/proc/self/comm', 'w').write('{mark}')\n    os.close(writes)\n    time.sleep(600)\n  os._exit(0)\n"
        "os.close(writes)\nos.read(reads, 1)\nprint('left')"
    )
    assert said(run(sandbox, code)) == "left"
    until(lambda: nobody(mark))


@pytest.fixture
def listener() -> Iterator[int]:
    """A server on this machine's loopback that would greet whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def serve() -> None:
            server.settimeout(0.1)
            while not stop.is_set():
                try:
                    server.accept()[0].sendall(b"hello")
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        stop.set()
        thread.join()


def test_there_is_no_network(sandbox: Sandbox, listener: int) -> None:
    code = (
        "import socket\n"
        f"for where in (('127.0.0.1', {listener}), ('172.17.0.1', {listener}), ('8.8.8.8', 53)):\n"
        "  try: socket.create_connection(where, 1); print('CONNECTED', where)\n  except OSError: pass\n"
        "try: print('FOUND', socket.getaddrinfo('example.org', 80))\nexcept OSError: pass\n"
        "try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('RAW')\nexcept OSError: pass\n"
        "print('done')"
    )
    assert said(run(sandbox, code)) == "done"


def test_sockets_of_the_host_are_out_of_reach(sandbox: Sandbox, tmp_path: Path) -> None:
    path, name = tmp_path / "s", f"\0srbench-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as file, socket.socket(socket.AF_UNIX) as abstract:
        file.bind(str(path))
        file.listen()
        abstract.bind(name)
        abstract.listen()
        code = (
            f"import socket\nfor where in ({str(path)!r}, {name!r}, '/var/run/docker.sock'):\n"
            "  try: socket.socket(socket.AF_UNIX).connect(where); print('CONNECTED', where)\n  except OSError: pass\n"
            "print('done')"
        )
        assert said(run(sandbox, code)) == "done"


def test_the_environment_holds_nothing_of_ours(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SR_BENCH_SECRET_OF_THE_HOST", "hunter2")
    code = (
        "import glob, os\nfound = [str(dict(os.environ))]\n"
        "for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):\n"
        "  try: found.append(open(path, 'rb').read().decode('utf-8', 'replace'))\n  except OSError: pass\n"
        "print('hunter' + '2' in ' '.join(found), 'SR_BENCH' + '_' in ' '.join(found))"
    )
    assert said(run(sandbox, code)) == "False False"


def test_files_of_the_host_are_not_there(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    os.chmod(secret, 0o644)
    code = (
        "import os\n"
        f"for path in ({str(secret)!r}, '/root', '/home', '/etc/shadow', '/var/run', '/proc/1/root{secret}',"
        f" '/proc/self/root{secret}', '/proc/kcore', '/dev/mem', '/dev/sda'):\n"
        "  try: print('READ', path, (os.path.isdir(path) and os.listdir(path)) or open(path).read(10))\n"
        "  except OSError: pass\n"
        "print('done')"
    )
    lines = [line for line in said(run(sandbox, code)).splitlines() if "hunter2" in line or not line.startswith("READ")]
    assert lines == ["done"]


def test_other_processes_are_not_seen_and_cannot_be_ended(sandbox: Sandbox) -> None:
    code = (
        "import os, signal\n"
        f"for pid in ({os.getpid()}, {os.getppid()}, 1):\n"
        "  try: os.kill(pid, signal.SIGKILL)\n  except OSError: pass\n"
        "print(len([n for n in os.listdir('/proc') if n.isdigit()]) < 10)"
    )
    assert said(run(sandbox, code)) in ("True", "")
    os.kill(os.getpid(), 0)


def test_tasks_do_not_see_each_other(sandbox: Sandbox) -> None:
    run(sandbox, "import os\nfor d in ('/tmp', '/dev/shm'): open(d + '/note', 'w').write('x')")
    assert said(run(sandbox, "import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'))")) == "[] []"


def test_links_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    code = (
        "import os\nos.chdir('/tmp')\n"
        f"os.symlink({str(secret)!r}, 'a'); os.symlink('/proc/1/root{secret}', 'b'); os.symlink('/' * 4000, 'c')\n"
        "os.makedirs('d/' * 900)\n"
        "for name in 'abc':\n"
        "  try: print('READ', open(name).read(7))\n  except OSError: pass\n"
        "try:\n  os.link('/usr/bin/env', 'e'); print('LINKED')\nexcept OSError: pass\n"
        "print('done')"
    )
    assert said(run(sandbox, code)) == "done"


def test_an_archive_that_climbs_out_stays_in(sandbox: Sandbox, tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("../../../../../../srbench-escaped", "/srbench-absolute"):
            tar.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("out/srbench-through-a-link"))
    os.chmod(tmp_path, 0o755)
    for parent in archive.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    code = (
        "import tarfile\ntry:\n  t = tarfile.open('/evil'); t.extraction_filter = lambda m, p: m; t.extractall('/tmp')\n"
        "except OSError: pass\nprint('done')"
    )
    assert said(run(sandbox, code, evil=archive)) == "done"
    names = ("srbench-escaped", "srbench-absolute", "srbench-through-a-link")
    assert not [name for name in names if Path("/", name).exists() or Path("/tmp", name).exists()]


def test_what_is_mounted_can_be_read_and_not_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    shown = tmp_path / "data"
    shown.write_text("data")
    for parent in (shown, *shown.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    code = "print(open('/shown').read())\ntry: open('/shown', 'a').write('x'); print('WROTE')\nexcept OSError: pass"
    assert said(run(sandbox, code, shown=shown)) == "data"
    assert shown.read_text() == "data"


def test_privileges_cannot_be_had(sandbox: Sandbox) -> None:
    code = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)\n"
        "print(os.getuid() != 0, int(status['CapEff'], 16), status['NoNewPrivs'], status['Seccomp'])\n"
        "print([libc.unshare(0x10000000), libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.chroot(b'/tmp'),"
        " libc.ptrace(0, 0, 0, 0) if False else -1])\n"
        "try: os.setuid(0); print('ROOT')\nexcept OSError: pass"
    )
    assert said(run(sandbox, code)) == "True 0 1 2\n[-1, -1, -1, -1]"


def test_a_client_that_dies_takes_its_program_with_it(bwrap: Sandbox) -> None:
    session = bwrap.start(Program(python=("-I", "-c", "import time; print('up', flush=True); time.sleep(600)")), LIMITS)
    session.close()
    assert not session.alive
    session.close()
