"""realserver.py - a kube-apiserver with etcd of build/assets, for sections that no replay can stand in for.

    with Server() as s: ... s.kubeconfig, s.url, s.kubectl('get', 'nodes'), s.start_ms: from exec to ready

It lives in a directory of its own under results/ and ends with the `with`."""
import os
import shutil
import subprocess
import time

ASSETS = os.environ.get('KUBEBUILDER_ASSETS') or '../build/assets'
TOKEN = 'bench-token'

KUBECONFIG = '''apiVersion: v1
kind: Config
clusters: [{{name: real, cluster: {{server: "{url}", certificate-authority: "{ca}"}}}}]
users: [{{name: bench, user: {user}}}]
contexts: [{{name: real, context: {{cluster: real, user: bench, namespace: bench}}}}]
current-context: real
'''


def missing():
    """Why there is no server here, or None."""
    for name in ('kube-apiserver', 'etcd', 'kubectl'):
        if not os.access(os.path.join(ASSETS, name), os.X_OK):
            return f'{ASSETS}/{name} is not there; `make assets` builds it'
    return None


class Server:
    def __init__(self, port=16443, cpu=None, fsync=False):
        self.port, self.cpu, self.fsync = port, cpu, fsync
        self.url = f'https://127.0.0.1:{port}'

    def path(self, name):
        return os.path.join(self.dir, name)

    def sh(self, text):
        subprocess.run(
            text, shell=True, check=True, cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def spawn(self, program, *words):
        pin = ['taskset', '-c', str(self.cpu)] if self.cpu is not None else []
        log = open(self.path(program + '.log'), 'w')
        p = subprocess.Popen(pin + [os.path.join(ASSETS, program), *words], stdout=log, stderr=log)
        self.children.append(p)
        return p

    def write_kubeconfig(self, name, user):
        path = self.path(name)
        with open(path, 'w') as f:
            f.write(KUBECONFIG.format(url=self.url, ca=self.path('ca.crt'), user=user))
        return path

    def kubectl(self, *words, text=None):
        p = subprocess.run(
            [os.path.join(ASSETS, 'kubectl'), '--kubeconfig', self.kubeconfig, *words],
            input=text,
            capture_output=True,
            text=True,
        )
        if p.returncode:
            raise RuntimeError(f'kubectl {" ".join(words)}: {p.stderr.strip()}')
        return p.stdout

    def __enter__(self):
        self.children = []
        self.dir = os.path.abspath(f'results/real-{os.getpid()}')
        os.makedirs(self.dir)
        key = 'openssl ecparam -name prime256v1 -genkey -noout -out '
        with open(self.path('server.cnf'), 'w') as f:
            f.write('subjectAltName=DNS:kubernetes.default,DNS:localhost,IP:127.0.0.1\n')
        self.sh(
            f'{key}ca.key && openssl req -x509 -new -key ca.key -subj /CN=bench-ca -days 30 -out ca.crt && '
            f'{key}server.key && '
            'openssl req -new -key server.key -subj /CN=kube-apiserver -out server.csr && openssl x509 -req '
            '-in server.csr -CA ca.crt '
            '-CAkey ca.key -CAcreateserial -days 30 -extfile server.cnf -out server.crt && openssl genrsa '
            '-out sa.key 2048'
        )
        with open(self.path('tokens.csv'), 'w') as f:
            f.write(f'{TOKEN},admin,admin,"system:masters"\n')
        etcd = f'http://127.0.0.1:{self.port + 1}'
        self.start_ms, began = None, time.perf_counter()
        self.spawn(
            'etcd',
            '--data-dir',
            self.path('etcd'),
            '--listen-client-urls',
            etcd,
            '--advertise-client-urls',
            etcd,
            '--listen-peer-urls',
            f'http://127.0.0.1:{self.port + 2}',
            '--log-level',
            'error',
            '--quota-backend-bytes',
            str(4 << 30),
            *([] if self.fsync else ['--unsafe-no-fsync']),
        )
        api = self.spawn(
            'kube-apiserver',
            '--etcd-servers',
            etcd,
            '--bind-address',
            '127.0.0.1',
            '--secure-port',
            str(self.port),
            '--tls-cert-file',
            self.path('server.crt'),
            '--tls-private-key-file',
            self.path('server.key'),
            '--token-auth-file',
            self.path('tokens.csv'),
            '--client-ca-file',
            self.path('ca.crt'),
            '--authorization-mode',
            'RBAC',
            '--service-account-key-file',
            self.path('sa.key'),
            '--service-account-signing-key-file',
            self.path('sa.key'),
            '--service-account-issuer',
            'https://kubernetes.default.svc',
            '--service-cluster-ip-range',
            '10.0.0.0/24',
            '--disable-admission-plugins',
            'ServiceAccount',
            '--enable-priority-and-fairness=false',
            '--max-requests-inflight',
            '4000',
            '--max-mutating-requests-inflight',
            '4000',
            '--cert-dir',
            self.dir,
        )
        self.kubeconfig = self.write_kubeconfig('kubeconfig', f'{{token: {TOKEN}}}')
        for _ in range(600):
            if api.poll() is not None:
                break
            try:
                if self.kubectl('get', '--raw', '/readyz') == 'ok':
                    self.start_ms = self.start_ms or 1000 * (time.perf_counter() - began)
                if self.start_ms and self.kubectl('get', 'namespace', 'default'):
                    self.kubectl('create', 'namespace', 'bench')
                    return self
            except RuntimeError:
                time.sleep(0.1)
        with open(self.path('kube-apiserver.log')) as f:
            tail = f.read()[-2000:]
        self.__exit__()
        raise RuntimeError(f'kube-apiserver did not start: {tail}')

    def pids(self):
        return [p.pid for p in self.children]

    def __exit__(self, *_):
        for p in reversed(self.children):
            p.kill()
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
