"""snapshot.py - a cluster as `kubectl get nodes,pods -A -o json` or `-o yaml` prints it: indented, with all
that a server fills in, without managedFields. `write` returns how many bytes that is."""
import json
import os

PODS_OF_NODE = 30


def node(i):
    return {
        'apiVersion': 'v1',
        'kind': 'Node',
        'metadata': {
            'annotations': {
                'node.alpha.kubernetes.io/ttl': '0',
                'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
            },
            'creationTimestamp': '2026-01-01T00:00:00Z',
            'labels': {
                'kubernetes.io/arch': 'amd64',
                'kubernetes.io/hostname': f'node-{i}',
                'kubernetes.io/os': 'linux',
            },
            'name': f'node-{i}',
            'resourceVersion': str(1000 + i),
            'uid': f'22222222-0000-4000-8000-{i:012d}',
        },
        'spec': {'podCIDR': f'10.{i // 256}.{i % 256}.0/24'},
        'status': {
            'allocatable': {'cpu': '32', 'memory': '128Gi', 'pods': '250'},
            'capacity': {'cpu': '32', 'memory': '128Gi', 'pods': '250'},
            'conditions': [
                {
                    'lastHeartbeatTime': '2026-01-01T00:05:00Z',
                    'lastTransitionTime': '2026-01-01T00:00:00Z',
                    'message': f'kubelet says {kind}',
                    'reason': f'Kubelet{kind}',
                    'status': 'True' if kind == 'Ready' else 'False',
                    'type': kind,
                }
                for kind in ('MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready')
            ],
            'images': [
                {'names': [f'registry.example/image-{k}:1.2.3'], 'sizeBytes': 1000000 * k} for k in range(20)
            ],
            'nodeInfo': {'architecture': 'amd64', 'kubeletVersion': 'v1.34.0', 'operatingSystem': 'linux'},
        },
    }


def pod(k, on):
    app = k % 50
    return {
        'apiVersion': 'v1',
        'kind': 'Pod',
        'metadata': {
            'annotations': {'prometheus.io/port': '8080', 'prometheus.io/scrape': 'true'},
            'creationTimestamp': '2026-01-01T00:00:00Z',
            'generateName': f'web-{app}-7d9c6bf5c-',
            'labels': {
                'app': f'web-{app}',
                'koordinator.sh/qosClass': 'LS',
                'pod-template-hash': '7d9c6bf5c',
            },
            'name': f'web-{k}-7d9c6bf5c-x2k4q',
            'namespace': f'team-{k % 7}',
            'ownerReferences': [
                {
                    'apiVersion': 'apps/v1',
                    'blockOwnerDeletion': True,
                    'controller': True,
                    'kind': 'ReplicaSet',
                    'name': f'web-{app}-7d9c6bf5c',
                    'uid': f'11111111-0000-4000-8000-{app:012d}',
                }
            ],
            'resourceVersion': str(100000 + k),
            'uid': f'00000000-0000-4000-8000-{k:012d}',
        },
        'spec': {
            'containers': [
                {
                    'env': [
                        {'name': f'SETTING_NUMBER_{e}', 'value': f'some text of the usual length, {e}'}
                        for e in range(12)
                    ]
                    + [
                        {
                            'name': 'POD_IP',
                            'valueFrom': {'fieldRef': {'apiVersion': 'v1', 'fieldPath': 'status.podIP'}},
                        }
                    ],
                    'image': f'registry.example/web-{app}:1.2.3',
                    'imagePullPolicy': 'IfNotPresent',
                    'livenessProbe': {
                        'failureThreshold': 3,
                        'httpGet': {'path': '/healthz', 'port': 8080, 'scheme': 'HTTP'},
                        'periodSeconds': 10,
                        'successThreshold': 1,
                        'timeoutSeconds': 1,
                    },
                    'name': 'main',
                    'ports': [{'containerPort': 8080, 'name': 'http', 'protocol': 'TCP'}],
                    'resources': {
                        'limits': {'cpu': '2', 'memory': '4Gi'},
                        'requests': {'cpu': '800m', 'memory': '3Gi'},
                    },
                    'terminationMessagePath': '/dev/termination-log',
                    'terminationMessagePolicy': 'File',
                    'volumeMounts': [
                        {
                            'mountPath': '/var/run/secrets/kubernetes.io/serviceaccount',
                            'name': 'kube-api-access-x2k4q',
                            'readOnly': True,
                        }
                    ],
                }
            ],
            'dnsPolicy': 'ClusterFirst',
            'enableServiceLinks': True,
            'nodeName': f'node-{on}',
            'preemptionPolicy': 'PreemptLowerPriority',
            'priority': 9000,
            'restartPolicy': 'Always',
            'schedulerName': 'default-scheduler',
            'securityContext': {},
            'serviceAccount': 'web',
            'serviceAccountName': 'web',
            'terminationGracePeriodSeconds': 30,
            'tolerations': [
                {
                    'effect': 'NoExecute',
                    'key': f'node.kubernetes.io/{key}',
                    'operator': 'Exists',
                    'tolerationSeconds': 300,
                }
                for key in ('not-ready', 'unreachable')
            ],
            'volumes': [
                {
                    'name': 'kube-api-access-x2k4q',
                    'projected': {
                        'defaultMode': 420,
                        'sources': [
                            {'serviceAccountToken': {'expirationSeconds': 3607, 'path': 'token'}},
                            {
                                'configMap': {
                                    'items': [{'key': 'ca.crt', 'path': 'ca.crt'}],
                                    'name': 'kube-root-ca.crt',
                                }
                            },
                        ],
                    },
                }
            ],
        },
        'status': {
            'conditions': [
                {
                    'lastProbeTime': None,
                    'lastTransitionTime': '2026-01-01T00:00:05Z',
                    'status': 'True',
                    'type': kind,
                }
                for kind in (
                    'PodReadyToStartContainers',
                    'Initialized',
                    'Ready',
                    'ContainersReady',
                    'PodScheduled',
                )
            ],
            'containerStatuses': [
                {
                    'containerID': f'containerd://{k:064x}',
                    'image': f'registry.example/web-{app}:1.2.3',
                    'imageID': f'registry.example/web@sha256:{app:064x}',
                    'lastState': {},
                    'name': 'main',
                    'ready': True,
                    'restartCount': 0,
                    'started': True,
                    'state': {'running': {'startedAt': '2026-01-01T00:00:03Z'}},
                }
            ],
            'hostIP': f'192.168.{on // 256}.{on % 256}',
            'phase': 'Running',
            'podIP': f'10.{on // 256}.{on % 256}.{k % PODS_OF_NODE + 2}',
            'podIPs': [{'ip': f'10.{on // 256}.{on % 256}.{k % PODS_OF_NODE + 2}'}],
            'qosClass': 'Burstable',
            'startTime': '2026-01-01T00:00:01Z',
        },
    }


def plain(text):
    """Whether YAML reads the text as this text without quotes."""
    return (
        text
        and text[0].isalpha()
        and text not in ('true', 'false', 'True', 'False')
        and ': ' not in text
        and not text.endswith(':')
    )


def scalar(v):
    if v is None or isinstance(v, (bool, int)):
        return json.dumps(v)
    if isinstance(v, str):
        return v if plain(v) or v[0] == '/' else json.dumps(v)
    return '{}' if isinstance(v, dict) else '[]'


def block(v, indent, out):
    """Lines of a container in block style; a list has the indentation of its key."""
    pad = ' ' * indent
    for key, x in v.items() if isinstance(v, dict) else ((None, x) for x in v):
        head = f'{pad}{key}:' if key is not None else f'{pad}-'
        if not (isinstance(x, (dict, list)) and x):
            out.append(f'{head} {scalar(x)}')
        elif key is not None:
            out.append(head)
            block(x, indent if isinstance(x, list) else indent + 2, out)
        else:
            at = len(out)
            block(x, indent + 2, out)
            out[at] = f'{pad}- {out[at][indent + 2:]}'


def text_of(o, form):
    if form == 'json':
        return '\n'.join('        ' + line for line in json.dumps(o, indent=4).split('\n'))
    out = []
    block([o], 0, out)
    return '\n'.join(out) + '\n'


def write(path, nodes, form='yaml'):
    with open(path, 'w') as f:
        f.write(
            '{\n    "apiVersion": "v1",\n    "items": [\n' if form == 'json' else 'apiVersion: v1\nitems:\n'
        )
        objects = [node(i) for i in range(nodes)]
        objects += [pod(k, k // PODS_OF_NODE) for k in range(nodes * PODS_OF_NODE)]
        for i, o in enumerate(objects):
            f.write((',\n' if i and form == 'json' else '') + text_of(o, form))
        f.write(
            '\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'
            if form == 'json'
            else 'kind: List\nmetadata:\n  resourceVersion: ""\n'
        )
    return os.path.getsize(path)
