#!/usr/bin/env python3
"""profile.py - where the time goes: `perf` on our client while it syncs N pods (and takes a burst), summed up
by part of the source.

  make -C bench profile [N=20000] [ARGS="--mode burst --events 20000"] [PORT=18080]

A function belongs to the file whose object defines it; what is not ours is the kernel's or a library's. Needs
perf (Debian: linux-perf). The whole record stays in results/perf.data, for `perf report`."""
import argparse
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from replayed import Replay, Task, pinned

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = 'results/perf.data'


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--n', type=int, default=20000)
    a.add_argument('--mode', choices=['sync', 'burst'], default='sync')
    a.add_argument('--events', type=int, default=Task.events)
    a.add_argument('--rate', type=float, default=Task.rate)
    a.add_argument('--port', type=int, default=18080)
    a.add_argument(
        '--peer', default='./client.sh', help='./client.sh: the reconciler in Lua; bin/client: in C'
    )
    a.add_argument('--json', action='store_true', help='one line, for a program')
    a.add_argument('--functions', type=int, default=3, help='named per part')
    return a.parse_args()


def owners():
    """function -> file of the source that defines it."""
    found = {}
    for path in glob.glob('../build/obj/core/**/*.o', recursive=True) + glob.glob(
        '../build/obj/bindings/**/*.o', recursive=True
    ):
        source = os.path.relpath(path, '../build/obj')[:-2] + '.c'
        names = subprocess.run(
            ['nm', '--defined-only', path], capture_output=True, text=True, check=True
        ).stdout
        for line in names.splitlines():
            _, kind, name = line.split(None, 2)
            if kind in 'tT':
                found.setdefault(name, source)
    return found


def part_of(dso, symbol, owner):
    if dso.startswith('[') or 'vmlinux' in dso or symbol.endswith('[k]'):
        return 'kernel'
    if symbol.endswith('@plt'):
        return 'libc'
    name = symbol.split('.')[0]                      # gcc's .part.0, .constprop.0
    if dso == 'client':
        return (
            owner.get(name) or owner.get(symbol) or ('libgcc' if name.startswith('__') else 'bench/client.c')
        )
    return re.sub(r'-?[0-9.]*\.so.*', '', os.path.basename(dso))


def shares():
    """(share, dso, function), largest first."""
    report = subprocess.run(
        [
            'perf',
            'report',
            '-i',
            RECORD,
            '--stdio',
            '--no-children',
            '-g',
            'none',
            '-F',
            'overhead,dso,sym',
            '-w',
            '0,0,0',
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in report.splitlines():
        found = re.match(r'\s*([0-9.]+)%\s+(\S+)\s+\[(.)\]\s+(.*\S)', line)
        if found:
            yield float(found[1]), '[kernel]' if found[3] == 'k' else found[2], found[4]


def main():
    args = arguments()
    if not shutil.which('perf'):
        sys.exit('perf is not here (Debian: apt-get install linux-perf)')
    os.makedirs('results', exist_ok=True)
    subprocess.run(['make', '-s', f'data/{args.n}.json'], check=True)
    server = Replay(f'data/{args.n}.json', args.port)
    record = (
        ['perf', 'record', '-q', '-F', '5000', '-g', '-o', RECORD, '--'] + args.peer.split() + ['--profile']
    )
    task = Task(mode=args.mode, events=args.events, rate=args.rate)
    try:
        line, why = server.run('kubelua', record, task)
    finally:
        server.stop()
    if not line:
        sys.exit(why)
    owner = owners()
    parts, names = collections.Counter(), collections.defaultdict(list)
    for share, dso, symbol in shares():
        part = part_of(dso, symbol, owner)
        parts[part] += share
        names[part].append(f'{symbol} {share:.1f}')
    head = (
        f'{args.n:,} pods: {line["all_reconciled_cpu_s"]:.2f} CPU s until all were reconciled'
        + (
            f', and {args.events:,} events at {1000 * line["cpu_s_per_1k_events"]:.0f} us each'
            if args.mode == 'burst'
            else ''
        )
        + '.'
    )
    if args.json:
        return print(
            json.dumps(
                {
                    'head': head,
                    'parts': {p: (share, names[p][: args.functions]) for p, share in parts.items()},
                }
            )
        )
    print(head + ' perf itself takes its part.\n')
    print('| part | % | of it |\n| --- | --- | --- |')
    for part, share in parts.most_common():
        if share >= 0.5:
            print(f'| {part} | {share:.1f} | {", ".join(names[part][:args.functions])} |')


os.chdir(HERE)
main()
