"""web.py [CERT KEY [CLIENT_CA]] - an HTTP/1.1 server of this machine for ctx.http; prints its port, then a
line for each request.

/echo answers with the request, /status/N with that code, /to?URL with a redirect to the URL, /big/N with N
bytes; /text, /gaps, /bytes and /broken have bodies that are not JSON; /hang never answers; /lines/N has N
lines, one by one, and /flow bytes without end; /half sends half an answer, /open a line and no end. A printed
line has the method, the path with its query, and the body."""
import json, ssl, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

never = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, kind, body, more=()):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, word, rest):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for i in range(int(rest or 1)):
                self.chunk(b"line %d\n" % (i + 1))
            while word == "flow":
                self.chunk(b"x" * 65536)
        except OSError:
            print("the reader of", self.path, "has gone", flush=True)
            self.close_connection = True
            return
        if word == "open":
            self.rfile.read(1)
            print("the reader of", self.path, "has gone", flush=True)
        if word == "lines":
            self.chunk(b"the rest")
            self.chunk(b"")
        else:
            self.close_connection = True

    def serve(self):
        n = int(self.headers.get("content-length", 0))
        body = self.rfile.read(n)
        print(self.command, self.path, body.decode(errors="replace"), flush=True)
        path, _, query = self.path.partition("?")
        word, _, rest = path[1:].partition("/")
        if word == "echo":
            said = {
                "method": self.command,
                "path": self.path,
                "peer": self.client_address[1],
                "body": body.decode(errors="replace"),
                "headers": {k.lower(): v for k, v in self.headers.items()},
            }
            self.answer(200, "application/json", json.dumps(said).encode(), [("X-Two", "a"), ("X-Two", "b")])
        elif word == "status":
            told = self.headers.get("Authorization", "")
            self.answer(int(rest), "text/plain", ("no: " + told).encode(), [("Retry-After", "7")])
        elif word == "to":
            self.answer(int(rest or 302), "text/plain", b"", [("Location", unquote(query))])
        elif word == "big":
            self.answer(200, "text/plain", b"x" * int(rest))
        elif word == "gaps":
            self.answer(200, "text/plain", b"a\n\nb\n")
        elif word == "bytes":
            self.answer(200, "application/octet-stream", b"\x00\xff\xfe")
        elif word == "broken":
            self.answer(200, "application/json", b'{"a":')
        elif word in ("lines", "flow", "half", "open"):
            self.stream(word, rest)
        elif word == "hang":
            never.wait()
        else:
            self.answer(200, "text/plain", b"a text")

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:
        context.load_verify_locations(sys.argv[3])
        context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_port, flush=True)
server.serve_forever()
