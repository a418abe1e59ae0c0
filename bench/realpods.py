"""realpods.py - the pods of a file of gen.py's in a kube-apiserver of realserver.py, for clients that list
them from a server that is real: TLS, HTTP/2, gzip, protobuf.

They go into etcd as JSON, which an API server reads as well as what it writes itself; through its door their
status would be lost, and 20,000 creates take minutes. Anybody may do anything there: the clients of the other
sections have no credentials, and it listens on the loopback."""
import base64
import json
import time
import urllib.request

AT_ONCE = 100                       # puts in one transaction of etcd; it takes 128


def put(etcd, pods):
    puts = [
        {
            'requestPut': {
                'key': base64.b64encode(
                    f'/registry/pods/{p["metadata"]["namespace"]}/{p["metadata"]["name"]}'.encode()
                ).decode(),
                'value': base64.b64encode(
                    json.dumps({'kind': 'Pod', 'apiVersion': 'v1', **p}, separators=(',', ':')).encode()
                ).decode(),
            }
        }
        for p in pods
    ]
    body = json.dumps({'success': puts}).encode()
    urllib.request.urlopen(
        urllib.request.Request(etcd + '/v3/kv/txn', body, {'Content-Type': 'application/json'}), timeout=60
    ).read()


def load(server, data):
    """Fills the server; how many there are. When it returns, a list of all comes out of the server's own
    cache."""
    with open(data) as f:
        pods = json.load(f)['items']
    for i in range(0, len(pods), AT_ONCE):
        put(f'http://127.0.0.1:{server.port + 1}', pods[i:i + AT_ONCE])
    server.kubectl(
        'create', 'clusterrolebinding', 'anybody', '--clusterrole=cluster-admin', '--user=system:anonymous'
    )
    for _ in range(600):
        listed = json.loads(server.kubectl('get', '--raw', '/api/v1/pods?limit=1'))
        if listed['items'] and listed['metadata'].get('remainingItemCount', 0) + 1 == len(pods):
            return len(pods)
        time.sleep(.2)
    raise RuntimeError('the API server does not see the pods that are in its etcd')
