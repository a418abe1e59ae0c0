"""hold.py LISTEN TARGET BYTES - a TCP proxy between ports of this machine that lets each connection receive
BYTES.

It holds further bytes from the target until SIGUSR1; from then on it passes everything. It prints "holding"
when the first bytes are held."""
import asyncio, signal, sys

listen, target, limit = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
go = asyncio.Event()


async def pump(reader, writer, room):
    """room None: no limit."""
    try:
        while piece := await reader.read(65536 if room is None or go.is_set() else max(1, min(room, 65536))):
            if room is not None and not go.is_set():
                room -= len(piece)
                if room < 0:
                    print("holding", flush=True)
                    await go.wait()
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.close()


async def accept(reader, writer):
    try:
        back, forth = await asyncio.open_connection("127.0.0.1", target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, forth, None), pump(back, writer, limit))
    forth.close()
    writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
    server = await asyncio.start_server(accept, "127.0.0.1", listen)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()

asyncio.run(main())
