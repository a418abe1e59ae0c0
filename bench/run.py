#!/usr/bin/env python3
"""run.py - one list of pods, one replay server, every peer in turn; prints a table with ratios.

Each peer syncs N pods, reconciles each once, then receives EVENTS watch events at RATE per second. The server runs on
cpu 0, the peer on cpu 1. Medians over RUNS; raw lines go to results/. A peer whose program is missing is "not run"."""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
QUIET_SHARE = 0.6      # of one core: other work above this distorts wall times, so we wait a little for it to end
QUIET_WAIT = 12        # seconds at most

# column in the table, key in the peer's line
COLUMNS = [
    ('synced wall s', 'sync_wall_s'), ('synced cpu s', 'sync_cpu_s'),
    ('all reconciled cpu s', 'all_reconciled_cpu_s'),
    ('RSS MB', 'rss_mb_after_sync'), ('peak RSS MB', 'hwm_mb'),
    ('cpu s / 1k events', 'cpu_s_per_1k_events'), ('event->reconcile p50 us', 'lat_p50_us'), ('p99 us', 'lat_p99_us'),
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


def read_peers(wanted, n):
    peers, absent = [], []
    with open('peers.txt') as f:
        for line in f:
            if not line.strip() or line.startswith('#'):
                continue
            name, largest, needs, command = (x.strip() for x in line.split('|'))
            if wanted and name not in wanted.split(','):
                continue
            if n > int(largest):
                absent.append((name, f'only up to N={largest}: it is not done within {ARGS.timeout} s'))
            elif not os.path.exists(needs):
                absent.append((name, f'{needs} could not be built here'))
            else:
                peers.append((name, command.split()))
    return peers, absent


def pinned(cpu, command):
    if shutil.which('taskset') and (os.cpu_count() or 1) > 1:
        return ['taskset', '-c', str(cpu)] + command
    return command


def busy_share():
    """How many cores the machine kept busy in one second; niced work gives way and does not count."""
    def read():
        with open('/proc/stat') as f:
            return [int(x) for x in f.readline().split()[1:9]]
    a = read()
    time.sleep(1)
    d = [y - x for x, y in zip(a, read())]
    return (sum(d) - d[1] - d[3] - d[4]) / 100


class Replay:
    """The replay server on the list of N pods."""

    def __init__(self, data):
        self.refuse_another()
        self.url, self.tls = f'http://127.0.0.1:{ARGS.port}', f'127.0.0.1:{ARGS.port + 1}'
        with open('replay.log', 'w') as log:
            self.process = subprocess.Popen(
                pinned(0, ['bin/replay', '-q', '-data', data, '-addr', self.url[7:], '-tls', self.tls, '-ca-out', 'ca.pem']), stderr=log)
        deadline = time.time() + 60
        while True:
            try:
                self.info = self.ask('/control/info')
                return
            except OSError:
                if time.time() > deadline or self.process.poll() is not None:
                    sys.exit('bench: the replay server did not start; replay.log says why')
                time.sleep(.1)

    @staticmethod
    def refuse_another():
        """Another measurement on this port would answer for ours, with its own list."""
        for port in (ARGS.port, ARGS.port + 1):
            with socket.socket() as s:
                s.settimeout(1)
                if s.connect_ex(('127.0.0.1', port)) == 0:
                    sys.exit(f'bench: port {port} is taken, perhaps by another measurement; end it, or choose one with --port')

    def ask(self, path, body=None):
        with urllib.request.urlopen(self.url + path, data=body, timeout=60) as r:
            return json.load(r)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run_once(server, name, command):
    for _ in range(QUIET_WAIT):
        busy = busy_share()
        if busy < QUIET_SHARE:
            break
    server.ask('/control/reset', b'')
    before = server.ask('/control/info')['cpu_s']
    words = command + ['--server', f'https://{server.tls}' if ARGS.tls else server.url, '--workers', str(ARGS.workers),
                       '--mode', ARGS.mode, '--events', str(ARGS.events), '--rate', f'{ARGS.rate:g}']
    if ARGS.strip:
        words.append('--strip')
    if ARGS.tls:
        words += ['--ca', os.path.join(HERE, 'ca.pem'), '--control', server.url]
    with open('results/stderr.log', 'a') as err:
        p = subprocess.Popen(pinned(1, words), stdout=subprocess.PIPE, stderr=err, text=True)
        try:
            out, _ = p.communicate(timeout=ARGS.timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            return None, f'not done within {ARGS.timeout} s'
    lines = [x for x in out.splitlines() if x.startswith('{')]
    if not lines:
        return None, f'it ended with status {p.returncode} and no result; results/stderr.log says why'
    line = json.loads(lines[-1])
    line.update(peer=name, server_cpu_s=round(server.ask('/control/info')['cpu_s'] - before, 3), busy_before=round(busy, 2), load1=os.getloadavg()[0])
    return line, None


def number(x):
    """Three digits that count, and no exponents."""
    return '-' if x != x or x < 0 else f'{x:,.0f}' if x >= 100 else f'{x:.3g}'


def cell(value, base):
    return number(value) + (f' (x{value / base:.2g})' if base and base > 0 and value >= 0 else '')


def table(results, absent, info):
    columns = COLUMNS if ARGS.mode == 'burst' else COLUMNS[:5]
    median = {name: {key: statistics.median(x.get(key, float('nan')) for x in lines) for _, key in columns} for name, lines in results.items()}
    base = median.get(ARGS.base)
    print(f'\nN={ARGS.n} pods ({info["bytes"] / 1e6:.1f} MB)  workers={ARGS.workers}  strip={ARGS.strip}  tls={ARGS.tls}'
          + (f'  events={ARGS.events} at {ARGS.rate:g}/s' if ARGS.mode == 'burst' else '') + f'  runs={ARGS.runs}, medians'
          + (f'; (xR) is the ratio to {ARGS.base}' if base else ''))
    print('| peer | ' + ' | '.join(title for title, _ in columns) + ' |\n|' + '---|' * (len(columns) + 1))
    for name, m in median.items():
        cells = [cell(m[key], base and base[key]) for _, key in columns]
        print(f'| {name} | ' + ' | '.join(cells) + ' |')
    for name, why in absent:
        print(f'| {name} | not run: {why} |' + ' |' * (len(columns) - 1))
    checks = {x.get('check') for lines in results.values() for x in lines}
    print('every peer saw the same objects' if len(checks) == 1 else f'THE PEERS DISAGREE about what they read: {checks}')


def main():
    os.makedirs('results', exist_ok=True)
    peers, absent = read_peers(ARGS.peers, ARGS.n)
    if not os.path.exists('bin/replay'):
        sys.exit('bench: not run: the replay server needs Go to be built (https://go.dev/dl)')
    server = Replay(f'data/{ARGS.n}.json')
    results = {}
    failed = {}
    try:
        with open(f'results/{ARGS.mode}-{ARGS.n}.jsonl', 'a') as raw:
            for i in range(ARGS.runs):
                for name, command in peers:
                    line, why = run_once(server, name, command)
                    if not line:
                        failed[name] = why
                        print(f'run {i + 1}  {name}: {why}', file=sys.stderr)
                        continue
                    raw.write(json.dumps(line) + '\n')
                    raw.flush()
                    results.setdefault(name, []).append(line)
                    print(f'run {i + 1}  {name}: synced in {line["sync_wall_s"]:.2f} s, {line["sync_cpu_s"]:.2f} s of cpu, {line["rss_mb_after_sync"]} MB'
                          + (f'; p50 {line["lat_p50_us"]:g} us' if ARGS.mode == 'burst' else ''), file=sys.stderr)
    finally:
        server.stop()
    if not results:
        sys.exit('bench: no peer gave a result')
    table(results, absent + [(n, w) for n, w in failed.items() if n not in results], server.info)


os.chdir(HERE)
ARGS = arguments()
main()
