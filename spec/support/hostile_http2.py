"""hostile_http2.py CERT KEY TRICK... - for each trick an HTTP/2 server that plays it on every request.

Prints "port N TRICK" for each. It makes frames by hand, because no library sends such frames."""
import socket, ssl, struct, sys, threading, time, zlib

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
STATUS_200 = b"\x88"


def frame(kind, flags, stream, body=b"", length=None):
    size = len(body) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def header(name, value):
    """A literal that no table remembers; both parts are shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


MORE = header(b"x-more", b"and more " * 10)
JSON = header(b"content-type", b"application/json")


def head(i):
    return frame(HEADERS, END_HEADERS, i, STATUS_200 + JSON)


class Line:
    def __init__(self, sock, trick):
        self.sock, self.trick = sock, trick

    def send(self, data):
        self.sock.sendall(data)

    def flood(self, data):
        """Sends it until the other side has enough."""
        data *= max(1, 16384 // len(data))
        while True:
            self.send(data)

    # Each is what a server answers to stream i.
    def hints(self, i):
        self.flood(frame(HEADERS, END_HEADERS, i, header(b":status", b"103")))

    def headers(self, i):
        self.send(frame(HEADERS, 0, i, STATUS_200))
        self.flood(frame(CONTINUATION, 0, i, MORE))

    def continuations(self, i):
        self.send(frame(HEADERS, 0, i, STATUS_200))
        self.flood(frame(CONTINUATION, 0, i))

    def table(self, i):
        """One header of 4 KB in the table, then 3 million references to it: 13 GB."""
        long = b"\x40\x03x-b\x7f" + bytes([(4000 - 127) % 128 + 128, (4000 - 127) // 128]) + b"v" * 4000
        self.send(frame(HEADERS, 0, i, STATUS_200 + long))
        for _ in range(200):
            self.send(frame(CONTINUATION, 0, i, b"\xbe" * 16000))

    def trailers(self, i):
        self.send(head(i) + frame(DATA, 0, i, b"{}") + frame(HEADERS, 0, i, MORE))
        self.flood(frame(CONTINUATION, 0, i, MORE))

    def settings(self, i):
        self.flood(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * 100))

    def pings(self, i):
        self.flood(frame(PING, 0, 0, b"12345678"))

    def pongs(self, i):
        self.flood(frame(PING, ACK, 0, b"12345678"))

    def grants(self, i):
        self.send(head(i))
        self.flood(frame(WINDOW, 0, i, struct.pack(">I", 1)))

    def nothing(self, i):
        self.send(head(i))
        self.flood(frame(DATA, 0, i))

    def pushes(self, i):
        promise = lambda k: frame(PUSH, END_HEADERS, i, struct.pack(">I", 2 + 2 * k) + STATUS_200)
        self.flood(b"".join(promise(k) for k in range(600)))

    def goaway(self, i):
        self.send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 11)))

    def refused(self, i):
        self.send(frame(RESET, 0, i, struct.pack(">I", 7)))

    def window(self, i):
        self.send(head(i) + frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2)

    def huge(self, i):
        self.send(head(i) + frame(DATA, 0, i, b"x" * 100, length=0xFFFFFF))

    def bomb(self, i):
        self.send(frame(HEADERS, END_HEADERS, i, STATUS_200 + JSON + header(b"content-encoding", b"gzip")))
        z = zlib.compressobj(9, zlib.DEFLATED, 31)
        data = b"".join(z.compress(b"a" * (1 << 20)) for _ in range(100)) + z.flush()
        for at in range(0, len(data), 16000):
            self.send(frame(DATA, 0, i, data[at:at + 16000]))
        self.send(frame(DATA, END_STREAM, i))

    def silent(self, i):
        pass

    def drops(self, i):
        self.send(head(i))
        while True:
            self.send(frame(DATA, 0, i, b" "))
            time.sleep(0.02)

    def closed(self, i):
        """A window of 0, so that a body cannot be sent."""

    def serve(self):
        self.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0 if self.trick == "closed" else 65535)))
        came = b""
        while data := self.sock.recv(65536):
            came += data
            came = came.removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            while len(came) >= 9 and len(came) >= 9 + int.from_bytes(came[:3], "big"):
                kind, flags, stream = came[3], came[4], int.from_bytes(came[5:9], "big")
                came = came[9 + int.from_bytes(came[:3], "big"):]
                if kind == SETTINGS and not flags & ACK:
                    self.send(frame(SETTINGS, ACK, 0))
                elif kind == HEADERS:
                    getattr(self, self.trick)(stream)


def talk(tls, sock, trick):
    try:
        with tls.wrap_socket(sock, server_side=True) as line:
            Line(line, trick).serve()
    except OSError:  # the client has enough
        pass


def accept(tls, listener, trick):
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=talk, args=(tls, sock, trick), daemon=True).start()


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
tls.set_alpn_protocols(["h2"])
for trick in sys.argv[3:]:
    listener = socket.create_server(("127.0.0.1", 0))
    print("port", listener.getsockname()[1], trick, flush=True)
    threading.Thread(target=accept, args=(tls, listener, trick), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
