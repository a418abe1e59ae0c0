#!/usr/bin/env python3
"""sim.py - what `kubelua sim` takes, beside the goals that it has: a Markdown table.

  make bench-sim [QUICK=1] [RUNS=3]

Work of the goal's size takes too long to be simulated whole: a part of it is, and the time of the whole
follows from what the part took. Both are shown. What a process takes to start is measured and taken off, and
for the first row the start of the cluster, too. Times are of the processor, so that a busy machine does not
count for us."""
import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

import snapshot

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..')
KUBELUA = os.path.join(ROOT, 'build', 'kubelua')
POLICY = 'controllers/koordinator/noderesource.lua'
PODS = 'prod=0.7,prod_cpu=1,prod_memory=4Gi'    # 22 prod pods a node, and about 8 jobs with the rate below
JOBS = 'batch_rate=16,batch_cpu=1'
# 2 long pods a node, and 2.5 jobs a node, which take 6 to 60 minutes and all come at the beginning
SPARSE = 'prod=0.14,prod_cpu=2,batch_rate=0,lent=0.4'
SPARSE_MINUTES = 75
SPARSE_JOBS = '''return { at = { ["0s"] = function(s)
  for k = 1, 50 do
    s:add_job { cpu = "2", memory = "4Gi", time = ("%%dm"):format(5 + k * 55 // 50), count = %d }
  end
end } }
'''
# Workloads of Kueue's performance suite: count, creation interval, class, runtime, priority, request
WORKLOADS = (
    (350, 100, 'small', 200, 50, 1),
    (100, 500, 'medium', 500, 100, 5),
    (50, 1200, 'large', 1000, 200, 20),
)
# Of openb: nodes by model and number of GPUs; pods: a share of all, cpu, GPUs, thousandths of each
GPU_NODES = (
    (549, 'G2', 8),
    (387, 'T4', 2),
    (131, 'P100', 2),
    (39, 'G3', 8),
    (28, 'V100M16', 4),
    (21, 'V100M32', 8),
    (19, 'V100M16', 1),
    (17, 'T4', 4),
    (22, 'V100M32', 4),
)
GPU_PODS = (
    (0.13, 8000, 0, 0),
    (0.38, 6000, 1, 0),
    (0.47, 10000, 1, 1000),
    (0.01, 24000, 2, 1000),
    (0.01, 64000, 8, 1000),
)
GPU_RUNS = 1020
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


def least(words, runs):
    """Of some runs the shortest."""
    return min(spent(words) for _ in range(runs))


def generated(nodes, minutes, settings):
    return [POLICY, '--generate', f'nodes={nodes},{settings}', '--for', f'{minutes}m']


def policy(nodes, minutes):
    return generated(nodes, minutes, f'{PODS},{JOBS}')


def of_node_minute(nodes, minutes, runs):
    """ms of a node and a minute, MiB, seconds of the start: of the shortest start and the shortest whole of
    some runs, since a difference of two single runs has the noise of both. nan ms: what is left is not above
    that."""
    start, _ = least(policy(nodes, 1), runs)
    whole, mib = least(policy(nodes, 1 + minutes), runs)
    passed = whole - start
    return 1000 * passed / nodes / minutes if passed > NOISE * start else math.nan, mib, start


def span(seconds):
    if math.isnan(seconds):
        return 'within the noise'
    return (
        f'{seconds:.1f} s'
        if seconds < 120
        else f'{seconds / 60:.0f} min' if seconds < 7200 else f'{seconds / 3600:.1f} h'
    )


def of_snapshot(nodes, form, runs):
    """Bytes, and seconds for them and a minute of their cluster."""
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, f'cluster.{form}')
        n = snapshot.write(path, nodes, form)
        return n, least([POLICY, '--snapshot', path, '--for', '1m'], runs)[0]


def of_queues(cohorts, queues, share, runs):
    """Seconds for workloads in queues of cohorts; share: how many of each set there are."""
    lines = [
        'cohorts:',
        '- className: cohort',
        f'  count: {cohorts}',
        '  queuesSets:',
        '  - className: cq',
        f'    count: {queues}',
        '    nominalQuota: 20',
        '    borrowingLimit: 100',
        '    reclaimWithinCohort: Any',
        '    withinClusterQueue: LowerPriority',
        '    workloadsSets:',
    ]
    for count, interval, name, runtime, priority, request in WORKLOADS:
        lines += [
            f'    - count: {count * share // 100}',
            f'      creationIntervalMs: {interval}',
            '      workloads:',
            f'      - {{className: {name}, runtimeMs: {runtime}, priority: {priority}, request: {request}}}',
        ]
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, 'queues.yaml')
        with open(path, 'w') as f:
            f.write('\n'.join(lines) + '\n')
        return least(['--queues', path], runs)[0]


def of_gpus(runs):
    """Seconds for one run of the fragmentation study over a trace of openb's size."""
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, 'node.csv'), 'w') as f:
            f.write('sn,cpu_milli,memory_mib,gpu,model\n')
            for count, model, gpus in GPU_NODES:
                for i in range(count):
                    f.write(f'{model}-{gpus}-{i},{gpus * 12000 + 8000},{gpus * 49152},{gpus},{model}\n')
        with open(os.path.join(dir, 'pod.csv'), 'w') as f:
            f.write('name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n')
            for i in range(8152):
                _, cpu, gpus, milli = dice.choices(GPU_PODS, [p[0] for p in GPU_PODS])[0]
                cpu += dice.randrange(8) * 1000
                milli = milli or gpus * (100 + 20 * dice.randrange(40))
                f.write(f'p{i},{cpu},{cpu * 2},{gpus},{milli},\n')
        return least(['--placement', 'fgd', '--trace', f'openb:{dir}'], runs)[0]


def of_sparse(nodes, runs):
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, 'jobs.lua')
        with open(path, 'w') as f:
            f.write(SPARSE_JOBS % (nodes * 2.5 // 50))
        return least(
            ['--generate', f'nodes={nodes},{SPARSE}', '--scenario', path, '--for', f'{SPARSE_MINUTES}m'], runs
        )


def growth(runs):
    """How a node and a minute grow with the cluster: more minutes where nodes are few, so that the start does
    not hide them."""
    print('\n| nodes | goal, ms a node and minute | reached | start, ms a node | goal, MiB | reached |')
    print('| --- | --- | --- | --- | --- | --- |')
    for nodes, minutes in ((100, 40), (1000, 20), (5000, 20)):
        ms, mib, start = of_node_minute(nodes, minutes, runs)
        reached = 'within the noise' if math.isnan(ms) else f'{ms:.2f}'
        goal_mib = '1536' if nodes == 5000 else ''
        print(
            f'| {nodes} | {GOAL_MS:.4f} | {reached} | {1000 * start / nodes:.1f} | {goal_mib} | {mib:.0f} |',
            flush=True,
        )


def rows(quick, runs):
    """(work, goal, reached) of each row of the goals, one after another."""
    nodes, minutes = (20, 5) if quick else (200, 20)
    nothing, _ = least(['--generate', 'nodes=1', '--for', '1m'], runs)
    ms, mib, _ = of_node_minute(nodes, minutes, runs)
    yield (
        '24 h of 5,000 nodes and 150,000 pods '
        f'({minutes} min of {nodes} nodes measured, {ms:.2f} ms a node and minute, {mib:.0f} MiB)',
        '60 s',
        span(ms / 1000 * 5000 * DAY),
    )
    yield ('100 settings of 24 h of 1,000 nodes, on two cores (from the same)', '10 min',
           span(ms / 1000 * 1000 * DAY * 100 / 2))
    yield ("Kueue's performance suites: 15,000 workloads; 50,000 over 1,000 queues", '1 s; 5 s',
           f'{span(of_queues(5, 6, 100, runs))}; {span(of_queues(10, 100, 10, runs))}')
    took = of_gpus(runs)
    yield (
        '1,020 runs of the GPU fragmentation study over a trace of openb\'s size, on two cores '
        f'(1 run measured, {took:.1f} s)',
        '30 min',
        span(took * GPU_RUNS / 2),
    )
    many = 2000 if quick else 20000
    took, mib = of_sparse(many, runs)
    yield (
        '20,000 nodes, 40,000 long and 50,000 batch pods to completion, without a policy '
        f'({many:,} nodes measured, {took:.1f} s, {mib:.0f} MiB)',
        '10 s',
        span(nothing + (took - nothing) / many * 20000),
    )
    machines = 40 if quick else 200
    took, _ = least(['--predictors', '--generate', f'nodes={machines},prod=0.75'], runs)
    yield (
        'all predictors and the oracle, 10,000 machines, 7 days, on two cores '
        f'({machines} machines measured, {took:.1f} s)',
        '2 min',
        span(took / machines * 10000 / 2),
    )
    for form in ('json', 'yaml'):
        few = 20 if quick else 150
        n, took = of_snapshot(few, form, runs)
        yield (
            f'1 GB snapshot in {form.upper()}, to the figures of the first minute '
            f'({n / 1e6:.1f} MB of {few} nodes measured, {took:.1f} s)',
            '30 s',
            span((took - nothing) / n * 1e9),
        )
        yield (
            f'the same, and an hour of the policy on its {few / n * 1e9:,.0f} nodes (from the first row)',
            '30 s',
            span((took - nothing) / n * 1e9 + ms / 1000 * few / n * 1e9 * 59),
        )


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
