"""apiservers.py - the embedded API server beside kube-apiserver with etcd: start, memory, requests, lists,
watchers.

One run takes one server through all of it and gives one line: every figure of the tables is a key of that
line. The server has one processor, bin/load the other one. Processor time of the server is next to every
rate: on a machine that others use, rates and percentiles are of the machine, and processor time is of the
server."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from dataclasses import replace

import realserver
from replayed import await_quiet, last_line
from tables import OURS, Column, Goal, Ratio, goal_table, judge, number, table, times, verdict

KUBELUA = os.path.join('..', 'build', 'kubelua')
# what a kube-apiserver does as well: the row that its rates are held against
LIKE_THEIRS = 'kubelua, TLS and RBAC'
REAL = 'kube-apiserver + etcd'
COLLECTION = '/api/v1/namespaces/bench/configmaps'
CLIENTS = (1, 8, 64)
STARTS = 5                                 # of ours; a start of theirs takes seconds
WATCHERS, WRITERS = 100, 8
FASTER, SMALLER = 5, 1 / 10                # the goals: so many times the requests, so much of the memory
ANY_CERTIFICATE = ssl._create_unverified_context()


class Sizes:
    """How much of everything: a whole run, and a quick one. Clients: requests."""

    def __init__(self, quick):
        self.objects = 10000 if quick else 100000
        self.create = {1: 250, 8: 1000, 64: 8750} if quick else {1: 1000, 8: 4000, 64: 95000}
        self.get = {1: 500, 8: 1000, 64: 2000} if quick else {1: 4000, 8: 16000, 64: 40000}
        self.lists = {500: 10, 10000: 2} if quick else {500: 40, 20000: 5}
        self.events = 500 if quick else 10000


def of_process(pid, name):
    """KB in a field of /proc/PID/status."""
    with open(f'/proc/{pid}/status') as f:
        return int(next(line for line in f if line.startswith(name + ':')).split()[1])


class Embedded:
    """Our server, with the options of a row; `start_ms` is from exec to a good answer of /readyz."""

    def __init__(self, port, words):
        self.port, self.words = port, words
        self.dir = os.path.abspath(f'results/ours-{os.getpid()}')
        self.secure = 'RBAC' in words
        self.url = f'http{"s" if self.secure else ""}://127.0.0.1:{port}'

    def start(self):
        began = time.perf_counter()
        log = open(os.path.join(self.dir, 'log'), 'w')
        self.process = subprocess.Popen(
            [KUBELUA, 'apiserver', '--listen', f'127.0.0.1:{self.port}', *self.words], stdout=log, stderr=log
        )
        os.sched_setaffinity(self.process.pid, {0})
        while not ready(self.port, self.secure):
            if self.process.poll() is not None or time.perf_counter() - began > 60:
                raise RuntimeError(f'kubelua apiserver did not start: {open(log.name).read()[-500:]}')
        return 1000 * (time.perf_counter() - began)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(os.path.join(self.dir, 'data'), ignore_errors=True)

    def __enter__(self):
        os.makedirs(self.dir)
        with open(os.path.join(self.dir, 'tokens.csv'), 'w') as f:
            f.write(f'{realserver.TOKEN},admin,admin,"system:masters"\n')
        self.words = [w.format(dir=self.dir) for w in self.words]
        took = []
        for i in range(STARTS):
            if i:
                self.stop()
            took.append(self.start())
        self.start_ms = min(took)
        ask(
            self.url,
            '/api/v1/namespaces',
            {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'bench'}},
        )
        return self

    def pids(self):
        return [self.process.pid]

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


def ready(port, secure):
    """Whether somebody answers well there; a quarter of a millisecond later it may be otherwise."""
    try:
        with socket.create_connection(('127.0.0.1', port), timeout=60) as plain:
            s = ANY_CERTIFICATE.wrap_socket(plain) if secure else plain
            s.sendall(
                (
                    'GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n'
                    f'Authorization: Bearer {realserver.TOKEN}\r\n\r\n'
                ).encode()
            )
            return s.recv(64).startswith(b'HTTP/1.1 200')
    except OSError:
        time.sleep(.00025)
        return False


def ask(url, path, body=None):
    headers = {'Content-Type': 'application/json', 'Authorization': f'Bearer {realserver.TOKEN}'}
    request = urllib.request.Request(url + path, body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60, context=ANY_CERTIFICATE) as r:
        return json.load(r)


def load(server, **options):
    """One run of bin/load: what it says."""
    words = [w for key, value in options.items() for w in ('--' + key, str(value))]
    pids = ','.join(str(p) for p in server.pids())
    line, why = last_line(
        ['bin/load', '--server', server.url, '--token', realserver.TOKEN, '--pids', pids, *words], 300
    )
    if not line:
        raise RuntimeError(f'bin/load --mode {options["mode"]}: {why}')
    return line


def figures(prefix, line, keys):
    return {f'{prefix}_{key}': line[key] for key in keys}


RATE = ('per_s', 'p50_us', 'p99_us', 'cpu_us', 'busy')


def measure(server, sizes):
    """The line of a server that has just started."""
    out = {'start_ms': server.start_ms, 'empty_mb': sum(of_process(p, 'VmRSS') for p in server.pids()) / 1024}
    first = 0
    for clients, requests in sizes.create.items():
        out |= figures(
            f'create_{clients}',
            load(server, mode='create', clients=clients, requests=requests, first=first),
            RATE,
        )
        first += requests
    for clients, requests in sizes.get.items():
        out |= figures(
            f'get_{clients}',
            load(server, mode='get', clients=clients, requests=requests, objects=sizes.objects),
            RATE,
        )
    out['full_mb'] = sum(of_process(p, 'VmRSS') for p in server.pids()) / 1024
    for limit, requests in sizes.lists.items():
        out |= figures(f'list_{limit}', load(server, mode='list', limit=limit, requests=requests), RATE)
    rv = ask(server.url, COLLECTION + '?limit=1')['metadata']['resourceVersion']
    watched = load(server, mode='watch', watchers=WATCHERS, clients=WRITERS, requests=sizes.events, rv=rv)
    watched['cpu_us'] /= WATCHERS
    return out | figures('watch', watched, ('events_per_s', 'wall_s', 'p50_us', 'p99_us', 'cpu_us', 'busy'))


def jobs(port, sizes, quick):
    """(row, function that gives a line or None and why)."""
    def embedded(*words):
        return lambda: Embedded(port + 20, list(words))

    def real(fsync):
        return lambda: realserver.Server(port=port + 10, cpu=0, fsync=fsync)
    rows = [(OURS, embedded()),
            (LIKE_THEIRS, embedded('--authorization-mode', 'RBAC', '--token-auth-file', '{dir}/tokens.csv')),
            ('kubelua, --data', embedded('--data', '{dir}/data')),
            (REAL, real(False))] + ([] if quick else [(REAL + ', fsync', real(True))])

    def job(name, make):
        def run():
            why = name.startswith(REAL) and realserver.missing()
            if why:
                return None, why
            await_quiet()
            try:
                with make() as server:
                    return measure(server, sizes), None
            except (RuntimeError, OSError) as e:
                return None, str(e)
        return run
    return [(name, job(name, make)) for name, make in rows]


def brief(line):
    return (f'ready in {line["start_ms"]:.0f} ms, {line["empty_mb"]:.0f} to {line["full_mb"]:.0f} MB, '
            f'{line["create_64_per_s"]:.0f} creates and {line["get_64_per_s"]:.0f} gets a second')


def columns(prefix):
    return [
        Column('requests/s', f'{prefix}_per_s', more_is_better=True),
        Column('p50 us', f'{prefix}_p50_us'),
        Column('p99 us', f'{prefix}_p99_us'),
        Column('CPU us of the server', f'{prefix}_cpu_us'),
        Column("load's share of its processor", f'{prefix}_busy'),
    ]


def faster(results, verb, clients):
    """The goal of a rate: like with like, ours over TLS with RBAC."""
    rate, cpu = columns(f'{verb}_{clients}')[0], columns(f'{verb}_{clients}')[3]
    mine, theirs = results.best(LIKE_THEIRS, rate), results.best(REAL, rate)
    what = f'{verb}s a second, {clients} client{"s" if clients > 1 else ""}, TLS and RBAC'
    if not mine or not theirs:
        return (what, f'{FASTER} times {REAL}', '-', 'not run')
    return (
        what,
        f'{FASTER} times {REAL} ({number(theirs)})',
        f'{number(mine)}, {times(mine / theirs)} times; '
        f'{times(results.best(REAL, cpu) / results.best(LIKE_THEIRS, cpu))} times in a second of its '
        'processor',
        verdict(mine, FASTER * theirs, True),
    )


def text(results, sizes):
    full = f'RSS MB with {sizes.objects:,}'
    memory = [Column('ms to ready', 'start_ms'), Column('RSS MB empty', 'empty_mb'), Column(full, 'full_mb')]
    watch = [
        Column('events/s, all watchers', 'watch_events_per_s', more_is_better=True),
        Column('s until all have all', 'watch_wall_s'),
        Column('p50 ms', 'watch_p50_us', 0.001),
        Column('p99 ms', 'watch_p99_us', 0.001),
        Column('CPU us of the server for each', 'watch_cpu_us'),
        Column("load's share of its processor", 'watch_busy'),
    ]
    out = [
        'ConfigMaps of 1 KB, no two alike. The server has one processor, the load generator the other; each '
        f'HTTP/1.1 client has one request in flight. {REAL} uses TLS, '
        'a token and RBAC; as under envtest, etcd does not wait for the disk, unless the row says fsync.',
        table(results, memory, 'server'),
    ]
    ways = [
        (f'{verb}, {n} client{"s" if n > 1 else ""}', f'{verb}_{n}')
        for verb in ('create', 'get')
        for n in CLIENTS
    ]
    ways += [(f'list of {n:,}', f'list_{n}') for n in sizes.lists]
    *figures, busy = zip(*(columns(prefix) for _, prefix in ways))
    for figure in figures:                                 # one table per figure, one column per way
        out.append(
            table(results, [replace(c, title=way) for c, (way, _) in zip(figure, ways)], figure[0].title)
        )
    shares = [v[1] for c in busy for name in results.lines if (v := results.values(name, c))]
    if shares:
        out.append(f'The load generator kept at most {100 * max(shares):.0f} % of its processor busy.')
    out.append(
        f'{WATCHERS} watchers of {sizes.events:,} changes, which {WRITERS} clients make as fast as they can; '
        'from the request to the event:\n\n'
        + table(results, watch, 'server')
    )
    goals = judge(
        results,
        memory,
        [Goal('start_ms', 15), Goal('empty_mb', 12), Ratio('full_mb', (REAL,), SMALLER, 'theirs')],
    )
    return '\n\n'.join(
        out + [goal_table(goals + [faster(results, verb, n) for verb in ('create', 'get') for n in CLIENTS])]
    )
