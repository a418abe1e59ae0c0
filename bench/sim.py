#!/usr/bin/env python3
"""sim.py - what `kubelua sim` takes, beside the goals that it has: a Markdown table.

  make bench-sim [QUICK=1] [RUNS=3]

Work of the goal's size takes too long to be simulated whole: a part of it is, and the time of the whole follows from what
the part took. Both are shown. What a process takes to start is measured and taken off, and for the first row the start of
the cluster, too. Times are of the processor, so that a busy machine does not count for us."""
import argparse
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..')
KUBELUA = os.path.join(ROOT, 'build', 'kubelua')
POLICY = 'controllers/koordinator/noderesource.lua'
PODS = 'prod=0.7,prod_cpu=1,prod_memory=4Gi'    # 22 prod pods a node, and about 8 jobs with the rate below
JOBS = 'batch_rate=16,batch_cpu=1'
# 2 long pods a node, and 2.5 jobs a node within an hour, of half an hour each
SPARSE = 'prod=0.15,prod_cpu=2,batch_rate=2.5,batch_cpu=1'
SPARSE_MINUTES = 90
DAY = 24 * 60
NOISE = 0.3                                    # of a run's time, on a machine that others use
GOAL_MS = 60 * 1000 / 5000 / DAY               # a day of 5,000 nodes in 60 s
PODS_OF_NODE = 30                              # in a snapshot

# What a pod carries in a cluster, some 4 KB.
POD = '''- apiVersion: v1
  kind: Pod
  metadata:
    name: web-{i}-7d9c6bf5c-x2k4q
    namespace: team-{team}
    uid: 00000000-0000-4000-8000-{i:012d}
    resourceVersion: "{i}"
    creationTimestamp: "2026-01-01T00:00:00Z"
    labels: {{app: web-{app}, pod-template-hash: 7d9c6bf5c, koordinator.sh/qosClass: LS}}
    ownerReferences:
    - {{apiVersion: apps/v1, kind: ReplicaSet, name: web-{app}, uid: 11111111-0000-4000-8000-{app:012d}, controller: true}}
    managedFields:
    - apiVersion: v1
      fieldsType: FieldsV1
      fieldsV1:
        f:metadata: {{f:generateName: {{}}, f:labels: {{.: {{}}, f:app: {{}}, f:pod-template-hash: {{}}}}}}
        f:spec:
          f:containers:
            k:{{"name":"main"}}: {{.: {{}}, f:image: {{}}, f:env: {{}}, f:resources: {{}}, f:volumeMounts: {{}}}}
      manager: kube-controller-manager
      operation: Update
      time: "2026-01-01T00:00:00Z"
  spec:
    nodeName: node-{node}
    priority: 9000
    schedulerName: default-scheduler
    serviceAccountName: web
    containers:
    - name: main
      image: registry.example/web:1.2.3
      env:
{env}
      resources: {{requests: {{cpu: 800m, memory: 3Gi}}, limits: {{cpu: "2", memory: 4Gi}}}}
      volumeMounts: [{{mountPath: /var/run/secrets/kubernetes.io/serviceaccount, name: token, readOnly: true}}]
    volumes: [{{name: token, projected: {{sources: [{{serviceAccountToken: {{expirationSeconds: 3607, path: token}}}}]}}}}]
  status:
    phase: Running
    podIP: 10.0.0.1
    qosClass: Burstable
    conditions:
    - {{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:05Z"}}
    - {{type: PodScheduled, status: "True", lastTransitionTime: "2026-01-01T00:00:01Z"}}
'''
ENV = '\n'.join(f'      - {{name: SETTING_NUMBER_{k}, value: "some text of the usual length, {k}"}}' for k in range(28))
NODE = '''- apiVersion: v1
  kind: Node
  metadata: {{name: node-{i}, labels: {{kubernetes.io/hostname: node-{i}}}}}
  spec: {{}}
  status:
    capacity: {{cpu: "32", memory: 128Gi, pods: "250"}}
    allocatable: {{cpu: "32", memory: 128Gi, pods: "250"}}
    conditions: [{{type: Ready, status: "True"}}]
'''


def spent(words):
    """Seconds of processor and MiB at most, of one command alone."""
    with tempfile.TemporaryFile('w+') as said:
        child = subprocess.Popen([KUBELUA, 'sim'] + words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            sys.exit(f'kubelua sim {" ".join(words)}: {said.read()}')
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def least(words, runs):
    """Of some runs the shortest."""
    return min(spent(words) for _ in range(runs))


def generated(nodes, minutes, settings):
    return [POLICY, '--generate', f'nodes={nodes},{settings}', '--for', f'{minutes}m']


def policy(nodes, minutes):
    return generated(nodes, minutes, f'{PODS},{JOBS}')


def of_node_minute(nodes, minutes, runs):
    """ms of a node and a minute, MiB, seconds of the start: of the shortest start and the shortest whole of some
    runs, since a difference of two single runs has the noise of both. nan ms: what is left is not above that."""
    start, _ = least(policy(nodes, 1), runs)
    whole, mib = least(policy(nodes, 1 + minutes), runs)
    passed = whole - start
    return 1000 * passed / nodes / minutes if passed > NOISE * start else math.nan, mib, start


def span(seconds):
    if math.isnan(seconds):
        return 'within the noise'
    return f'{seconds:.1f} s' if seconds < 120 else f'{seconds / 60:.0f} min' if seconds < 7200 else f'{seconds / 3600:.1f} h'


def write_snapshot(path, nodes):
    """As `kubectl get nodes,pods -A -o yaml` prints them; how many bytes."""
    with open(path, 'w') as f:
        f.write('apiVersion: v1\nkind: List\nitems:\n')
        for i in range(nodes):
            f.write(NODE.format(i=i))
            for k in range(i * PODS_OF_NODE, (i + 1) * PODS_OF_NODE):
                f.write(POD.format(i=k, team=k % 7, app=k % 50, node=i, env=ENV))
    return os.path.getsize(path)


def of_snapshot(nodes, runs):
    """Bytes, and seconds for them and an hour of their cluster."""
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, 'cluster.yaml')
        n = write_snapshot(path, nodes)
        return n, least([POLICY, '--snapshot', path, '--for', '1h'], runs)[0]


def growth(runs):
    """How a node and a minute grow with the cluster: more minutes where nodes are few, so that the start does not hide
    them."""
    print('\n| nodes | goal, ms a node and minute | reached | start, ms a node | goal, MiB | reached |')
    print('| --- | --- | --- | --- | --- | --- |')
    for nodes, minutes in ((100, 40), (1000, 20), (5000, 20)):
        ms, mib, start = of_node_minute(nodes, minutes, runs)
        reached = 'within the noise' if math.isnan(ms) else f'{ms:.2f}'
        goal_mib = '1536' if nodes == 5000 else ''
        print(f'| {nodes} | {GOAL_MS:.4f} | {reached} | {1000 * start / nodes:.1f} | {goal_mib} | {mib:.0f} |', flush=True)


def rows(quick, runs):
    """(work, goal, reached) of each row of the goals, one after another."""
    nodes, minutes = (20, 5) if quick else (200, 20)
    nothing, _ = least(generated(1, 1, SPARSE), runs)
    ms, mib, _ = of_node_minute(nodes, minutes, runs)
    yield (f'24 h of 5,000 nodes and 150,000 pods ({minutes} min of {nodes} nodes measured, {ms:.2f} ms a node and minute, {mib:.0f} MiB)',
           '60 s', span(ms / 1000 * 5000 * DAY))
    yield ('100 settings of 24 h of 1,000 nodes, on two cores (from the same)', '10 min',
           span(ms / 1000 * 1000 * DAY * 100 / 2))
    yield ("Kueue's performance suites: 15,000 workloads; 50,000 over 1,000 queues", '1 s; 5 s',
           'not run: nothing reads their workloads and queues yet')
    yield ('1,020 runs of the GPU fragmentation study over openb', '30 min',
           'not run: GPUs of that trace are left out')
    few = 20 if quick else 200
    took, _ = least(generated(few, SPARSE_MINUTES, SPARSE), runs)
    yield (f'20,000 nodes, 40,000 long and 50,000 batch pods to completion ({SPARSE_MINUTES} min of {few} nodes measured, {took:.1f} s)',
           '10 s', span((took - nothing) / few * 20000))
    machines, days = (2, 3) if quick else (50, 7)
    took, _ = least(['--predictors', '--generate', f'nodes={machines}', '--for', f'{days * 24}h'], runs)
    yield (f'all predictors and the oracle, 10,000 machines, 7 days ({days} days of {machines} machines measured, {took:.1f} s)',
           '2 min', span(took / machines / days * 10000 * 7))
    n, took = of_snapshot(10 if quick else 80, runs)
    yield (f'1 GB snapshot and an hour of its cluster ({n / 1e6:.1f} MB measured, {took:.1f} s)', '30 s',
           span((took - nothing) / n * 1e9))


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--quick', action='store_true', help='fewer nodes and minutes: seconds')
    p.add_argument('--runs', type=int, default=None, help='of each (3; 1 with --quick)')
    args = p.parse_args()
    runs = args.runs or (1 if args.quick else 3)
    print('| work | goal | reached |\n| --- | --- | --- |')
    for row in rows(args.quick, runs):
        print('| ' + ' | '.join(row) + ' |', flush=True)
    if not args.quick:
        growth(runs)


if __name__ == '__main__':
    main()
