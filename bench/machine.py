"""machine.py - on what, with what and when: the head of every measurement."""
import os
import platform
import re
import subprocess
import time

from replayed import busy_share


def said(command, pattern='(.*)'):
    """The first line of what a program says about itself, or None."""
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(pattern, out)
    return found and found.group(1)


def read(path, pattern):
    try:
        with open(path) as f:
            found = re.search(pattern, f.read(), re.M)
        return found and found.group(1)
    except OSError:
        return None


def memory_gb():
    kb = read('/proc/meminfo', r'^MemTotal:\s+(\d+)')
    return f'{int(kb) / 1048576:.0f} GB' if kb else 'memory unknown'


def system():
    cpu = read('/proc/cpuinfo', r'^model name\s*:\s*(.*)') or platform.machine()
    name = read('/etc/os-release', r'^PRETTY_NAME="(.*)"') or platform.system()
    return f'{os.cpu_count()} x {cpu}, {memory_gb()}, {name}, Linux {platform.release()}'


def versions():
    """What was measured against what, as far as it is here."""
    crate = r'name = "%s"\nversion = "(.*)"'
    found = [
        (
            'kubelua',
            said(['git', 'describe', '--always', '--dirty', '--tags'])
            or read('../core/base/version.h', r'KL_VERSION "(.*)"'),
        ),
        ('gcc', said(['gcc', '-dumpfullversion'])),
        ('Lua', said(['lua5.4', '-v'], r'Lua (\S+)')),
        ('libcurl', said(['curl-config', '--version'], r'libcurl (\S+)')),
        ('Go', said(['go', 'version'], r'go(\d\S*)')),
        ('client-go', read('go/go.mod', r'k8s.io/client-go v(\S+)')),
        ('controller-runtime', read('go/go.mod', r'sigs.k8s.io/controller-runtime v(\S+)')),
        ('rustc', said(['rustc', '--version'], r'rustc (\S+)')),
        ('kube', read('rs/Cargo.lock', crate % 'kube')),
        ('k8s-openapi', read('rs/Cargo.lock', crate % 'k8s-openapi')),
        ('serde_json', read('rs/Cargo.lock', crate % 'serde_json')),
        ('Python', platform.python_version()),
        ('kopf', read('Makefile', r'kopf==(\S+)')),
        ('cJSON', said(['pkg-config', '--modversion', 'libcjson'])),
        ('simdjson', said(['pkg-config', '--modversion', 'simdjson'])),
    ]
    return ', '.join(f'{name} {version}' for name, version in found if version)


def head(command, runs):
    load = ' '.join(f'{x:.2f}' for x in os.getloadavg())
    return '\n'.join(
        [
            f'`{command}`, {time.strftime("%d %b %Y %H:%M", time.gmtime())} UTC, {runs} '
            f'run{"s" if runs != 1 else ""} of each, the peers in turn.',
            f'Machine: {system()}. Before it began the load was {load}, and {busy_share():.2f} cores were '
            'busy.',
            f'Versions: {versions()}.',
        ]
    )
