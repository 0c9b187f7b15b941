"""`python -m bench.chaos.link LISTEN TARGET`: passes bytes between two Unix sockets. Killed, it is a cut cable;
stopped, a hole that swallows everything."""

import asyncio
import contextlib
import sys
from pathlib import Path


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def serve(listen: str, target: str) -> None:
    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, back), pump(there, writer))

    Path(listen).unlink(missing_ok=True)
    server = await asyncio.start_unix_server(joined, listen)
    Path(listen).chmod(0o777)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:3]))
