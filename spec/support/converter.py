"""converter.py CERT KEY - an HTTPS server of this machine that converts Gizmos between v1 and v2; prints its
port, then for each call the wanted version and the names of the objects.

v1 has spec.size ("3x4", "3x4x5"), v2 spec.width, spec.height and spec.depth; a label "converted" names the
version to which an object was converted. The annotation `do` names what happens to an object on its way to
v2: an error, or the loss of its labels ("bare")."""
import json, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def convert(o, version):
    o = json.loads(json.dumps(o))
    spec = o.get("spec", {})
    o["apiVersion"] = version
    if version.endswith("/v2") and "size" in spec:
        for name, n in zip(("width", "height", "depth"), spec.pop("size").split("x")):
            spec[name] = int(n)
    elif version.endswith("/v1") and "width" in spec:
        spec["size"] = "x".join(str(spec.pop(name)) for name in ("width", "height", "depth") if name in spec)
    o["metadata"].setdefault("labels", {})["converted"] = version.rpartition("/")[2]
    o["metadata"]["generation"] = 77
    return o


# What the metadata of an object gets.
METADATA = {
    "label value": {"labels": {"a": "no good"}},
    "label key": {"labels": {"no good/": "a"}},
    "long label": {"labels": {"a": "x" * 64}},
    "labels list": {"labels": ["a"]},
    "annotation key": {"annotations": {"no good": "a"}},
    "large annotation": {"annotations": {"a": "x" * (257 << 10)}},
    "annotation number": {"annotations": {"a": 1}},
    "finalizers": {"finalizers": ["example.com/stay"]},
    "deletion": {"deletionTimestamp": "2020-01-01T00:00:00Z"},
    "owners": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "1"}]},
    "resource version": {"resourceVersion": "1"},
    "numbers": {"generation": "x", "resourceVersion": 7, "managedFields": "x", "creationTimestamp": {}},
}


def answer(review):
    request = review["request"]
    version, objects = request["desiredAPIVersion"], request["objects"]
    done = [convert(o, version) for o in objects]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": done}
    code = 200
    for o in done:
        what = o["metadata"].get("annotations", {}).get("do") if version.endswith("/v2") else None
        if what == "fail":
            response["result"] = {"status": "Failure", "message": "no way to " + version}
        elif what == "silent":
            response["result"] = {"status": "Failed"}
        elif what == "rename":
            o["metadata"]["name"] = "other"
        elif what == "fewer":
            response["convertedObjects"] = []
        elif what == "kind":
            o["kind"] = "Gadget"
        elif what == "version":
            o["apiVersion"] = "example.com/v9"
        elif what == "uid":
            response["uid"] = "mine"
        elif what == "label":
            o["metadata"]["labels"] = {"a": 1}
        elif what in METADATA:
            o["metadata"].update(METADATA[what])
        elif what == "namespace":
            o["metadata"]["namespace"] = "kube-system"
        elif what == "another":
            o["metadata"]["uid"] = "another"
        elif what == "bare metadata":
            o["metadata"] = {"name": o["metadata"]["name"], "namespace": o["metadata"]["namespace"],
                             "uid": o["metadata"]["uid"]}
        elif what == "no metadata":
            del o["metadata"]
        elif what == "list metadata":
            o["metadata"] = []
        elif what == "map":
            response["convertedObjects"] = {"a": o}
        elif what == "text":
            response["convertedObjects"] = "o"
        elif what == "null":
            response["convertedObjects"] = [None]
        elif what == "more":
            response["convertedObjects"] = [o, o]
        elif what == "no response":
            response = None
        elif what == "bare":
            del o["metadata"]["labels"]
        elif what == "500":
            code = 500
    return code, {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        request = review["request"]
        print(self.path, review["apiVersion"], request["desiredAPIVersion"],
              " ".join(o["metadata"]["name"] for o in request["objects"]), flush=True)
        code, said = answer(review)
        body = b"out of order" if code == 500 else json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if code == 500 else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
