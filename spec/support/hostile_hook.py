"""hostile_hook.py CERT KEY - a webhook for admission and conversion that gives invalid answers.

Prints its port. The annotation `do` of the (first) object names the answer."""
import base64, json, socketserver, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def answer(do, uid):
    response = {"uid": uid, "allowed": True}
    if do == "insertions":
        response |= patch(add("/x", []), *[add("/x/0", 1)] * 100000)
    elif do == "keys":
        response |= patch(*(add("/data/k%d" % i, "v") for i in range(50000)))
    elif do == "copies":
        copies = ({"op": "copy", "from": "/data", "path": "/data/c%d" % i} for i in range(60))
        response |= patch(add("/data/a", {"a": "b" * 100}), *copies)
    elif do == "document":
        response |= patch({"op": "replace", "path": "", "value": 5})
    elif do == "metadata":
        response |= patch(add("/metadata/managedFields", 5), add("/metadata/uid", {}))
    elif do == "kind":
        response |= patch(add("/kind", "Secret"))
    elif do == "warnings":
        response["warnings"] = ["é" * 1000] * 1000 + ["a\r\nX-Evil: yes"]
    elif do == "code":
        response |= {"allowed": False, "status": {"code": 1000000, "message": "a\r\nX-Evil: yes"}}
    elif do == "uid":
        response["uid"] = "another"
    elif do == "deep":
        return b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":' + b"[" * 1000000
    elif do == "large":
        return b'{"response":"' + b"x" * (20 << 20) + b'"}'
    elif do == "types":
        return b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":[{"uid":1}]}'
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    ).encode()


def converted(do, request):
    objects = request["objects"]
    for o in objects:
        o["apiVersion"] = request["desiredAPIVersion"]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
    if do == "message":
        response["result"] = {"status": "Failed", "message": "m" * (8 << 20)}
    elif do == "kind":
        objects[0]["kind"] += "\0evil"
    elif do == "version":
        objects[0]["apiVersion"] += "\0evil"
    elif do == "labels":
        objects[0]["metadata"]["labels"] = {"no good %d" % i: "x y" for i in range(200000)}
    elif do == "deep":
        return b'{"kind":"ConversionReview","response":' + b"[" * 1000000
    elif do == "large":
        return b'{"response":"' + b"x" * (20 << 20) + b'"}'
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
    return json.dumps(review).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))["request"]
        first = request["objects"][0] if "objects" in request else request["object"]
        do = (first["metadata"].get("annotations") or {}).get("do")
        body = converted(do, request) if "objects" in request else answer(do, request["uid"])
        try:
            self.send_response(307 if do == "redirect" else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the server has enough
            self.close_connection = True


class Server(ThreadingHTTPServer):
    def server_bind(self):  # without a lookup of its own name
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address


server = Server(("127.0.0.1", 0), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = tls.wrap_socket(server.socket, server_side=True)
print("port", server.server_port, flush=True)
server.serve_forever()
