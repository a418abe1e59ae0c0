"""reconciling.py - a controller that writes each object once, on a real API server: how many writes a second,
how long from a create to its write, at what cost.

bin/observe makes the objects and watches for the writes, the same for every peer; CPU and memory are the
kernel's figures for the controller's process."""
import json
import os
import signal
import subprocess

HZ = os.sysconf('SC_CLK_TCK')


def cpu(pid):
    with open(f'/proc/{pid}/stat') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def rss(pid):
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith('VmRSS:'))


def ours(in_flight):
    """The script with its number, as a file."""
    path = os.path.abspath(f'results/recon-{in_flight}.lua')
    with open('lua/recon.lua') as f, open(path, 'w') as out:
        out.write(f.read().replace('concurrency = IN_FLIGHT', f'concurrency = {in_flight}'))
    return ['../build/kubelua', 'run', path, '--namespace', 'bench', '--log-level', 'error', '--kubeconfig']


def peers(kubeconfig, in_flight):
    return [
        ('kubelua', ours(in_flight) + [kubeconfig]),
        (
            'controller-runtime',
            ['bin/recon', '--in-flight', str(in_flight), '--bench-kubeconfig', kubeconfig],
        ),
        ('kube-rs', ['bin/recon-rs', '--in-flight', str(in_flight), '--kubeconfig', kubeconfig]),
    ]


def measure(server, command, first, then, rate):
    """One line, or None and why."""
    if not os.path.exists(command[0]):
        return None, f'{command[0]} could not be built here'
    if not os.path.exists('bin/observe'):
        return None, 'bin/observe could not be built here'
    eyes = subprocess.Popen(
        [
            'bin/observe',
            '--kubeconfig',
            server.kubeconfig,
            '--first',
            str(first),
            '--then',
            str(then),
            '--rate',
            str(rate),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    controller = None
    try:
        if eyes.stdout.readline().strip() != 'ready':
            return None, 'bin/observe could not make its objects'
        with open('results/recon.log', 'w') as log:
            controller = subprocess.Popen(command, stdout=log, stderr=log)
        if eyes.stdout.readline().strip() != 'first':
            with open('results/recon.log') as f:
                return (
                    None,
                    'not all objects were written: '
                    + (f.read().strip().splitlines() or ['it said nothing'])[-1],
                )
        used, memory = cpu(controller.pid), rss(controller.pid)
        eyes.stdin.write('\n')
        eyes.stdin.flush()
        text = eyes.stdout.readline()
        if not text.startswith('{'):
            return None, 'the objects that came later were not all written'
        return dict(json.loads(text), cpu_us_per_write=used / first * 1e6, rss_mb=memory), None
    finally:
        for p in (controller, eyes):
            if p and p.poll() is None:
                p.send_signal(signal.SIGKILL)
            if p:
                p.wait()
