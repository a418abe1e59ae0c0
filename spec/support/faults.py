"""faults.py LISTEN TARGET FAULTS SEED - a TCP proxy between ports of this machine that breaks FAULTS of its
connections.

Nothing breaks before the first byte has passed. Then the faults come one after the other. Each comes when
some bytes have passed since the previous one, so that it hits work, and after a random delay; it may also hit
an idle connection. Standard output has a line per fault and "all faults are over" at the end; from then on
the proxy only forwards. SEED decides the kinds of the faults and the bytes between them; the connection that
a fault hits also depends on which are open then."""
import asyncio, random, socket, struct, sys

listen, target, faults, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
BETWEEN = (0.005, 0.12)      # seconds
AT_LEAST = (1, 64 * 1024)    # bytes between two faults
STALL = (0.05, 1.5)          # seconds
PIECE = 64 * 1024

links, passed, news = set(), 0, asyncio.Condition()
refuse = 0                   # so many connections are reset as soon as they come


def say(text):
    print(text, flush=True)


def reset(writer):
    """Closes with a RST."""
    s = writer.get_extra_info("socket")
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    writer.transport.abort()


class Link:
    """A connection: two pumps, and what is to happen to it."""

    def __init__(self, client, server):
        self.client, self.server = client, server        # (reader, writer) each
        self.go = asyncio.Event()
        self.go.set()
        self.torn = False                                # the next piece passes in part, then all is reset

    def tear(self):
        for _, writer in (self.client, self.server):
            reset(writer)

    def close(self):
        for _, writer in (self.client, self.server):
            writer.close()

    async def pump(self, reader, writer):
        global passed
        try:
            while piece := await reader.read(PIECE):
                await self.go.wait()
                if self.torn:
                    writer.write(piece[:len(piece) // 2])
                    self.tear()
                    return
                writer.write(piece)
                await writer.drain()
                passed += len(piece)
                async with news:
                    news.notify_all()
            if writer.can_write_eof():
                writer.write_eof()
        except (OSError, RuntimeError):
            self.tear()

    async def run(self):
        links.add(self)
        try:
            await asyncio.gather(
                self.pump(self.client[0], self.server[1]), self.pump(self.server[0], self.client[1])
            )
        finally:
            links.discard(self)
            self.close()


async def stall(link, then):
    """Nothing passes for a while; then it goes on, or breaks."""
    link.go.clear()
    await asyncio.sleep(rng.uniform(*STALL))
    link.go.set()
    if then == "reset":
        link.tear()


def half_close(link, side):
    """One side hears the end of the other, which still talks."""
    try:
        side[1].write_eof()
    except (OSError, RuntimeError):
        link.tear()


def hit(link, what):
    global refuse
    if what == "cut":
        link.close()
    elif what == "reset":
        link.tear()
    elif what == "torn piece":
        link.torn = True
    elif what == "half close to the client":
        half_close(link, link.client)
    elif what == "half close to the server":
        half_close(link, link.server)
    elif what == "all reset, next refused":
        refuse = rng.randint(1, 3)
        for each in list(links):
            each.tear()
    else:
        asyncio.ensure_future(stall(link, what.split()[-1]))


WHAT = [
    "cut",
    "reset",
    "torn piece",
    "half close to the client",
    "half close to the server",
    "all reset, next refused",
    "stall then on",
    "stall then reset",
]


async def trouble():
    for i in range(1, faults + 1):
        begin, least = passed, rng.randint(*AT_LEAST)
        what, pause, draw = rng.choice(WHAT), rng.uniform(*BETWEEN), rng.random()
        async with news:
            await news.wait_for(lambda: links and passed >= begin + least)
        await asyncio.sleep(pause)
        open_now = [each for each in links]
        if open_now:
            hit(open_now[int(draw * len(open_now))], what)
        else:
            what += " (of nobody: all had gone)"
        say(f"fault {i}: {what}")
    say("all faults are over")


async def accept(reader, writer):
    global refuse
    if refuse > 0:
        refuse -= 1
        reset(writer)
        return
    try:
        server = await asyncio.open_connection("127.0.0.1", target)
    except OSError:
        reset(writer)
        return
    await Link((reader, writer), server).run()


async def main():
    server = await asyncio.start_server(accept, "127.0.0.1", listen)
    say("listening")
    async with server:
        await asyncio.gather(server.serve_forever(), trouble())

asyncio.run(main())
