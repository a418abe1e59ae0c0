#!/usr/bin/env python3
"""sim.py - what `kubelua sim` takes, beside the goals that it has: a Markdown table.

  make bench-sim [QUICK=1] [RUNS=3]

A cluster of the goal's size takes too long to be simulated whole: some of its minutes are, on nodes enough that the start
does not count, and the time of the whole follows from the time that a node and a minute took. Both are shown. The start (an
empty span) is measured and taken off. Times are of the processor, so that a busy machine does not count for us."""
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
DAY = 24 * 60
NOISE = 0.3                                    # of a run's time, on a machine that others use
GOAL_MS = 60 * 1000 / 5000 / DAY               # a day of 5,000 nodes in 60 s


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


def policy(nodes, minutes):
    return [POLICY, '--generate', f'nodes={nodes},{PODS},{JOBS}', '--for', f'{minutes}m']


def of_node_minute(nodes, minutes, runs):
    """ms of a node and a minute, MiB, seconds of the start: of the shortest start and the shortest whole of some
    runs, since a difference of two single runs has the noise of both. nan ms: what is left is not above that."""
    starts = [spent(policy(nodes, 1))[0] for _ in range(runs)]
    wholes = [spent(policy(nodes, 1 + minutes)) for _ in range(runs)]
    start, (whole, mib) = min(starts), min(wholes)
    passed = whole - start
    return 1000 * passed / nodes / minutes if passed > NOISE * start else math.nan, mib, start


def span(seconds):
    if math.isnan(seconds):
        return 'within the noise'
    return f'{seconds:.1f} s' if seconds < 120 else f'{seconds / 60:.0f} min' if seconds < 7200 else f'{seconds / 3600:.1f} h'


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


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--quick', action='store_true', help='fewer nodes and minutes: seconds')
    p.add_argument('--runs', type=int, default=None, help='of each (3; 1 with --quick)')
    args = p.parse_args()
    runs = args.runs or (1 if args.quick else 3)
    nodes, minutes = (20, 5) if args.quick else (200, 20)
    ms, mib, _ = of_node_minute(nodes, minutes, runs)
    rows = [(f'24 h of 5,000 nodes and 150,000 pods ({minutes} min of {nodes} nodes measured, {ms:.2f} ms a node and minute, {mib:.0f} MiB)',
             '60 s', span(ms / 1000 * 5000 * DAY)),
            (f'100 settings of 24 h of 1,000 nodes, on two cores (from the same)', '10 min',
             span(ms / 1000 * 1000 * DAY * 100 / 2))]
    machines, days = (2, 3) if args.quick else (50, 7)
    best = min(spent(['--predictors', '--generate', f'nodes={machines}', '--for', f'{days * 24}h'])[0] for _ in range(runs))
    rows.append((f'all predictors and the oracle, 10,000 machines, 7 days ({days} days of {machines} machines measured, {best:.1f} s)',
                 '2 min', span(best / machines / days * 10000 * 7)))
    print('| work | goal | reached |\n| --- | --- | --- |')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')
    if not args.quick:
        growth(runs)


if __name__ == '__main__':
    main()
