"""recorder.py LISTEN TARGET HEADER [CERT KEY CA] - an HTTP/1.1 proxy between ports of this machine that
prints the requests.

Standard output has a line per request: METHOD PATH VALUE, the value of the named header ("-": none). With
CERT and KEY both sides are TLS; CA verifies the target."""
import asyncio, ssl, sys

listen, target, header = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].lower().encode()
inside = outside = None
if len(sys.argv) > 4:
    inside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    inside.load_cert_chain(sys.argv[4], sys.argv[5])
    outside = ssl.create_default_context(cafile=sys.argv[6])


def told(head):
    lines = head.split(b"\r\n")
    fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(b":") for line in lines[1:])}
    method, path, _ = lines[0].split(b" ", 2)
    print(method.decode(), path.decode(), fields.get(header, b"-").decode(), flush=True)
    return int(fields.get(b"content-length", 0))


async def requests(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            n = told(head)
            writer.write(head)
            writer.write(await reader.readexactly(n))
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def answers(reader, writer):
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def accept(reader, writer):
    try:
        back, forth = await asyncio.open_connection("127.0.0.1", target, ssl=outside)
    except OSError:
        writer.close()
        return
    await asyncio.gather(requests(reader, forth), answers(back, writer))


async def main():
    server = await asyncio.start_server(accept, "127.0.0.1", listen, ssl=inside, limit=2**20)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()

asyncio.run(main())
