"""A stack of small scripts under the real supervisor: `stack.py STORE PORT [NAME=BEHAVIOUR]...`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from srbench_cli import supervisor
from srbench_cli.service_files import store_id
from srbench_cli.stack import Child, StackOptions

ORDER = {"gateway": 0, "executor-0": 1, "grader": 2, "planner": 3, "accounting": 4}
NOTE = """
import os, signal, sys, time, threading
name, store = sys.argv[1], sys.argv[2]
def note(what):
    with open(os.path.join(store, "events"), "a") as file:
        file.write(f"{name} {what} {os.getpid()}\\n")
note("start")
"""
WAIT = """
def stop(*_):
    note("stop"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("listening unix:/x", flush=True)
while True: time.sleep(60)
"""
GATEWAY = """
import http.server, json
port = int(sys.argv[3])
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"version": "sr-bench-1.0", "status": "ready", "store_id": sys.argv[4], "grpc_port": 1})
        self.send_response(200); self.end_headers(); self.wfile.write(body.encode())
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Health)
port = server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()
def stop(*_):
    note("stop"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print(f"listening 127.0.0.1:{port}", flush=True)
while True: time.sleep(60)
"""
DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("listening unix:/x", flush=True)
while True: time.sleep(60)
"""
PARENT = """
import subprocess
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
note(f"grandchild {left.pid}")
"""
BEHAVIOURS = {
    "ok": WAIT,
    "dies": 'print("error [BAD_STORE]: the store is broken", file=sys.stderr); sys.exit(3)',
    "dies-later": 'print("listening unix:/x", flush=True); sys.exit(4)',
    "deaf": DEAF,
    "parent": PARENT + WAIT,
}


def children(options: StackOptions, environment: Mapping[str, str], sockets: Path, token: str) -> tuple[Child, ...]:
    chosen = dict(argument.split("=") for argument in sys.argv[3:])
    found = []
    for name, order in ORDER.items():
        body = NOTE + (GATEWAY if name == "gateway" else BEHAVIOURS[chosen.get(name, "ok")])
        argv = (sys.executable, "-c", body, name, str(options.store), str(options.port), store_id(options.store))
        found.append(Child(name=name, argv=argv, environment=dict(environment), stop_order=order))
    return tuple(found)


class Patient(supervisor.Supervisor):
    """Waits as long as it takes for all but the deaf: a process that is slow to stop is none that does not want to."""

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        deaf = next(kept for kept in self._kept if kept.process is process).child.argv[2].startswith(NOTE + DEAF)
        self._drain_s = 1.0 if deaf else 300.0
        await super()._end(process)


if __name__ == "__main__":
    # However long a machine stands still, a death right after the start is a quick one.
    supervisor.QUICK_DEATH_S, supervisor.BACKOFF_S = 3600.0, (0.01,)
    supervisor.Supervisor = Patient  # type: ignore[misc]
    try:
        supervisor.serve(
            StackOptions(store=Path(sys.argv[1]), port=int(sys.argv[2]), drain_s=0.5, settle_s=0.5), os.environ, children
        )
    except Exception as error:
        print(f"error [{getattr(error, 'reason', 'BUG')}]: {error}", file=sys.stderr)
        sys.exit(6)
