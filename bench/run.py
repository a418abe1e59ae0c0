#!/usr/bin/env python3
"""run.py - one list of pods, one replay server, every peer in turn; prints a table with ratios.

Each peer syncs N pods, reconciles each once, then receives EVENTS watch events at RATE per second. Medians
over RUNS; raw lines go to results/. A peer whose program is missing is "not run". measure.py has every
section and the goals."""
import argparse
import json
import os
import statistics
import sys

from replayed import Replay, Task, read_peers

HERE = os.path.dirname(os.path.abspath(__file__))

# column in the table, key in the peer's line
COLUMNS = [
    ('synced wall s', 'sync_wall_s'),
    ('synced cpu s', 'sync_cpu_s'),
    ('all reconciled cpu s', 'all_reconciled_cpu_s'),
    ('RSS MB', 'rss_mb_after_sync'),
    ('peak RSS MB', 'hwm_mb'),
    ('cpu s / 1k events', 'cpu_s_per_1k_events'),
    ('event->reconcile p50 us', 'lat_p50_us'),
    ('p99 us', 'lat_p99_us'),
]


def arguments():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument('--n', type=int, default=20000, help='pods')
    a.add_argument('--events', type=int, default=5000)
    a.add_argument('--rate', type=float, default=1000, help='events per second; 0: as fast as the peer reads')
    a.add_argument('--runs', type=int, default=3)
    a.add_argument('--workers', type=int, default=1)
    a.add_argument('--peers', help='comma-separated names of peers.txt')
    a.add_argument('--base', default='client-go', help='ratios are to this peer')
    a.add_argument('--mode', choices=['burst', 'sync'], default='burst', help='sync: without the events')
    a.add_argument('--strip', action='store_true', help='drop managedFields by the means of each peer')
    a.add_argument('--tls', action='store_true', help='HTTPS and HTTP/2')
    a.add_argument('--port', type=int, default=18080)
    a.add_argument('--timeout', type=int, default=600, help='seconds for one run of one peer')
    return a.parse_args()


def number(x):
    """Three digits that count, and no exponents."""
    return '-' if x != x or x < 0 else f'{x:,.0f}' if x >= 100 else f'{x:.3g}'


def cell(value, base):
    return number(value) + (f' (x{value / base:.2g})' if base and base > 0 and value >= 0 else '')


def table(results, absent, info):
    columns = COLUMNS if ARGS.mode == 'burst' else COLUMNS[:5]
    median = {
        name: {key: statistics.median(x.get(key, float('nan')) for x in lines) for _, key in columns}
        for name, lines in results.items()
    }
    base = median.get(ARGS.base)
    print(
        f'\nN={ARGS.n} pods ({info["bytes"] / 1e6:.1f} MB)  workers={ARGS.workers}  strip={ARGS.strip}  '
        f'tls={ARGS.tls}'
        + (f'  events={ARGS.events} at {ARGS.rate:g}/s' if ARGS.mode == 'burst' else '')
        + f'  runs={ARGS.runs}, medians'
        + (f'; (xR) is the ratio to {ARGS.base}' if base else '')
    )
    print('| peer | ' + ' | '.join(title for title, _ in columns) + ' |\n|' + '---|' * (len(columns) + 1))
    for name, m in median.items():
        cells = [cell(m[key], base and base[key]) for _, key in columns]
        print(f'| {name} | ' + ' | '.join(cells) + ' |')
    for name, why in absent:
        print(f'| {name} | not run: {why} |' + ' |' * (len(columns) - 1))
    checks = {x.get('check') for lines in results.values() for x in lines}
    print(
        'every peer saw the same objects'
        if len(checks) == 1
        else f'THE PEERS DISAGREE about what they read: {checks}'
    )


def main():
    os.makedirs('results', exist_ok=True)
    peers, absent = read_peers(ARGS.peers and ARGS.peers.split(','), ARGS.n, ARGS.timeout)
    if not os.path.exists('bin/replay'):
        sys.exit('bench: not run: the replay server needs Go to be built (https://go.dev/dl)')
    task = Task(
        mode=ARGS.mode,
        events=ARGS.events,
        rate=ARGS.rate,
        workers=ARGS.workers,
        strip=ARGS.strip,
        tls=ARGS.tls,
        timeout=ARGS.timeout,
    )
    server = Replay(f'data/{ARGS.n}.json', ARGS.port)
    results = {}
    failed = {}
    try:
        with open(f'results/{ARGS.mode}-{ARGS.n}.jsonl', 'a') as raw:
            for i in range(ARGS.runs):
                for name, command in peers:
                    line, why = server.run(name, command, task)
                    if not line:
                        failed[name] = why
                        print(f'run {i + 1}  {name}: {why}', file=sys.stderr)
                        continue
                    raw.write(json.dumps(line) + '\n')
                    raw.flush()
                    results.setdefault(name, []).append(line)
                    print(
                        f'run {i + 1}  {name}: synced in {line["sync_wall_s"]:.2f} s, '
                        f'{line["sync_cpu_s"]:.2f} s of cpu, {line["rss_mb_after_sync"]} MB'
                        + (f'; p50 {line["lat_p50_us"]:g} us' if ARGS.mode == 'burst' else ''),
                        file=sys.stderr,
                    )
    finally:
        server.stop()
    if not results:
        sys.exit('bench: no peer gave a result')
    table(results, absent + [(n, w) for n, w in failed.items() if n not in results], server.info)


os.chdir(HERE)
ARGS = arguments()
main()
