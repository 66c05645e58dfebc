# SPDX-License-Identifier: Apache-2.0
"""Clusters of Debian's etcd on free ports, in a folder of their own.

    with Etcds(3) as etcds:                 started, and answering; with places=[Place(...), ...] elsewhere
        etcds.address("cadre")              "etcd://127.0.0.1:P,.../cadre"
        etcds.leader().kill()               kill -9; start(), stop_clock() and go_on() besides
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from testing import Failure, HANG_S, check, skip, wait_for

HOST = "127.0.0.1"
STARTS = 5  # with other ports each time, should another program take one in between


def need_etcd():
    for name in ("etcd", "etcdctl", "openssl"):
        if shutil.which(name) is None:
            skip(f"{name} is not installed (Debian's etcd-server, etcd-client, openssl)")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Place:
    """Where a member runs: its address, and `on`, which makes a command line one that runs there."""

    def __init__(self, address=HOST, on=None):
        self.address = address
        self.on = on

    def read(self, url):
        """The page's text; OSError when there is none."""
        if self.on is None:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        reader = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
        done = subprocess.run(self.on([sys.executable, "-c", reader, url]), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr)
        return done.stdout


class Member:
    """One etcd: its command line, its log, its end."""

    def __init__(self, folder, name, options, tls, place):
        self.folder, self.name, self.options, self.tls = folder, name, options, tls
        self.place = place
        self.log_path = os.path.join(folder, f"{name}.log")
        self.client, self.peer, self.metrics = free_ports(3)
        self.process = None

    def endpoint(self):
        return f"{self.place.address}:{self.client}"

    def argv(self, cluster, token):
        here = self.place.address
        scheme = "https" if self.tls else "http"
        argv = ["etcd", "--name", self.name, "--data-dir", os.path.join(self.folder, self.name),
                "--listen-client-urls", f"{scheme}://{here}:{self.client}",
                "--advertise-client-urls", f"{scheme}://{here}:{self.client}",
                "--listen-peer-urls", f"http://{here}:{self.peer}",
                "--initial-advertise-peer-urls", f"http://{here}:{self.peer}",
                "--listen-metrics-urls", f"http://{here}:{self.metrics}",
                "--initial-cluster", cluster, "--initial-cluster-token", token, "--initial-cluster-state", "new",
                "--logger", "zap", "--log-outputs", "stderr", *self.tls, *self.options]
        return argv if self.place.on is None else self.place.on(argv)

    def start(self, argv=None):
        self.started = argv or self.started
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.started],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                            start_new_session=True)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def page(self, path):
        """What it shows of itself, or None: these pages need no TLS and no login."""
        try:
            return self.place.read(f"http://{self.place.address}:{self.metrics}{path}")
        except (OSError, urllib.error.URLError):
            return None

    def is_healthy(self):
        """It can read through its quorum, unless an alarm is on."""
        page = self.page("/health")
        return page is not None and json.loads(page).get("health") == "true"

    def is_leader(self):
        return "\netcd_server_is_leader 1\n" in (self.page("/metrics") or "")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop_clock(self):
        """SIGSTOP: it does nothing, and its connections stay."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class Etcds:
    """`options` go to each member; with `tls` (a folder by Certificates.server()) clients use TLS, and with
    `client_ca` they must show a certificate."""

    def __init__(self, count, *options, tls=None, client_ca=None, places=None):
        need_etcd()
        self.count, self.options = count, options
        self.places = places or [Place()] * count
        self.tls = []
        if tls:
            self.tls = ["--cert-file", os.path.join(tls, "cert.pem"), "--key-file", os.path.join(tls, "key.pem")]
        if client_ca:
            self.tls += ["--client-cert-auth", "--trusted-ca-file", client_ca]
        self.folder = None
        self.members = []

    def __enter__(self):
        for left in reversed(range(STARTS)):
            try:
                self.begin()
                return self
            except Failure:
                self.end()
                if left == 0:
                    raise
        return self

    def begin(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-etcd-")
        self.members = [Member(self.folder, f"m{i}", self.options, self.tls, self.places[i])
                        for i in range(self.count)]
        cluster = ",".join(f"{one.name}=http://{one.place.address}:{one.peer}" for one in self.members)
        for member in self.members:
            member.start(member.argv(cluster, os.path.basename(self.folder)))
        self.wait_healthy()

    def wait_healthy(self):
        for member in self.members:
            wait_for(f"etcd {member.name} is healthy: {self.folder}", lambda one=member: self.healthy(one))

    @staticmethod
    def healthy(member):
        check(member.runs(), f"etcd {member.name} ended at its start:\n{member.log()[-2000:]}")
        return member.is_healthy()

    def address(self, prefix, members=None):
        return f"etcd://{','.join(one.endpoint() for one in members or self.members)}/{prefix}"

    def leader(self):
        return wait_for("etcd has a leader", lambda: next(
            (one for one in self.members if one.runs() and one.is_leader()), None))

    def followers(self):
        leader = self.leader()
        return [one for one in self.members if one is not leader]

    def ctl(self, *arguments, user=None):
        """etcdctl at the first member that runs, in plain text."""
        member = next(one for one in self.members if one.runs())
        options = ["--user", user] if user else []
        done = subprocess.run(["etcdctl", "--endpoints", member.endpoint(), "--command-timeout", "60s", *options,
                               *arguments], capture_output=True, text=True, timeout=HANG_S, check=False,
                              env=dict(os.environ, ETCDCTL_API="3"))
        check(done.returncode == 0, f"etcdctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def restore(self, backup, token):
        """All of them again, from a file of `etcdctl snapshot save`, as a cluster of their own."""
        cluster = ",".join(f"{one.name}=http://{one.place.address}:{one.peer}" for one in self.members)
        for member in self.members:
            if member.runs():
                member.kill()
            data = os.path.join(self.folder, member.name)
            shutil.rmtree(data)
            done = subprocess.run(
                ["etcdctl", "snapshot", "restore", backup, "--name", member.name, "--data-dir", data,
                 "--initial-cluster", cluster, "--initial-cluster-token", token, "--initial-advertise-peer-urls",
                 f"http://{member.place.address}:{member.peer}"], capture_output=True, text=True, timeout=HANG_S,
                check=False, env=dict(os.environ, ETCDCTL_API="3"))
            check(done.returncode == 0, f"etcdctl snapshot restore: {done.stdout}{done.stderr}")
        for member in self.members:
            member.start(member.argv(cluster, token))
        self.wait_healthy()

    def end(self):
        for member in self.members:
            if member.runs():
                member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, kind, error, trace):
        if error is not None:
            for member in self.members:
                print(f"---- {member.log_path}\n{member.log()[-1500:]}", flush=True)
        self.end()


class Certificates:
    """A CA made by openssl, and certificates of it, as operators of etcd make them: nothing in them is Cadre's."""

    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.ca, self.ca_key = os.path.join(self.folder, "ca.pem"), os.path.join(self.folder, "ca-key.pem")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", f"/CN={name}", "-keyout", self.ca_key, "-out", self.ca)

    @staticmethod
    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)
        check(done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr}")

    def issue(self, name, *extensions):
        """A folder with cert.pem and key.pem of the common name `name`."""
        out = os.path.join(self.folder, name)
        os.mkdir(out)
        request, wanted = os.path.join(out, "request.pem"), os.path.join(out, "extensions")
        key = os.path.join(out, "key.pem")
        with open(wanted, "w", encoding="ascii") as file:
            file.write("\n".join(extensions) + "\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial",
                     "-days", "1", "-extfile", wanted, "-out", os.path.join(out, "cert.pem"))
        os.chmod(key, 0o600)
        return out

    def server(self, name="server", names=f"IP:{HOST}"):
        """etcd's own gateway is a client of it, so the certificate is for both ends."""
        return self.issue(name, f"subjectAltName={names}", "extendedKeyUsage=serverAuth,clientAuth")

    def client(self, name):
        return self.issue(name, "extendedKeyUsage=clientAuth")
