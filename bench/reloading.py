"""reloading.py - from a saved file to the first reconcile on the new logic; beside it a process that is
started anew for it, caches and all."""
import os
import statistics
import subprocess
import tempfile
import time

SCRIPT = '''
local kube = require "kubelua"
local told = false
return kube.controller {
  name = "bench", resource = "v1/ConfigMap", namespaces = { "bench" },
  reconcile = function(map, ctx)
    if not told then told = true ctx.log:info "first of %d" end
  end,
}
'''
KUBELUA = '../build/kubelua'


def objects(path, n):
    with open(path, 'w') as f:
        f.write('{"apiVersion": "v1", "kind": "List", "items": [')
        f.write(
            ','.join(
                '{"apiVersion": "v1", "kind": "ConfigMap", '
                '"metadata": {"namespace": "bench", "name": "map-%d"}, "data": {"a": "b"}}' % i
                for i in range(n)
            )
        )
        f.write(']}')


def save(path, number):
    with open(path + '.new', 'w') as f:
        f.write(SCRIPT % number)
    os.rename(path + '.new', path)


def until(pipe, text):
    for line in pipe:
        if text in line:
            return time.monotonic()
    raise RuntimeError(f'the process ended before it said {text!r}')


def controller(path, kubeconfig):
    return subprocess.Popen(
        [KUBELUA, 'run', path, '--kubeconfig', kubeconfig, '--rollback-window', '0s'],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def end(process):
    process.terminate()
    process.stderr.close()
    process.wait()


def line(seconds):
    seconds.sort()
    return {
        'p50_ms': statistics.median(seconds) * 1e3,
        'p99_ms': seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)] * 1e3,
    }


def measure(n, saves, restarts):
    """Two lines: a save, and a restart."""
    with tempfile.TemporaryDirectory() as home:
        kubeconfig, script, load = f'{home}/config', f'{home}/bench.lua', f'{home}/objects.json'
        objects(load, n)
        server = subprocess.Popen(
            [
                KUBELUA,
                'apiserver',
                '--listen',
                '127.0.0.1:0',
                '--load',
                load,
                '--write-kubeconfig',
                kubeconfig,
            ],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(kubeconfig) and time.monotonic() < deadline:
                time.sleep(0.02)
            again = []
            for i in range(restarts):
                save(script, i)
                start = time.monotonic()
                process = controller(script, kubeconfig)
                again.append(until(process.stderr, f'first of {i}') - start)
                end(process)
            save(script, 1000)
            process = controller(script, kubeconfig)
            until(process.stderr, 'first of 1000')
            took = []
            for i in range(1001, 1001 + saves):
                start = time.monotonic()
                save(script, i)
                took.append(until(process.stderr, f'first of {i}') - start)
            end(process)
            return line(took), line(again)
        finally:
            server.kill()
            server.wait()
