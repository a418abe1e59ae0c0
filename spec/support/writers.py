"""writers.py URL FILE - creates ConfigMaps over several connections, and patches and deletes every third one,
until the server is gone. Writes a line for each acknowledged write: "put NAME RESOURCEVERSION" or "cut
NAME"."""
import http.client
import json
import sys
import threading
import urllib.parse

address, out = urllib.parse.urlparse(sys.argv[1]).netloc, open(sys.argv[2], "a", buffering=1)
lock = threading.Lock()
PATH = "/api/v1/namespaces/default/configmaps"


def say(line):
    with lock:
        out.write(line + "\n")


def ask(connection, method, path, body=None, kind="application/json"):
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise OSError(text)
    return json.loads(text)


def write(worker):
    connection, i = http.client.HTTPConnection(address, timeout=60), 0
    try:
        while True:
            name = f"w{worker}-{i}"
            made = ask(connection, "POST", PATH, {"metadata": {"name": name}, "data": {"a": "x" * 300}})
            say(f"put {name} {made['metadata']['resourceVersion']}")
            if i % 3 == 1:
                made = ask(connection, "PATCH", f"{PATH}/{name}", {"data": {"b": "1"}},
                           "application/merge-patch+json")
                say(f"put {name} {made['metadata']['resourceVersion']}")
            elif i % 3 == 2:
                say(f"cutting {name}")
                ask(connection, "DELETE", f"{PATH}/{name}")
                say(f"cut {name}")
            i += 1
    except (OSError, http.client.HTTPException):
        pass


threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
