# SPDX-License-Identifier: Apache-2.0
"""The folders and programs of a run, and the peers that may or may not be installed."""
import contextlib
import ctypes.util
import os
import shutil
import signal
import socket
import subprocess
import sys

from driver import amount

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(BENCH))
PEER_PACKAGES = ["redis-server", "libhiredis-dev", "libopenblas-dev", "python3-torch", "libopenmpi-dev", "openmpi-bin",
                 "libmpich-dev", "mpich", "libgloo-dev"]
DEBIAN_PYTHON = "/usr/bin/python3"


def build(folder):
    """Configures and builds everything that is measured, as shipped."""
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCADRE_TESTS=ON",
                    "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "--quiet", "bench", "cadre-coordinator", "cadre-worker", "cadre-cli",
                    "digits", "sim", "integration_stubs", "etcd_driver"], check=True)
    use(folder)


def use(folder):
    """Measures the programs of this build."""
    os.environ["CADRE_TEST_BIN"] = os.path.join(folder, "bin")
    os.environ["CADRE_TEST_STUBS"] = os.path.join(folder, "tests", "integration", "stubs")
    os.environ["CADRE_TEST_ETCD_DRIVER"] = os.path.join(folder, "tests", "integration", "etcd_driver")
    sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))


def program(name):
    return os.path.join(os.environ["CADRE_TEST_BIN"], name)


def run(*argv, timeout_s=120, with_errors=False, **options):
    """Runs a program to its end; returns what it printed, and with `with_errors` its standard error behind that,
    which else comes with a failure only."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=amount.deadline_s(timeout_s),
                          check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{os.path.basename(argv[0])} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr if with_errors else done.stdout


def figures(text):
    """Lines of NAME=NUMBER as a dict; other lines are passed over."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        try:
            if equals:
                found[name] = float(value)
        except ValueError:
            pass
    return found


def install_peers():
    subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *PEER_PACKAGES], check=True)


def absent_redis():
    """None, or why there is nothing to compare with."""
    if shutil.which("redis-server") is None:
        return "redis-server is not installed"
    if not os.path.exists(program("bench_redis_barrier")):
        return "libhiredis-dev was not there when this was built" if ctypes.util.find_library("hiredis") is None \
            else "bench_redis_barrier was not built"
    return None


def absent_etcd():
    missing = [name for name in ("etcd", "etcdctl", "openssl") if shutil.which(name) is None]
    return f"{missing[0]} is not installed (Debian's etcd-server, etcd-client, openssl)" if missing else None


def absent_torch():
    done = subprocess.run([DEBIAN_PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False)
    return None if done.returncode == 0 else "python3-torch is not installed"


def absent_mpi():
    if shutil.which("mpirun") is None:
        return "mpirun is not installed"
    return None if os.path.exists(program("bench_mpi_launch")) else "MPI's headers were not there when this was built"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextlib.contextmanager
def redis_server():
    """One that keeps nothing on disk, once it accepts connections: its port."""
    port = free_port()
    server = subprocess.Popen(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly",
                               "no"], stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if "Ready to accept" in line:
                break
        yield port
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        server.stdout.close()
