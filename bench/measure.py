#!/usr/bin/env python3
"""measure.py - everything that is measured, section by section: ours, the peers, ratios, and the goals beside
ours.

  make bench [QUICK=1] [SECTIONS=sync,wq] [RUNS=5] [PORT=18080]

Within a section the peers take turns, run after run, so that a drift of the machine hits all alike. The
tables go to the screen and to results/bench.md, every line to results/*.jsonl. --write FILE puts
results/bench.md into FILE, between its two markers. What cannot be built or run here is "not run", with the
reason."""
import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Callable

import apiservers
import machine
import realpods
import realserver
import reconciling
import reloading
from replayed import Replay, Task, await_quiet, last_line, read_peers
from tables import (
    OURS,
    Column,
    Goal,
    Ratio,
    Results,
    goal_grid,
    goal_table,
    judge,
    number,
    pivot,
    table,
    times,
    verdict,
)

HERE = os.path.dirname(os.path.abspath(__file__))
PODS, MANY, FEW = 20000, 100000, 1000
EVENTS, RATE = 5000, 1000
# events as fast as they are read: one for each pod, so that none meets another of its key in the queue
FLOOD = PODS
TYPE_BYTES = len('"apiVersion":"v1","kind":"Pod",')     # what a list item lacks and a kept object has
# an object among a million may cost this many times one among a thousand: caches of the processor are what
# they are
FLAT = 1.25
QUIET = 0.1            # wake-ups a second: a timer that is due once in a while
MARKERS = '<!-- figures: `make bench-docs` writes what follows -->', '<!-- end of figures -->'

GO, RUST = ('client-go', 'controller-runtime'), ('kube-rs',)
QUICK_PEERS = [
    'kubelua',
    'kubelua-c',
    'client-go',
    'client-go-list',
    'controller-runtime',
    'kube-rs',
    'kube-rs-streaming',
]
MAIN_PEERS = QUICK_PEERS + ['client-go-dyn', 'kube-rs-dyn']
MANY_PEERS = ['kubelua', 'kubelua-c', 'client-go', 'client-go-list', 'kube-rs', 'kube-rs-streaming']


def say(text):
    print(text, file=sys.stderr, flush=True)


@dataclass
class Context:
    quick: bool
    runs: int
    port: int
    chosen: list
    replayed: Results = None       # sync and burst are one measurement


def take_turns(ctx, section, jobs, brief):
    """jobs: (name, function that gives a line or None and why). Raw lines to results/SECTION.jsonl;
    `brief(line)` to the screen."""
    results = Results()
    with open(f'results/{section}.jsonl', 'a') as raw:
        for i in range(ctx.runs):
            for name, run in jobs:
                line, why = run()
                results.add(name, line, why)
                if line:
                    raw.write(json.dumps(dict(line, row=name, at=int(time.time()))) + '\n')
                    raw.flush()
                say(f'  {section} {i + 1}/{ctx.runs}  {name}: {brief(line) if line else why}')
    return results


def programs(ctx, section, rows, brief):
    """rows: (name, command). Each command prints one line of JSON."""
    def job(command):
        def run():
            if not os.path.exists(command[0]):
                return None, f'{command[0]} could not be built here'
            await_quiet()
            return last_line(command)
        return run
    return take_turns(ctx, section, [(name, job(command)) for name, command in rows], brief)


def outside_of_make():
    """The environment without what a make above us leaves for its children: its jobs are not ours to take."""
    return {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}


def data(n):
    subprocess.run(['make', '-s', f'data/{n}.json'], check=True, env=outside_of_make())
    return f'data/{n}.json'


# ---------------------------------------------------------------- on the replay server

CPU = Column('CPU s until synced', 'sync_cpu_s')
WALL = Column('wall s', 'sync_wall_s')
ALL = Column('CPU s until all reconciled', 'all_reconciled_cpu_s')
RSS, PEAK = Column('RSS MB', 'rss_mb_after_sync'), Column('peak RSS MB', 'hwm_mb')
RAW = Column('RSS MB before tidying', 'rss_nogc_mb')
BUSY = Column('RSS MB after the events', 'rss_burst_mb')
MEMORY = [RSS, RAW, PEAK]
EVENT = Column('CPU us per event', 'cpu_s_per_1k_events', 1000)
P50, P99 = Column('p50 us', 'lat_p50_us'), Column('p99 us', 'lat_p99_us')


def served_bytes(path):
    """What our cache must hold when it has kept everything: the items' text with the type, Go's escapes
    undone."""
    escapes = size = commas = 0
    with open(path, 'rb') as f:
        text = f.read()
    start = text.index(b'"items":[') + len('"items":[')
    body = text[start:text.rindex(b']}')]
    size, escapes = len(body), body.count(b'\\u0026')
    commas = body.count(b'},{"metadata":{"name":')
    return size - commas + (commas + 1) * TYPE_BYTES - 5 * escapes


def honest(results, path, strip):
    """The same objects were read by all, and ours has kept every byte of them."""
    checks = {x.get('check') for lines in results.lines.values() for x in lines}
    out = [
        (
            'Every peer read the same objects.'
            if len(checks) == 1
            else f'**The peers disagree about what they read: {checks}.**'
        )
    ]
    kept = {x['kept_bytes'] for name, lines in results.lines.items() if name.startswith(OURS) for x in lines}
    if kept and not strip:
        want = served_bytes(path)
        out.append(
            'Ours encodes its cache to the bytes that were served, managedFields included.'
            if kept == {want}
            else f'**Ours has not kept what was served: {kept} bytes of {want}; its figures do not count.**'
        )
    return ' '.join(out)


def replayed(ctx, section, n, names, task):
    if not os.path.exists('bin/replay'):
        return None, 'not run: the replay server needs Go (https://go.dev/dl)'
    peers, absent = read_peers(names, n, task.timeout)
    path = data(n)
    server = Replay(path, ctx.port)
    try:
        jobs = [
            (name, lambda name=name, command=command: server.run(name, command, task))
            for name, command in peers
        ]
        results = take_turns(
            ctx,
            section,
            jobs,
            lambda x: f'synced in {x["sync_cpu_s"]:.2f} CPU s, {x["rss_mb_after_sync"]:.0f} MB'
            + (
                f'; {1000 * x["cpu_s_per_1k_events"]:.0f} us per event, p50 {x["lat_p50_us"]:.0f} us'
                if 'lat_p50_us' in x
                else ''
            ),
        )
    finally:
        server.stop()
    for name, why in absent:
        results.add(name, None, why)
    if not results.lines:
        return None, 'not run: no peer gave a result'
    return results, f'{n:,} pods, {server.info["bytes"] / 1e6:.0f} MB of JSON. ' + honest(
        results, path, task.strip
    )


def main_run(ctx):
    if not ctx.replayed:
        mode = 'burst' if 'burst' in ctx.chosen else 'sync'
        ctx.replayed = replayed(
            ctx,
            'sync' if mode == 'sync' else 'sync-and-burst',
            PODS,
            QUICK_PEERS if ctx.quick else MAIN_PEERS,
            Task(mode=mode, events=EVENTS, rate=RATE),
        )
    return ctx.replayed


def compose(results, note, columns, goals):
    if not results:
        return note
    return '\n\n'.join(
        [note, table(results, columns, 'peer')]
        + ([goal_table(judge(results, columns, goals))] if goals else [])
    )


def sync(ctx):
    return compose(*main_run(ctx), [CPU, WALL, ALL] + MEMORY, [
        Goal(CPU.key, 0.5), Goal(RSS.key, 50), Goal(PEAK.key, 60),
        Ratio(CPU.key, GO, 1 / 7, 'the best of Go'), Ratio(CPU.key, RUST, 1 / 4, "kube-rs's best"),
        Ratio(RSS.key, GO, 1 / 7, 'the best of Go'), Ratio(RSS.key, RUST, 1 / 20, "kube-rs's best")])


def burst(ctx):
    return compose(*main_run(ctx), [EVENT, P50, P99, BUSY], [
        Goal(P50.key, 250), Goal(P99.key, 2000), Ratio(P50.key, GO + RUST, 1 / 2, 'the best peer')])


def flood(ctx):
    """What an event costs where it does not come alone: else the kernel's sleep and wake-up are most of it,
    for everybody."""
    return compose(
        *replayed(
            ctx,
            'flood',
            PODS,
            QUICK_PEERS if ctx.quick else MAIN_PEERS,
            Task(mode='burst', events=FLOOD, rate=0),
        ),
        [EVENT, Column('reconciles', 'reconciles'), Column('events/s', 'events_per_s')],
        [Goal(EVENT.key, 30)],
    )


def large(ctx):
    return compose(*replayed(ctx, 'large', MANY, MANY_PEERS, Task(mode='sync')), [CPU, WALL, ALL] + MEMORY,
                   [Goal(CPU.key, 2.5), Goal(RSS.key, 220), Goal(PEAK.key, 260)])


def strip(ctx):
    return compose(
        *replayed(
            ctx, 'strip', PODS, QUICK_PEERS if ctx.quick else MAIN_PEERS, Task(mode='sync', strip=True)
        ),
        [CPU, WALL, ALL] + MEMORY,
        [Goal(CPU.key, 0.4), Goal(RSS.key, 35)],
    )


def small(ctx):
    return compose(
        *replayed(ctx, 'small', FEW, None, Task(mode='burst', events=1000, rate=RATE)),
        [CPU, WALL, ALL] + MEMORY + [EVENT, P50, P99],
        [],
    )


# ---------------------------------------------------------------- parts alone

WQ_ROWS = [
    (OURS, ['bin/wq']),
    ('kubelua, one turn for all', ['bin/wq', '-q', 'fifo']),
    ('kubelua, by priority', ['bin/wq', '-q', 'rank']),
    ('client-go', ['bin/wq-go', '-q', 'plain']),
    ('client-go rate limiting', ['bin/wq-go', '-q', 'ratelimiting']),
    ('controller-runtime priority', ['bin/wq-go', '-q', 'priority']),
    ('kube-rs scheduler', ['bin/wq-rs']),
]
WQ_WAYS = [('1 worker, all added first', 1, False), ('1 worker, added while it works', 1, True),
           ('4 workers, all added first', 4, False), ('4 workers, added while they work', 4, True)]


def wq(ctx):
    rows = []
    for name, command in WQ_ROWS:
        for way, workers, concurrent in WQ_WAYS:
            if name.startswith('kube-rs') and (workers > 1 or concurrent):
                continue                                   # one task polls it, by design
            if ctx.quick and workers > 1 and name.startswith('controller-runtime'):
                continue
            rows.append(
                ((name, way), command + ['-workers', str(workers)] + (['-concurrent'] if concurrent else []))
            )
    flat = programs(
        ctx,
        'wq',
        [(f'{name}, {way}', command) for (name, way), command in rows],
        lambda x: f'{x["ns_cpu_per_key"]:.0f} ns of CPU per key',
    )
    results = Results()
    for (name, way), _ in rows:                            # one row per queue, one column per way
        lines = flat.lines.get(f'{name}, {way}', [])
        kept = results.lines.setdefault(name, [{} for _ in range(ctx.runs)])
        for i, x in enumerate(lines):
            kept[i][way] = x['ns_cpu_per_key'] / 1000
    for name, lines in list(results.lines.items()):
        if not any(lines):
            del results.lines[name]
            results.absent[name] = next(why for row, why in flat.absent.items() if row.startswith(name))
    columns = [Column(way, way) for way, _, _ in WQ_WAYS]
    return compose(
        results,
        '1,000,000 distinct keys and 500,000 repeated adds, get, done: CPU us per distinct key.',
        columns,
        [Goal(WQ_WAYS[0][0], 0.25), Goal(WQ_WAYS[1][0], 0.25)],
    )


DECODE_ROWS = [
    (OURS, ['bin/json', 'stream']),
    ('kubelua, object by object', ['bin/json', 'items']),
    ('cJSON', ['bin/json', 'cjson']),
    ('client-go codec, PodList', ['bin/json-go', 'codec']),
    ('Go encoding/json, PodList', ['bin/json-go', 'encoding/json']),
    ('client-go unstructured', ['bin/json-go', 'unstructured']),
    ('serde_json, List<Pod>', ['bin/json-rs', 'pod']),
    ('serde_json, Value', ['bin/json-rs', 'value']),
    ('simdjson, object by object, nothing kept', ['bin/json-limit', 'items']),
    ('simdjson, whole list', ['bin/json-limit', 'simdjson']),
    ('simdjson on demand, 4 fields', ['bin/json-limit', 'ondemand']),
]


def decode(ctx):
    path = data(PODS)
    rows = [r for r in DECODE_ROWS if not ctx.quick or 'encoding/json' not in r[1] and 'value' not in r[1]]
    results = programs(
        ctx, 'decode', [(name, command + [path]) for name, command in rows], lambda x: f'{x["mb_s"]:.0f} MB/s'
    )
    columns = [
        Column('MB/s', 'mb_s', more_is_better=True),
        Column('CPU s', 's'),
        Column('CPU s of the first pass', 'first_s'),
    ]
    return compose(
        results,
        f'Each peer decodes {PODS:,} pods, 155 MB, and keeps the result (except for simdjson object by '
        'object). **kubelua** reads pieces '
        'of 64 KB, as from the network. Each process makes several passes from an empty state; the best '
        'counts.',
        columns,
        [Goal('mb_s', 400)],
    )


GROWTH_COLUMNS = [
    Column('CPU us per object', 'us_per_object'),
    Column('bytes per object', 'bytes_per_object'),
    Column('CPU us per event', 'us_per_event'),
    Column('MB/s', 'mb_s', more_is_better=True),
]


def growth(ctx):
    path = data(PODS)
    sizes = [1000, 10000, 100000] + ([] if ctx.quick else [1000000])
    rows = [
        (f'{n:,} {kind}', ['bin/growth', kind, str(n)] + ([path] if kind != 'small' else []))
        for kind in ('small', 'realistic')
        for n in sizes
    ]
    results = programs(
        ctx,
        'growth',
        rows,
        lambda x: f'{x["us_per_object"]:.2f} us and {x["bytes_per_object"]:.0f} bytes per object',
    )
    verdicts = []
    for kind in ('small', 'realistic'):
        for c in GROWTH_COLUMNS[:2]:
            first, last = (results.best(f'{n:,} {kind}', c) for n in (sizes[0], sizes[-1]))
            if first and last:
                verdicts.append(
                    (
                        f'{c.title}, {kind}',
                        f'flat: among {sizes[-1]:,} at most {FLAT} times that among {sizes[0]:,}',
                        f'{times(last / first)} times',
                        verdict(last, FLAT * first, False),
                    )
                )
    return '\n\n'.join(
        [
            'One process makes the text of the objects and feeds it to its decoder, reflector and store: '
            'small objects of 400 bytes, and '
            'pods of 7.75 KB. Then 20,000 single objects change.',
            table(results, GROWTH_COLUMNS, 'objects', ours=None),
            goal_table(verdicts),
        ]
    )


# ---------------------------------------------------------------- on a real API server

CALL_PEERS = [
    (OURS, ['bin/calls']),
    ('client-go', ['bin/calls-go']),
    ('client-go, protobuf', ['bin/calls-go', '--protobuf']),
    ('kube-rs', ['bin/calls-rs']),
]
CALLS = {1: 1000, 8: 4000, 32: 8000, 256: 8000}       # in flight: requests
CALL_COLUMNS = [
    Column('CPU us per request', 'cpu_us'),
    Column('requests/s', 'requests_per_s', more_is_better=True),
    Column('connections', 'connections'),
]
STREAMS = 100          # of one HTTP/2 connection of a kube-apiserver


def config_maps():
    return json.dumps(
        {
            'apiVersion': 'v1',
            'kind': 'List',
            'items': [
                {
                    'apiVersion': 'v1',
                    'kind': 'ConfigMap',
                    'metadata': {'name': f'c-{i}', 'namespace': 'bench', 'labels': {'app': f'app-{i % 7}'}},
                    'data': {f'key-{k}': 'x' * 60 for k in range(10)},
                }
                for i in range(100)
            ],
        }
    )


def calls(ctx):
    why = realserver.missing()
    if why:
        return f'not run: {why}'
    out, goals = [], []
    with realserver.Server(port=ctx.port + 10, cpu=0) as server:
        server.kubectl('apply', '--server-side', '-f', '-', text=config_maps())
        for mode in ('get', 'patch'):
            groups, cheaper, faster, few = [], {}, {}, {}      # by requests in flight
            for n, requests in CALLS.items():
                words = [
                    '--kubeconfig',
                    server.kubeconfig,
                    '--mode',
                    mode,
                    '--in-flight',
                    str(n),
                    '--requests',
                    str(requests // (4 if ctx.quick else 1)),
                ]
                results = programs(
                    ctx,
                    'calls',
                    [(name, pinned(command + words)) for name, command in CALL_PEERS],
                    lambda x: f'{x["cpu_us"]:.0f} us of CPU per request, {x["requests_per_s"]:.0f}/s',
                )
                groups.append((f'{n} in flight', results))
                theirs = {c.key: results.best('client-go', c) for c in CALL_COLUMNS}
                mine = {c.key: results.best(OURS, c) for c in CALL_COLUMNS}
                if mine['cpu_us'] and theirs['cpu_us']:
                    cheaper[f'{n} in flight'] = (
                        f'1/{times(theirs["cpu_us"] / mine["cpu_us"])}',
                        verdict(mine['cpu_us'], theirs['cpu_us'] / 2, False),
                    )
                    faster[f'{n} in flight'] = (
                        number(mine['requests_per_s']),
                        verdict(mine['requests_per_s'], theirs['requests_per_s'], True),
                    )
                if mode == 'get' and mine['connections']:
                    most = -(-n // STREAMS) + 1
                    few[f'{n} in flight'] = (
                        number(mine['connections']),
                        verdict(mine['connections'], most, False),
                    )
            out.append(f'{mode}:')
            out.extend(pivot(groups, c) for c in CALL_COLUMNS[:2])
            goals += [
                (f'CPU per {mode}', '1/2 of client-go', cheaper),
                (f'{"gets" if mode == "get" else "patches"} a second', "client-go's", faster),
            ]
            if few:
                out.append(pivot(groups, CALL_COLUMNS[2]))
                goals.append(('connections', f'at most 1 for each {STREAMS} in flight, and 1 more', few))
    return '\n\n'.join(
        [
            'ConfigMaps of 1 KB of a real kube-apiserver over TLS, read one by one or changed by a merge '
            'patch; the server on one '
            'processor, the client on the other.'
        ]
        + out
        + [goal_grid(goals)]
    )


REAL_PEERS = [
    ('kubelua', ['./client.sh']),
    ('kubelua, watch list', ['./client.sh', '--watch-list']),
    ('kubelua, JSON', ['./client.sh', '--json']),
    ('client-go', ['bin/cg', '--protobuf']),
    ('client-go, list', ['bin/cg', '--protobuf', '--list']),
    ('client-go, JSON', ['bin/cg']),
]


def real(ctx):
    """The sync of a server that is real: what the replay server leaves out."""
    why = realserver.missing()
    if why:
        return f'not run: {why}'
    with realserver.Server(port=ctx.port + 10, cpu=0) as server:
        n = realpods.load(server, data(FEW if ctx.quick else PODS))
        words = ['--server', server.url, '--ca', server.path('ca.crt'), '--mode', 'sync']
        results = programs(
            ctx,
            'real',
            [(name, pinned(command + words)) for name, command in REAL_PEERS],
            lambda x: f'synced in {x["sync_cpu_s"]:.2f} CPU s, {x["rss_mb_after_sync"]:.0f} MB',
        )
    lines = [x for peer in results.lines.values() for x in peer]
    same = (
        len({x['check'] for x in lines}) == 1
        and len({x['kept_bytes'] for x in lines if 'kept_bytes' in x}) == 1
    )
    return compose(
        results,
        f'{n:,} pods of a kube-apiserver over TLS, the server on one processor and the client on the other. '
        'Peers read protobuf unless the row says JSON. '
        + (
            'All read the same objects, and kubelua\'s cache is the same for both media types.'
            if same
            else '**Not all read the same; the figures do not count.**'
        ),
        [CPU, WALL, ALL] + MEMORY,
        [
            Ratio(CPU.key, ('client-go',), 1 / 2, "client-go's best"),
            Ratio(RSS.key, ('client-go',), 1 / 7, "client-go's best"),
        ],
    )


def pinned(command):
    return [command[0]] if not os.path.exists(command[0]) else ['/usr/bin/taskset', '-c', '1', *command]


def server(ctx):
    """The embedded API server beside a real one."""
    sizes = apiservers.Sizes(ctx.quick)
    return apiservers.text(
        take_turns(ctx, 'server', apiservers.jobs(ctx.port, sizes, ctx.quick), apiservers.brief), sizes
    )


IN_FLIGHT = (1, 8, 32)
RECONCILED, LATER, PER_S = 2000, 500, 100


def reconcile(ctx):
    """A controller that writes each object once."""
    why = realserver.missing()
    if why:
        return f'not run: {why}'
    first, then = (RECONCILED // 4, LATER // 5) if ctx.quick else (RECONCILED, LATER)
    columns = [
        Column('writes/s', 'writes_per_s', more_is_better=True),
        Column('create to write p50 ms', 'p50_ms'),
        Column('p99 ms', 'p99_ms'),
        Column('CPU us per write', 'cpu_us_per_write'),
        Column('RSS MB', 'rss_mb'),
    ]
    groups = []
    with realserver.Server(port=ctx.port + 10) as server:
        for n in IN_FLIGHT:
            jobs = [
                (name, lambda command=command: reconciling.measure(server, command, first, then, PER_S))
                for name, command in reconciling.peers(server.kubeconfig, n)
            ]
            results = take_turns(
                ctx,
                f'reconcile-{n}',
                jobs,
                lambda x: f'{x["writes_per_s"]:.0f} writes/s, p50 {x["p50_ms"]:.1f} ms',
            )
            groups.append((f'{n} in flight', results))
    return '\n\n'.join(
        [
            f'When the controller starts, {first:,} ConfigMaps of a kube-apiserver (over TLS) need one patch '
            f'each; then {then} more are created, {PER_S} a second. '
            'Server, observer and controller share the machine. CPU is the processor time of the '
            'controller\'s process, from its start to the last '
            f'of the first {first:,} patches, for each patch.'
        ]
        + [pivot(groups, c) for c in columns]
    )


def rotation(ctx):
    """A token dies and the file has another one: how long until requests pass again."""
    why = realserver.missing()
    if why:
        return f'not run: {why}'
    results = Results()
    with realserver.Server(port=ctx.port + 10) as server:
        server.kubectl('apply', '--server-side', '-f', '-', text=config_maps())
        server.kubectl('create', 'serviceaccount', 'reader', '-n', 'bench')
        server.kubectl(
            'create',
            'clusterrolebinding',
            'bench-reader',
            '--clusterrole=cluster-admin',
            '--serviceaccount=bench:reader',
        )
        for name, command in CALL_PEERS:
            if 'protobuf' in name:
                continue
            if not os.path.exists(command[0]):
                results.add(name, None, f'{command[0]} could not be built here')
                continue
            results.add(name, rotated(server, name, command))
    columns = [
        Column('longest time without a good answer, ms', 'longest_gap_ms'),
        Column('failed requests', 'failures'),
    ]
    return (
        'Each client sends a request every 20 ms with a token from a file. The file gets a new token, and '
        'the Secret of the old token is deleted '
        '(a kube-apiserver accepts the old token for up to 10 s more).\n\n'
        + table(results, columns, 'peer', ours=None)
    )


def rotated(server, name, command):
    def token(secret):
        server.kubectl('create', 'secret', 'generic', secret, '-n', 'bench')
        return server.kubectl(
            'create',
            'token',
            'reader',
            '-n',
            'bench',
            '--bound-object-kind',
            'Secret',
            '--bound-object-name',
            secret,
        )
    old, new = (f'{os.path.basename(command[0])}-{x}' for x in ('old', 'new'))
    path = server.path(f'{old}.token')
    with open(path, 'w') as f:
        f.write(token(old))
    kubeconfig = server.write_kubeconfig(f'{old}.kubeconfig', f'{{tokenFile: {path}}}')
    p = subprocess.Popen(
        command + ['--kubeconfig', kubeconfig, '--mode', 'rotate', '--seconds', '80'],
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(5)
    with open(path + '.next', 'w') as f:
        f.write(token(new))
    os.rename(path + '.next', path)
    server.kubectl('delete', 'secret', old, '-n', 'bench')
    text, _ = p.communicate(timeout=150)
    line = json.loads(text.splitlines()[-1])
    say(
        f'  rotation  {name}: {line["longest_gap_ms"]:.0f} ms without a good answer, {line["failures"]} '
        'failed'
    )
    with open('results/rotation.jsonl', 'a') as raw:
        raw.write(json.dumps(dict(line, at=int(time.time()))) + '\n')
    return line


STANDBY = (
    "return require('kubelua').controller "
    "{ name = 'elected', resource = 'v1/ConfigMap', namespaces = { 'bench' }, "
    'reconcile = function() end }'
)
RELEASES, CRASHES = 10, 3


class Replica:
    """A process that says when it leads, and when it knows that another one does."""
    number = 0

    def __init__(self, command):
        Replica.number += 1
        self.leads, self.waits = threading.Event(), threading.Event()
        self.p = subprocess.Popen(
            [w.format(n=Replica.number) for w in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.p.stdout:
            if 'this process leads' in line:
                self.at = time.monotonic()
                self.leads.set()
            elif 'leader elected' in line or 'another leads' in line:
                self.waits.set()


def handed_over(command, kill):
    """ms from the end of the one that leads until the other one does."""
    first = Replica(command)
    second = None
    try:
        if not first.leads.wait(60):
            raise RuntimeError('nobody leads')
        second = Replica(command)
        if not second.waits.wait(60):
            raise RuntimeError('the second replica does not see the first one')
        time.sleep(random.uniform(1, 5))       # some moment of its waiting
        began = time.monotonic()
        first.p.kill() if kill else first.p.terminate()
        if not second.leads.wait(60):
            raise RuntimeError('nobody took over')
        return 1e3 * (second.at - began)
    finally:
        for r in (first, second):
            if r:
                r.p.terminate()
                r.p.wait()


def failover(ctx):
    """How long nobody leads when the leader says goodbye, and when it dies."""
    why = realserver.missing()
    if why:
        return f'not run: {why}'
    results = Results()
    with realserver.Server(port=ctx.port + 10) as server:
        server.kubectl('apply', '--server-side', '-f', '-', text=config_maps())
        script = server.path('elected.lua')
        with open(script, 'w') as f:
            f.write(STANDBY)
        peers = [
            (
                'kubelua',
                [
                    '../build/kubelua',
                    'run',
                    script,
                    '--kubeconfig',
                    server.kubeconfig,
                    '--leader-elect',
                    '--leader-elect-resource-namespace',
                    'bench',
                    '--leader-elect-resource-name',
                    'kubelua',
                    '--leader-elect-identity',
                    'replica-{n}',
                ],
            ),
            (
                'client-go',
                [
                    'bin/elect-go',
                    '--kubeconfig',
                    server.kubeconfig,
                    '--lease',
                    'client-go',
                    '--identity',
                    'replica-{n}',
                ],
            ),
        ]
        for name, command in peers:
            if not os.path.exists(command[0]):
                results.add(name, None, f'{command[0]} could not be built here')
                continue
            released = sorted(handed_over(command, False) for _ in range(RELEASES))
            died = sorted(handed_over(command, True) / 1e3 for _ in range(CRASHES))
            line = {
                'release_ms': released[len(released) // 2],
                'release_worst_ms': released[-1],
                'crash_s': died[len(died) // 2],
                'crash_worst_s': died[-1],
            }
            say(
                f'  failover  {name}: {line["release_ms"]:.0f} ms after a release, {line["crash_s"]:.1f} s '
                'after a crash'
            )
            results.add(name, line)
            with open('results/failover.jsonl', 'a') as raw:
                raw.write(json.dumps(dict(line, row=name, at=int(time.time()))) + '\n')
    columns = [
        Column('after a release, ms', 'release_ms'),
        Column('the worst', 'release_worst_ms'),
        Column('after a crash, s', 'crash_s'),
        Column('the worst', 'crash_worst_s'),
    ]
    return (
        'Two replicas with the usual times (15, 10 and 2 s). Each figure is the time from the signal to the '
        'leader until the other replica leads: the median of '
        f'{RELEASES} releases and of {CRASHES} crashes. The lease of a crashed leader expires 15 s after its '
        'last renewal.\n\n'
        + table(results, columns, 'peer', ours=None)
    )


# ---------------------------------------------------------------- what has a program of its own

def printed(command, timeout=600):
    p = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=outside_of_make())
    return p.returncode, p.stdout, p.stderr


def lines_of(section, command):
    """All lines of JSON that the command prints; raw to results."""
    program = next((w for w in command if w != sys.executable), command[0])
    if not os.path.exists(program):
        raise RuntimeError(f'not run: {program} could not be built here')
    await_quiet()
    code, out, err = printed(command)
    lines = [json.loads(x) for x in out.splitlines() if x.startswith('{')]
    with open(f'results/{section}.jsonl', 'a') as raw:
        raw.writelines(json.dumps(dict(x, at=int(time.time()))) + '\n' for x in lines)
    if code or not lines:
        raise RuntimeError(
            f'not run: {" ".join(command)} ended with status {code}: '
            f'{(err.strip().splitlines() or ["it said nothing"])[-1]}'
        )
    return lines


IDLE_COLUMNS = [
    Column('RSS MB', 'rss_mb'),
    Column('of it anonymous', 'anon_mb'),
    Column('wake-ups per s', 'wakeups_per_s'),
    Column('CPU ms per s', 'cpu_ms_per_s'),
    Column('threads', 'threads'),
]
START_COLUMNS = [Column('ms to the first reconcile', 'first_reconcile_ms'), Column('median', 'median_ms')]


def idle(ctx):
    lines = lines_of('idle', [sys.executable, 'idle.py', '--port', str(ctx.port)])
    resting, starting = Results(), Results()
    for x in lines:
        (starting if x['figure'] == 'start' else resting).add(
            f'{x["peer"]}, {x["controllers"]} controller{"s" if x["controllers"] > 1 else ""}, '
            f'{x["objects"]:,} object{"s" if x["objects"] > 1 else ""}',
            x,
        )
    ten, first = next(iter(resting.lines)), next(iter(starting.lines))
    rows = judge(resting, IDLE_COLUMNS, [Goal('rss_mb', 12, ten), Goal('wakeups_per_s', QUIET, ten)]) + judge(
        starting, START_COLUMNS, [Goal('first_reconcile_ms', 50, first)]
    )
    return '\n\n'.join(
        [
            'Nothing happens. The clients of the other sections read their own counters '
            f'{lines[-1].get("own_looks_per_s", 0)} times a second, '
            'which adds to their wake-ups. A start lasts from exec to the first reconcile, on a warm server.',
            table(resting, IDLE_COLUMNS, 'process', ours=None),
            table(starting, START_COLUMNS, 'process', ours=None),
            goal_table(rows),
        ]
    )


def store(ctx):
    lines = lines_of('store', ['bin/store'])
    results = Results()
    # one row per figure, one column per number of objects
    for x in lines:
        results.lines[x['figure']] = [{size: v for size, v in x.items() if size != 'figure'}]
    return (
        'The informer\'s store with small objects that were decoded beforehand. Times are CPU time of the '
        'thread.\n\n'
        + table(results, [Column(size, size) for size in lines[0] if size != 'figure'], 'figure', ours=None)
    )


def lua(ctx):
    code, out, err = printed(['make', '-s', 'lua'])
    if code:
        raise RuntimeError(f'not run: {(err.strip().splitlines() or ["it said nothing"])[-1]}')
    with open('results/lua.txt', 'a') as raw:
        raw.write(out)
    return '```\n' + out.strip('\n') + '\n```'


RECORDER_COLUMNS = [
    Column('us a key without', 'without_us'),
    Column('with', 'with_us'),
    Column('ratio', 'ratio'),
]


def of_scripts(ctx, section, program):
    """The results of a program that runs three scripts, by script."""
    results = Results()
    for _ in range(ctx.runs):
        for x in lines_of(section, [program, 'lua/empty.lua', 'lua/fields.lua', 'lua/work.lua']):
            results.add(x['script'], x)
    return results


def recorder(ctx):
    results = of_scripts(ctx, 'recorder', 'bin/recorder')
    return (
        'Runs with the flight recorder (`--flight-recorder`) off and on. The figure is the process\'s CPU '
        'time for a key through queue, worker and script. The scripts send nothing; a script that writes '
        'takes at least ten times as long.\n\n'
        + table(results, RECORDER_COLUMNS, 'reconcile', ours=None)
        + '\n\n'
        + goal_table(judge(results, RECORDER_COLUMNS, [Goal('ratio', 1.05, 'work.lua')]))
    )


SANDBOX_COLUMNS = [
    Column('us a key without', 'without_us'),
    Column('with', 'with_us'),
    Column('ratio', 'ratio'),
    Column('with a hook', 'hook_us'),
    Column('ratio', 'hook_ratio'),
]


def sandbox(ctx):
    results = of_scripts(ctx, 'sandbox', 'bin/budgets')
    return (
        'Scripts without budgets, with budgets (turns, watchdog, counted memory), and with the hook that '
        'replaces signals in a process that is not ours. The figure is the process\'s CPU time for a key '
        'through queue, worker and script.\n\n'
        + table(results, SANDBOX_COLUMNS, 'reconcile', ours=None)
        + '\n\n'
        + goal_table(judge(results, SANDBOX_COLUMNS, [Goal('ratio', 1.02, 'work.lua')]))
    )


ISOLATE_COLUMNS = [
    Column('us a key here', 'here_us'),
    Column('isolated', 'there_us'),
    Column('more', 'more_us'),
    Column('us by the wall here', 'here_wall_us'),
    Column('isolated', 'there_wall_us'),
    Column('ms to start here', 'here_ms'),
    Column('isolated', 'there_ms'),
    Column('MiB of the process', 'child_mib'),
]


def isolate(ctx):
    results = of_scripts(ctx, 'isolate', 'bin/isolated')
    return (
        'Scripts whose Lua runs in this process, and scripts with `isolate = true`, whose Lua runs in a '
        'child process; each key\'s object of 400 bytes crosses to it as text. '
        'The figures are the CPU time of both processes for a key through queue, worker and script; the wall '
        'time, one key at a time; the time of a worker\'s first key, '
        'which starts the child; and the child\'s memory.\n\n'
        + table(results, ISOLATE_COLUMNS, 'reconcile', ours=None)
    )


RECORD_COLUMNS = [
    Column('us a key without', 'without_us'),
    Column('with --record', 'with_us'),
    Column('more', 'more_us'),
    Column('bytes', 'bytes'),
    Column('us a key again', 'replay_us'),
]


def record(ctx):
    results = of_scripts(ctx, 'record', 'bin/records')
    return (
        'Runs with and without a recording, each with a new object (400 bytes, recorded with its run). The '
        'last column is the cost of a replayed run, '
        'reading included. The figures are the process\'s CPU time for a key through queue, worker and '
        'script.\n\n'
        + table(results, RECORD_COLUMNS, 'reconcile', ours=None)
    )


SHADOW_COLUMNS = [
    Column('us a key without', 'without_us'),
    Column('with', 'with_us'),
    Column('more', 'more_us'),
    Column('ratio', 'ratio'),
]


def shadow(ctx):
    results = Results()
    for _ in range(ctx.runs):
        for x in lines_of(
            'shadow', ['bin/shadows', 'lua/empty.lua', 'lua/fields.lua', 'lua/work.lua', 'lua/writes.lua']
        ):
            results.add(x['script'], x)
    return (
        'Live runs with and without a candidate in the shadow. The difference is the cost of the data that a '
        'live run keeps for the candidate; the candidate\'s own '
        'work, on its own thread, is not included. The figure is the process\'s CPU time for a key through '
        'queue, worker and script.\n\n'
        + table(results, SHADOW_COLUMNS, 'reconcile', ours=None)
    )


RELOAD_COLUMNS = [Column('p50 ms', 'p50_ms'), Column('p99 ms', 'p99_ms')]
PAUSE_COLUMNS = RELOAD_COLUMNS + [
    Column('max ms', 'max_ms'),
    Column('events', 'events'),
    Column('reloads', 'reloads'),
]
HELD_COLUMNS = [Column('KB of a program', 'program_kb'), Column("of a worker's state", 'state_kb')]


def reload(ctx):
    objects, saves, seconds = 10000, 20 if ctx.quick else 100, 3 if ctx.quick else 10
    first, pause, held = Results(), Results(), Results()
    for _ in range(ctx.runs):
        saved, restarted = reloading.measure(objects, saves, 3 if ctx.quick else 10)
        first.add('kubelua', saved)
        first.add('kubelua, started anew', restarted)
        for x in lines_of('reload', ['bin/reloads', str(objects), str(seconds)]):
            (held if x['peer'] == 'memory' else pause).add(
                'a generation' if x['peer'] == 'memory' else x['peer'], x
            )
    return (
        f'The time from a saved file to the first reconcile on the new logic, with {objects:,} objects; '
        '50 ms of it wait for the end of the save. A compiled controller must restart instead; the second '
        'row is a restart of kubelua.\n\n'
        + table(first, RELOAD_COLUMNS)
        + '\n\nThe time from an event to its reconcile, at 1,000 events a second, with and without '
        'reloads:\n\n'
        + table(pause, PAUSE_COLUMNS, ours=None)
        + '\n\nThe memory of a generation, until its last run has ended:\n\n'
        + table(held, HELD_COLUMNS, ours=None)
    )


PROFILES = [
    ('list, %', ['--mode', 'sync']),
    ('events, %', ['--mode', 'burst', '--events', str(5 * FLOOD), '--rate', '0']),
]
LEAST = 1              # per cent: what a part must have in one of them


def profile(ctx):
    heads, parts = [], {}
    for way, words in PROFILES:
        found = lines_of(
            'profile',
            [sys.executable, 'profile.py', '--json', '--n', str(PODS), '--port', str(ctx.port)] + words,
        )[-1]
        heads.append(found['head'])
        for part, (share, functions) in found['parts'].items():
            parts.setdefault(part, {})[way] = (share, functions)
    rows = [
        '| part | ' + ' | '.join(way for way, _ in PROFILES) + ' | most in |',
        '|' + ' --- |' * (len(PROFILES) + 2),
    ]
    for part, ways in sorted(parts.items(), key=lambda p: -max(share for share, _ in p[1].values())):
        share, functions = max(ways.values())
        # what a library's functions are called tells nobody anything
        if share >= LEAST:
            rows.append(
                f'| {part} | '
                + ' | '.join(f'{ways[way][0]:.1f}' if way in ways else '-' for way, _ in PROFILES)
                + f' | {", ".join(functions) if "/" in part else ""} |'
            )
    return '\n\n'.join([' '.join(heads) + ' perf itself takes its part.', '\n'.join(rows)])


# ---------------------------------------------------------------- all of it

@dataclass
class Section:
    name: str
    title: str
    run: Callable
    seconds: tuple         # of one run: whole, quick; 0: not in quick. Rough, to say how long it takes
    repeats: bool = True   # it is run `runs` times


SECTIONS = [
    Section('sync', 'Sync', sync, (65, 45)),
    Section('burst', 'Events, 1,000 a second', burst, (65, 45)),
    Section('flood', 'Events as fast as they are read', flood, (75, 50)),
    Section('wq', 'Workqueue', wq, (70, 25)),
    Section('large', 'Sync of 100,000', large, (125, 0)),
    Section('real', 'Sync from a real API server', real, (150, 20)),
    Section('strip', 'Sync without managedFields', strip, (65, 40)),
    Section('decode', 'Decoding alone', decode, (75, 40)),
    Section('growth', 'Growth', growth, (90, 15)),
    Section('small', 'Sync of 1,000', small, (60, 0)),
    Section('server', 'The embedded API server', server, (260, 75)),
    Section('calls', 'Requests to a real API server', calls, (130, 45)),
    Section('reconcile', 'Writes of a controller', reconcile, (200, 60)),
    Section('rotation', 'A token rotates', rotation, (260, 0), False),
    Section('failover', 'The leader goes', failover, (220, 0), False),
    Section('idle', 'Idle, and start', idle, (230, 230), False),
    Section('lua', 'Calls of a script', lua, (60, 60), False),
    Section('recorder', 'The flight recorder', recorder, (15, 15)),
    Section('sandbox', 'Budgets of scripts', sandbox, (25, 25)),
    Section('isolate', 'Isolation', isolate, (10, 10)),
    Section('record', 'Recording and replay', record, (20, 20)),
    Section('shadow', 'A candidate in the shadow', shadow, (20, 20)),
    Section('reload', 'New logic', reload, (50, 20)),
    Section('store', 'Store', store, (60, 60), False),
    Section('profile', 'Profile', profile, (40, 40), False),
]


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument(
        '--quick',
        action='store_true',
        help='a few minutes: two runs, the main peers, nothing above 100,000 objects',
    )
    a.add_argument('--runs', type=int, help='3, with --quick 2')
    a.add_argument('--sections', help='of ' + ','.join(s.name for s in SECTIONS))
    a.add_argument('--port', type=int, default=18080, help='of the replay server; the next one is its TLS')
    a.add_argument(
        '--write', metavar='FILE', help='measure nothing; put figures into FILE between its markers'
    )
    a.add_argument('--figures', default='results/bench.md', help='what --write puts there')
    return a.parse_args()


APART = ['| measured apart | by |', '| --- | --- |']


def blocks(text):
    """The head of figures, which sections other runs measured (title: run), and all sections by title."""
    head, *rest = ('\n' + text.strip()).split('\n### ')
    head, _, rows = head.partition('\n'.join(APART))
    apart = {}
    for line in rows.strip().splitlines():
        titles, run = line.strip('| ').split(' | ', 1)
        apart |= dict.fromkeys(titles.split('; '), run)
    return head.strip(), apart, {x.split('\n', 1)[0]: x.split('\n', 1)[-1].strip() for x in rest}


def merged(old, new):
    """A run of some sections replaces those of the page, and a table says what was run; a run of as many
    replaces all."""
    (head, apart, page), (run, _, sections) = blocks(old), blocks(new)
    titles = [s.title for s in SECTIONS]
    if all(t in sections for t in page if t in titles):
        return new.strip()
    page |= sections
    apart |= dict.fromkeys(sections, run.splitlines()[0].split(' of each')[0])
    runs = {}
    for title in titles:
        if title in apart:
            runs.setdefault(apart[title], []).append(title)
    rows = '\n'.join(APART + [f'| {"; ".join(found)} | {run} |' for run, found in runs.items()])
    return '\n\n'.join([head, rows] + [f'### {t}\n\n{page[t]}' for t in titles if t in page])


def write(figures, path):
    try:
        with open(figures) as f:
            new = f.read()
        with open(path) as f:
            text = f.read()
    except OSError as e:
        sys.exit(f'bench: {e.filename}: {e.strerror}; `make bench` writes the figures')
    begin, end = (text.find(m) for m in MARKERS)
    if begin < 0 or end < begin:
        sys.exit(f'bench: {path} has not the two lines {MARKERS[0]} and {MARKERS[1]}')
    begin += len(MARKERS[0])
    with open(path, 'w') as f:
        f.write(text[:begin] + '\n\n' + merged(text[begin:end], new) + '\n\n' + text[end:])
    print(f'bench: {figures} is now in {os.path.normpath(path)}')


def choose(args):
    names = [s.name for s in SECTIONS]
    wanted = (
        args.sections.split(',')
        if args.sections
        else [s.name for s in SECTIONS if not args.quick or s.seconds[1]]
    )
    for w in wanted:
        if w not in names:
            sys.exit(f'bench: there is no section {w!r}; there are {", ".join(names)}')
    return [s for s in SECTIONS if s.name in wanted]


def estimate(sections, runs, quick):
    seconds = sum((s.seconds[quick] or s.seconds[0]) * (runs if s.repeats else 1) for s in sections
                  if not (s.name == 'sync' and any(o.name == 'burst' for o in sections)))
    return max(1, round(seconds / 60))


def main():
    args = arguments()
    if args.write:
        return write(args.figures, args.write)
    os.makedirs('results', exist_ok=True)
    sections = choose(args)
    ctx = Context(args.quick, args.runs or (2 if args.quick else 3), args.port, [s.name for s in sections])
    say(
        f'bench: {", ".join(ctx.chosen)}; {ctx.runs} run(s) of each; about '
        f'{estimate(sections, ctx.runs, args.quick)} min on two cores'
    )
    command = ' '.join(
        ['make bench']
        + (['QUICK=1'] if args.quick else [])
        + ([f'SECTIONS={args.sections}'] if args.sections else [])
        + ([f'RUNS={args.runs}'] if args.runs else [])
    )
    out = [
        machine.head(command, ctx.runs)
        + '\nA cell has the least and the most of the runs; (xR) is R times ours, by the least.'
    ]
    print(out[0], flush=True)
    began = time.time()
    for i, s in enumerate(sections):
        try:
            text = s.run(ctx)
        except (RuntimeError, OSError, subprocess.SubprocessError, KeyError) as e:
            text = str(e) if str(e).startswith('not run') else f'not run: {type(e).__name__}: {e}'
        out.append(f'### {s.title}\n\n{text}')
        print('\n' + out[-1], flush=True)
        with open('results/bench.md', 'w') as f:
            f.write('\n\n'.join(out) + '\n')
    say(f'\nbench: done in {(time.time() - began) / 60:.1f} min; the tables are in bench/results/bench.md')


if __name__ == '__main__':
    os.chdir(HERE)
    main()
