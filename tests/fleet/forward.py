"""`python forward.py FRONT BACK COMMAND…`: runs COMMAND and passes connections from 0.0.0.0:FRONT to 127.0.0.1:BACK.

The testbed listens on the loopback alone; in a container nobody else is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def main(front: int, back: int, command: list[str]) -> None:
    child = subprocess.Popen(command)  # noqa: ASYNC220 - once, at the start

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection("127.0.0.1", back)
        await asyncio.gather(pump(reader, behind[1]), pump(behind[0], writer))

    server = await asyncio.start_server(serve, "0.0.0.0", front)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with server:
        await stopped.wait()
    child.terminate()
    child.wait()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
