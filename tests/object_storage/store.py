# SPDX-License-Identifier: Apache-2.0
"""What stores have in common: a folder, processes, an end.

    with Swift() as store:          or Ceph(): started, and answering
        store.endpoint              "http://127.0.0.1:P"
        store.region
        store.writer, store.reader  User(access_key, secret_key); what is the writer's is closed to the reader
        store.bucket                the name of a bucket that is the writer's, and empty
"""
import atexit
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from s3 import S3, S3Error, User  # noqa: E402
from testing import Failure, check, wait_for  # noqa: E402

HOST = "127.0.0.1"
STARTS = 5  # with other ports each time, should another program take one in between
START_S = 120


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(url):
    """Whether an HTTP server answers there, whatever it says."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


class Program:
    """One server of a store: its command line, its log, its end. It ends with this process, however that ends."""

    def __init__(self, folder, name, argv, variables):
        self.name, self.argv, self.variables = name, argv, variables
        self.log_path = os.path.join(folder, f"{name}.log")
        self.process = None
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.argv], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, **self.variables})

    def runs(self):
        return self.process.poll() is None

    def send(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.runs():
            self.send(signal.SIGKILL)
        self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class Store:
    """Swift and Ceph begin in their own way; all else is here. `page`: of keys in one answer to a list, at most."""

    name = None
    region = None
    bucket = "data"
    writer = reader = None
    checks_regions = None  # whether a wrong region is refused
    puts_if_absent = None  # whether a PUT may have If-None-Match: *
    refusals = {}          # status and code of what stores refuse in different ways

    def __init__(self, page=1000):
        self.page = page
        self.folder = None
        self.programs = []
        self.port = None
        self.started_s = 0.0
        self.refusal = None

    @property
    def endpoint(self):
        return f"http://{HOST}:{self.port}"

    def begin(self):
        """Makes files below self.folder, starts programs, sets self.port."""
        raise NotImplementedError

    def client(self, user=None, endpoint=None, **named):
        return S3(endpoint or self.endpoint, named.pop("region", self.region), user or self.writer, **named)

    def variables(self, user=None, endpoint=None):
        """What programs find the store by, as Amazon's tools do."""
        user = user or self.writer
        return {"AWS_ENDPOINT_URL": endpoint or self.endpoint, "AWS_REGION": self.region,
                "AWS_ACCESS_KEY_ID": user.access_key, "AWS_SECRET_ACCESS_KEY": user.secret_key,
                "AWS_EC2_METADATA_DISABLED": "true"}

    def run_program(self, name, *argv, **variables):
        self.programs.append(Program(self.folder, name, list(argv), variables))
        return self.programs[-1]

    def tool(self, *argv):
        """A command that ends: what it prints."""
        done = subprocess.run(["setpriv", "--pdeathsig", "KILL", *argv], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        check(done.returncode == 0, f"{' '.join(argv)} ends with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def wait(self, what, condition):
        """Waits for it, and fails at once where a server ended."""
        def or_fail():
            for program in self.programs:
                check(program.runs(), f"{program.name} of {self.name} ended at its start:\n{program.log()[-3000:]}")
            return condition()
        return wait_for(f"{self.name}: {what}: {self.folder}", or_fail, START_S)

    def made_bucket(self):
        try:
            self.client().bucket(self.bucket).make()
            return True
        except (OSError, http.client.HTTPException, S3Error) as error:
            self.refusal = error
            return False

    def __enter__(self):
        for left in reversed(range(STARTS)):
            try:
                began = time.monotonic()
                self.folder = tempfile.mkdtemp(prefix=f"cadre-{self.name}-", dir=self.parent())
                self.begin()
                self.wait("it answers", lambda: answers(self.endpoint))
                try:
                    self.wait("a bucket can be made", self.made_bucket)
                except Failure as failure:
                    raise Failure(f"{failure}: {self.refusal}") from failure
                self.started_s = time.monotonic() - began
                return self
            except Failure:
                self.end()
                if left == 0:
                    raise
            except BaseException:
                self.end()
                raise
        return self

    def parent(self):
        """The folder in which its own is made; None: where temporary files are."""
        return None

    def end(self):
        for program in reversed(self.programs):
            program.kill()
        self.programs = []
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, kind, error, trace):
        if error is not None:
            for program in self.programs:
                print(f"---- {program.log_path}\n{program.log()[-1500:]}", flush=True)
        self.end()


WRITER = User("cadre:writer", "Wr/ter+secret=1")
READER = User("cadre:reader", "Re/der+secret=2")


def started(kind, **named):
    """The one of this script, for all of its tests; it ends with the script."""
    if kind not in STARTED:
        store = kind(**named)
        STARTED[kind] = store.__enter__()
        atexit.register(store.end)
    return STARTED[kind]


STARTED = {}
