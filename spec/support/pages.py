"""pages.py LISTEN TARGET [CERT KEY] - a proxy before an API server that can turn into a load balancer without
a backend.

HUP: it forwards (also at first). USR1: it closes open connections and answers each request with 404 and a
page of HTML. USR2: likewise, but /api and /apis with 200 and an empty body. It prints a line for each signal.
With CERT and KEY both sides are TLS."""
import asyncio, signal, ssl, sys

listen, target = int(sys.argv[1]), int(sys.argv[2])
mode, open_ones = "pass", set()
PAGE = b"<html><body><h1>404: no such route</h1></body></html>"
front = back = None
if len(sys.argv) > 3:
    front = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    front.load_cert_chain(sys.argv[3], sys.argv[4])
    back = ssl.create_default_context()
    back.check_hostname, back.verify_mode = False, ssl.CERT_NONE


async def pump(reader, writer):
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()


async def page(reader, writer):
    while head := await reader.readuntil(b"\r\n\r\n"):
        path = head.split(b" ")[1].split(b"?")[0]
        empty = mode == "mixed" and path in (b"/api", b"/apis")
        body = b"" if empty else PAGE
        status = b"200 OK" if empty else b"404 Not Found"
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
            % (status, len(body), body)
        )
        await writer.drain()


async def serve(reader, writer):
    task = asyncio.current_task()
    open_ones.add(task)
    try:
        if mode == "pass":
            other = await asyncio.open_connection("127.0.0.1", target, ssl=back)
            await asyncio.gather(pump(reader, other[1]), pump(other[0], writer))
        else:
            await page(reader, writer)
    except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass
    finally:
        open_ones.discard(task)
        writer.close()


def turn(word):
    global mode
    mode = word
    for task in list(open_ones):
        task.cancel()
    print("now: " + word, flush=True)


async def main():
    loop = asyncio.get_running_loop()
    for name, word in (("SIGHUP", "pass"), ("SIGUSR1", "page"), ("SIGUSR2", "mixed")):
        loop.add_signal_handler(getattr(signal, name), turn, word)
    await asyncio.start_server(serve, "127.0.0.1", listen, ssl=front)
    print("now: pass", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
