#!/usr/bin/env python3
"""idle.py - what an idle process costs, and how long a process takes to its first reconcile; a line of JSON
each.

idle   ten controllers (ours), or one client on 1,000 pods (ours and the peers), after everything was
       reconciled: resident memory, and how often the threads woke up in WATCHED seconds (the clients of the
       measurement look at their counters 50 times a second; that is theirs, not their libraries').
start  from exec to the first reconcile on a warm server with one object: the smallest and the median of
       STARTS.

Ours runs against its own API server (build/kubelua apiserver), and as bench/client beside the peers against
the replay server. A peer whose program is missing is left out."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
KUBELUA = os.path.join(HERE, '..', 'build', 'kubelua')
CONTROLLERS = 10
SETTLING = 4           # seconds from the start until a process is called idle
WATCHED = 30           # seconds in which wake-ups are counted
STARTS = 15
FEW = 1000
PEERS = [
    ('kubelua', 'bin/client', ['bin/client', '--lua', 'pods.lua']),
    ('kubelua-c', 'bin/client', ['bin/client']),
    ('client-go', 'bin/cg', ['bin/cg']),
    ('controller-runtime', 'bin/cr', ['bin/cr']),
    ('kube-rs', 'bin/bench-rs', ['bin/bench-rs']),
]

LOOKS_PER_S = 50        # of every client at its own counters
IDLE = '''return require("kubelua").controller { name = "idle-%d", resource = "v1/ConfigMap",
  reconcile = function(map) assert(map.metadata.name) end }
'''
FIRST = '''return require("kubelua").controller { name = "first", resource = "v1/ConfigMap",
  reconcile = function(map, ctx) ctx.log:info("the first reconcile") end }
'''


def say(**figures):
    print(json.dumps(figures), flush=True)


def memory_mb(pid):
    with open(f'/proc/{pid}/status') as f:
        fields = dict(line.split(':', 1) for line in f)
    return {
        key: round(int(fields[name].split()[0]) / 1024, 1)
        for key, name in (('rss_mb', 'VmRSS'), ('anon_mb', 'RssAnon'), ('file_mb', 'RssFile'))
    } | {'threads': int(fields['Threads'])}


def switches(pid):
    """How often the threads of a process went to sleep."""
    n = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{task}/status') as f:
                n += sum(int(line.split()[1]) for line in f if line.startswith('voluntary_ctxt'))
        except OSError:
            pass                   # it has just ended
    return n


def cpu_s(pid):
    with open(f'/proc/{pid}/stat') as f:
        ticks = f.read().rsplit(')', 1)[1].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf('SC_CLK_TCK')


def watch_idle(pid, seconds):
    slept, cpu, began = switches(pid), cpu_s(pid), time.time()
    time.sleep(seconds)
    took = time.time() - began
    return {
        'wakeups_per_s': round((switches(pid) - slept) / took, 2),
        'cpu_ms_per_s': round(1000 * (cpu_s(pid) - cpu) / took, 2),
    } | memory_mb(pid)


def stop(process):
    process.terminate()
    process.wait()


class Server:
    """Our own API server with one ConfigMap, and a kubeconfig for it."""

    def __init__(self, directory, port):
        self.process = subprocess.Popen(
            [KUBELUA, 'apiserver', '--listen', f'127.0.0.1:{port}'],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f'http://127.0.0.1:{port}'
        self.kubeconfig = os.path.join(directory, 'kubeconfig')
        with open(self.kubeconfig, 'w') as f:
            json.dump(
                {
                    'apiVersion': 'v1',
                    'kind': 'Config',
                    'current-context': 'c',
                    'clusters': [{'name': 'c', 'cluster': {'server': self.url}}],
                    'contexts': [{'name': 'c', 'context': {'cluster': 'c', 'user': 'u'}}],
                    'users': [{'name': 'u', 'user': {}}],
                },
                f,
            )
        body = json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'one'}}).encode()
        request = urllib.request.Request(
            self.url + '/api/v1/namespaces/default/configmaps', body, {'Content-Type': 'application/json'}
        )
        for attempt in range(100):
            try:
                urllib.request.urlopen(request, timeout=5).close()
                return
            except OSError:
                if attempt == 99 or self.process.poll() is not None:
                    raise
                time.sleep(.05)

    def run(self, scripts, log):
        return subprocess.Popen(
            [KUBELUA, 'run', *scripts, '--kubeconfig', self.kubeconfig], stdout=subprocess.DEVNULL, stderr=log
        )


def ours_idle(server, directory, seconds):
    scripts = [os.path.join(directory, f'idle-{i}.lua') for i in range(CONTROLLERS)]
    for i, path in enumerate(scripts):
        with open(path, 'w') as f:
            f.write(IDLE % i)
    p = server.run(scripts, subprocess.DEVNULL)
    time.sleep(SETTLING)
    say(figure='idle', peer='kubelua run', controllers=CONTROLLERS, objects=1, **watch_idle(p.pid, seconds))
    stop(p)


def ours_start(server, directory, starts):
    path = os.path.join(directory, 'first.lua')
    with open(path, 'w') as f:
        f.write(FIRST)
    took = []
    for _ in range(starts):
        began = time.perf_counter()
        p = server.run([path], subprocess.PIPE)
        for line in p.stderr:
            if b'the first reconcile' in line:
                break
        took.append(1000 * (time.perf_counter() - began))
        p.terminate()
        p.stderr.read()
        p.wait()
    say(
        figure='start',
        peer='kubelua run',
        controllers=1,
        objects=1,
        first_reconcile_ms=round(min(took), 1),
        median_ms=round(statistics.median(took), 1),
    )


def beside_the_peers(port, seconds):
    """Each client syncs 1,000 pods, reconciles them and then waits for a burst that brings nothing while we
    look."""
    from replayed import Replay
    data = f'data/{FEW}.json'
    if not os.path.exists(data):
        subprocess.run(['make', '-s', data], check=True)
    server = Replay(data, port)
    try:
        for name, needs, command in PEERS:
            if not os.path.exists(needs):
                continue
            server.ask('/control/reset', b'')
            # A burst of one event in a thousand seconds: the client stays until we end it.
            p = subprocess.Popen(
                command
                + [
                    '--server',
                    server.url,
                    '--workers',
                    '1',
                    '--mode',
                    'burst',
                    '--events',
                    '1',
                    '--rate',
                    '0.001',
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(SETTLING)
            say(
                figure='idle beside 1,000 pods',
                peer=name,
                controllers=1,
                objects=FEW,
                **watch_idle(p.pid, seconds),
                own_looks_per_s=LOOKS_PER_S,
            )
            p.kill()
            p.wait()
    finally:
        server.stop()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--port', type=int, default=18085)
    a.add_argument('--seconds', type=float, default=WATCHED, help='how long wake-ups are counted')
    a.add_argument('--starts', type=int, default=STARTS)
    a.add_argument('--ours', action='store_true', help='without the peers')
    args = a.parse_args()
    if not os.path.exists(KUBELUA):
        sys.exit('idle.py: build/kubelua is not there: run make first')
    directory = tempfile.mkdtemp(prefix='kubelua-idle-')
    server = Server(directory, args.port)
    try:
        ours_idle(server, directory, args.seconds)
        ours_start(server, directory, args.starts)
    finally:
        stop(server.process)
        shutil.rmtree(directory)
    if not args.ours:
        beside_the_peers(args.port, args.seconds)


os.chdir(HERE)
main()
