"""replayed.py - one list of pods, a replay server that serves it, and one peer at a time on that server.

The server runs on cpu 0, the peer on cpu 1. A peer's result is its line of JSON (README.md) or the reason why
there is none."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass

# of one core: other work above this distorts wall times, so we wait a little for it to end
QUIET_SHARE = 0.6
QUIET_WAIT = 12        # seconds at most


@dataclass
class Task:
    """What every peer is asked to do."""
    mode: str = 'burst'        # or 'sync': without the events
    events: int = 5000
    rate: float = 1000         # events per second; 0: as fast as the peer reads
    workers: int = 1
    strip: bool = False        # drop managedFields by the means of each peer
    tls: bool = False
    timeout: int = 600         # seconds for one run of one peer


def read_peers(wanted, n, timeout=Task.timeout):
    """Peers of peers.txt as (name, command), and those that cannot run as (name, why). `wanted`: names, or
    None for all."""
    peers, absent = [], []
    with open('peers.txt') as f:
        for line in f:
            if not line.strip() or line.startswith('#'):
                continue
            name, largest, needs, command = (x.strip() for x in line.split('|'))
            if wanted and name not in wanted:
                continue
            if n > int(largest):
                absent.append((name, f'only up to N={largest}: it is not done within {timeout} s'))
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


def await_quiet():
    """Waits a little for other work to end; says how busy it was. Nothing is refused."""
    for _ in range(QUIET_WAIT):
        busy = busy_share()
        if busy < QUIET_SHARE:
            break
    return busy


def last_line(command, timeout=Task.timeout, cwd=None):
    """The last line of JSON that the command prints, on cpu 1; or None and why."""
    try:
        with open('results/stderr.log', 'a') as err:
            p = subprocess.Popen(pinned(1, command), stdout=subprocess.PIPE, stderr=err, text=True, cwd=cwd)
    except OSError as e:
        return None, f'{command[0]}: {e.strerror}'
    try:
        out, _ = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return None, f'not done within {timeout} s'
    lines = [x for x in out.splitlines() if x.startswith('{')]
    if p.returncode or not lines:
        return (
            None,
            f'it ended with status {p.returncode} and {"a" if lines else "no"} result; results/stderr.log '
            'says why',
        )
    return json.loads(lines[-1]), None


class Replay:
    """The replay server on a list of pods (a file of gen.py's)."""

    def __init__(self, data, port):
        self.port = port
        self.refuse_another()
        self.url, self.tls = f'http://127.0.0.1:{port}', f'127.0.0.1:{port + 1}'
        self.ca = os.path.abspath('ca.pem')
        with open('replay.log', 'w') as log:
            self.process = subprocess.Popen(
                pinned(
                    0,
                    [
                        'bin/replay',
                        '-q',
                        '-data',
                        data,
                        '-addr',
                        self.url[7:],
                        '-tls',
                        self.tls,
                        '-ca-out',
                        self.ca,
                    ],
                ),
                stderr=log,
            )
        deadline = time.time() + 60
        while True:
            try:
                self.info = self.ask('/control/info')
                return
            except OSError:
                if time.time() > deadline or self.process.poll() is not None:
                    self.stop()
                    sys.exit('bench: the replay server did not start; replay.log says why')
                time.sleep(.1)

    def refuse_another(self):
        """Another measurement on this port would answer for ours, with its own list."""
        for port in (self.port, self.port + 1):
            with socket.socket() as s:
                s.settimeout(1)
                if s.connect_ex(('127.0.0.1', port)) == 0:
                    sys.exit(
                        f'bench: port {port} is taken, perhaps by another measurement; end it, or choose one '
                        'with --port (make bench PORT=)'
                    )

    def ask(self, path, body=None):
        with urllib.request.urlopen(self.url + path, data=body, timeout=60) as r:
            return json.load(r)

    def run(self, name, command, task):
        """One run of one peer: its line, or None and why."""
        busy = await_quiet()
        self.ask('/control/reset', b'')
        before = self.ask('/control/info')['cpu_s']
        words = command + [
            '--server',
            f'https://{self.tls}' if task.tls else self.url,
            '--workers',
            str(task.workers),
            '--mode',
            task.mode,
            '--events',
            str(task.events),
            '--rate',
            f'{task.rate:g}',
        ]
        if task.strip:
            words.append('--strip')
        if task.tls:
            words += ['--ca', self.ca, '--control', self.url]
        line, why = last_line(words, task.timeout)
        if line:
            line.update(peer=name, server_cpu_s=round(self.ask('/control/info')['cpu_s'] - before, 3),
                        busy_before=round(busy, 2), load1=os.getloadavg()[0])
        return line, why

    def stop(self):
        self.process.terminate()
        self.process.wait()
