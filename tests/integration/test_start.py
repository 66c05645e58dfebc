# SPDX-License-Identifier: Apache-2.0
"""Options, addresses and state directories that do not work are reported in one sentence; readiness is reported."""
import contextlib
import grp
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import tempfile

from client import Client
from cluster import AS_ROOT, Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run, wait_for

STARTS = {"cadre-coordinator": "--listen", "cadre-worker": "--coordinator"}
USAGE, FAILED = 2, 1


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as path:
        yield path


def call(name, *arguments, environment=()):
    """A daemon that is expected to end by itself."""
    return subprocess.run([program(name), *arguments], capture_output=True, text=True, timeout=HANG_S, check=False,
                          stdin=subprocess.DEVNULL, env=clean_environment() | dict(environment))


def check_refused(status, parts, name, *arguments, environment=()):
    """Ends with that status and one line that has all parts."""
    done = call(name, *arguments, environment=environment)
    what = f"{name} {' '.join(arguments)}"
    check_equal(done.returncode, status, f"status of {what}: {done.stderr}")
    check_equal(done.stdout, "", f"output of {what}")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("info", "debug"))]
    check_equal(len(lines), 1, f"lines of {what}: {lines}")
    for part in parts:
        check_in(part, lines[0], what)


def test_help_and_configuration():
    with folder() as place:
        for name in STARTS:
            done = call(name, "--help")
            check_equal((done.returncode, done.stderr), (0, ""), f"{name} --help")
            for part in (f"usage: {name}", "--state-dir", "CADRE_STATE_DIR", "--log-level", "--ready-file"):
                check_in(part, done.stdout, f"{name} --help")
            config = os.path.join(place, f"{name}.conf")
            with open(config, "w", encoding="ascii") as file:
                file.write("# a comment\nstate-dir = /from/config\ngrace = 250ms\n")
            done = call(name, "--config", config, "--grace", "3s", "--print-config",
                        environment={"CADRE_STATE_DIR": "/from/environment"})
            check_equal(done.returncode, 0, f"{name} --print-config: {done.stderr}")
            lines = done.stdout.splitlines()
            check_in("state-dir = /from/environment", lines, "the environment is above the file")
            check_in("grace = 3s", lines, "the command line is above all")
            done = call(name, "--config", config, "--print-config")
            check_in("state-dir = /from/config", done.stdout.splitlines(), "the file is above the defaults")
            again = os.path.join(place, "again.conf")
            with open(again, "w", encoding="ascii") as file:
                file.write(done.stdout)
            check_equal(call(name, "--config", again, "--print-config").returncode, 0, "what is printed can be read")


def test_bad_options():
    with folder() as place:
        config = os.path.join(place, "bad.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("grace = 1s\nno-such-thing = 3\n")
        for name, address in STARTS.items():
            check_refused(USAGE, ["--state-dri", "--state-dir"], name, "--state-dri", "x")
            check_refused(USAGE, ["--grace", "soon"], name, "--grace", "soon")
            check_refused(USAGE, ["--log-level", "loud"], name, "--log-level", "loud")
            check_refused(USAGE, ["surplus"], name, "surplus")
            check_refused(USAGE, [address], name, address)
            check_refused(USAGE, [f"{place}/none.conf", "No such file"], name, "--config", f"{place}/none.conf")
            check_refused(USAGE, ["bad.conf", "2", "no-such-thing"], name, "--config", config)
            check_refused(USAGE, [place], name, "--config", place)
        check_refused(USAGE, ["--slots", "1024"], "cadre-worker", "--slots", "0")
        check_refused(USAGE, ["CADRE_SLOTS", "many"], "cadre-worker", environment={"CADRE_SLOTS": "many"})
        check_refused(USAGE, ["--workers-max", "99999999"], "cadre-coordinator", "--workers-max", "99999999")


def coordinator_refused(place, parts, *arguments):
    check_refused(FAILED, parts, "cadre-coordinator", "--state-dir", f"{place}/state", *arguments)


def test_addresses_that_cannot_be():
    with Cluster(workers=0) as cluster, folder() as place, socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        coordinator_refused(place, ["c.sock", "listening there already"], "--listen", cluster.address)
        check(cluster.client.is_alive(), "the one that listens there already")
        coordinator_refused(place, [str(port), "use"], "--listen", f"127.0.0.1:{port}")
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:7000"):
            coordinator_refused(place, [address, "TLS"], "--listen", address)
        coordinator_refused(place, ["nonsense"], "--listen", "nonsense")
        coordinator_refused(place, ["none"], "--listen", f"unix:{place}/none/c.sock")
        coordinator_refused(place, ["107"], "--listen", f"unix:{place}/{'x' * 120}")
        with open(f"{place}/file", "w", encoding="ascii") as file:
            file.write("precious")
        coordinator_refused(place, [f"{place}/file"], "--listen", f"unix:{place}/file")
        with open(f"{place}/file", encoding="ascii") as file:
            check_equal(file.read(), "precious", "the file in the way")
        check_refused(FAILED, ["192.0.2.1:7000", "TLS"], "cadre-worker", "--coordinator", "192.0.2.1:7000",
                      "--state-dir", f"{place}/worker")
        coordinator_refused(place, ["no-such-group"], "--listen", f"unix:{place}/s", "--group", "no-such-group")
        left = [name for name in os.listdir(place) if name not in ("state", "worker", "file")]
        check_equal(left, [], "what the refused left")


def test_stale_socket_is_replaced():
    with Cluster(workers=0) as cluster:
        cluster.coordinator.kill()
        check(os.path.exists(f"{cluster.folder}/c.sock"), "there is no stale socket")
        cluster.coordinator.start()
        check(cluster.client.is_alive(), "the coordinator")


def test_state_directories_that_cannot_be():
    with Cluster(workers=1) as cluster, folder() as place:
        listen = f"unix:{place}/c.sock"
        coordinator, worker = cluster.coordinator, cluster.workers[0]
        for daemon, name, arguments in ((coordinator, "cadre-coordinator", ["--listen", listen]),
                                        (worker, "cadre-worker", ["--coordinator", listen])):
            check_refused(FAILED, ["lock", str(daemon.process.pid)], name, *arguments, "--state-dir", daemon.state,
                          "--ready-file", daemon.ready_file)
            check(os.path.exists(daemon.ready_file), "the refused one took the ready file of the other")
            with open(f"{place}/file", "w", encoding="ascii"):
                pass
            check_refused(FAILED, [f"{place}/file"], name, *arguments, "--state-dir", f"{place}/file")
            check_refused(FAILED, [f"{place}/file"], name, *arguments, "--state-dir", f"{place}/file/below")
            if not AS_ROOT:
                closed = f"{place}/closed-{name}"
                os.mkdir(closed, 0o500)
                check_refused(FAILED, ["closed", "ermission"], name, *arguments, "--state-dir", closed)

        coordinator.stop()
        ledger = f"{place}/old/ledger.db"
        shutil.copytree(coordinator.state, f"{place}/old")
        whole = call("cadre-coordinator", "--check", "--state-dir", f"{place}/old")
        check_equal(whole.returncode, 0, f"status of --check: {whole.stderr}")
        check_in("every record is whole", whole.stderr, "what --check says")
        check_refused(FAILED, ["the ledger cannot be checked", "there is no ledger"], "cadre-coordinator", "--check",
                      "--state-dir", f"{place}/none")
        with contextlib.closing(sqlite3.connect(ledger)) as store, store:
            store.execute("UPDATE meta SET job_id_max = 7")
        check_refused(FAILED, ["the ledger is not whole", "ledger.db", "is damaged"], "cadre-coordinator", "--check",
                      "--state-dir", f"{place}/old")
        check_refused(FAILED, ["ledger.db", "is damaged"], "cadre-coordinator", "--listen", listen,
                      "--state-dir", f"{place}/old")
        with contextlib.closing(sqlite3.connect(ledger)) as store, store:
            store.execute("UPDATE meta SET version = 99")
        check_refused(FAILED, ["ledger.db", "version 99"], "cadre-coordinator", "--listen", listen,
                      "--state-dir", f"{place}/old")
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(ledger + suffix)
        with open(ledger, "wb") as file:
            file.write(b"this is no database at all, only a long enough text\n" * 100)
        check_refused(FAILED, ["ledger.db"], "cadre-coordinator", "--listen", listen, "--state-dir", f"{place}/old")
        check(not os.path.exists(f"{place}/c.sock"), "a refused one left its socket")
        if AS_ROOT:
            check_refused(FAILED, ["--task-user", "no-such-user"], "cadre-worker", "--coordinator", listen,
                          "--state-dir", f"{place}/w", "--task-user", "no-such-user")


def test_readiness():
    with folder() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(f"{place}/notify")
        notify.settimeout(20)
        environment = clean_environment() | {"NOTIFY_SOCKET": f"{place}/notify"}

        def start(name, *arguments):
            return subprocess.Popen([program(name), "--state-dir", f"{place}/{name}", "--ready-file",
                                     f"{place}/{name}.ready", *arguments], env=environment, stderr=subprocess.DEVNULL)

        coordinator = start("cadre-coordinator", "--listen", f"unix:{place}/c.sock", "--listen", "127.0.0.1:0")
        worker = None
        try:
            wait_for("the coordinator tells systemd that it is ready", lambda: b"READY=1" in notify.recv(4096))
            with open(f"{place}/cadre-coordinator.ready", encoding="ascii") as file:
                addresses = file.read().splitlines()
            check_equal(addresses[0], f"unix:{place}/c.sock", "first address")
            check(addresses[1].startswith("127.0.0.1:") and not addresses[1].endswith(":0"), f"addresses {addresses}")
            worker = start("cadre-worker", "--coordinator", addresses[1], "--name", "over-tcp")
            wait_for("the worker tells systemd that it is ready", lambda: b"READY=1" in notify.recv(4096))
            wait_for("the worker's ready file", lambda: os.path.exists(f"{place}/cadre-worker.ready"))
            client = Client(addresses[1])
            check_equal([item.name for item in client.workers()], ["over-tcp"], "workers")
            client.close()
            for daemon in (worker, coordinator):
                daemon.send_signal(signal.SIGTERM)
                check_equal(daemon.wait(20), 0, "exit status")
                wait_for("it tells systemd of its end", lambda: b"STOPPING=1" in notify.recv(4096))
        finally:
            for daemon in (worker, coordinator):
                if daemon is not None and daemon.poll() is None:
                    daemon.kill()
                    daemon.wait()
        left = sorted(name for name in os.listdir(place) if not name.startswith("cadre-") or name.endswith("ready"))
        check_equal(left, ["notify"], "what is left")


def test_who_may_use_the_socket():
    with Cluster(workers=0) as cluster:
        mode = os.stat(f"{cluster.folder}/c.sock").st_mode
        check_equal(stat.S_IMODE(mode), 0o600, "mode of the socket")
        check_equal(stat.S_IMODE(os.stat(cluster.coordinator.state).st_mode), 0o700, "mode of the state directory")
    group = grp.getgrgid(os.getegid()).gr_name if not AS_ROOT else "nogroup"
    with Cluster(workers=0, coordinator=["--group", group]) as cluster:
        status = os.stat(f"{cluster.folder}/c.sock")
        check_equal((stat.S_IMODE(status.st_mode), status.st_gid), (0o660, grp.getgrnam(group).gr_gid), "socket")
        check(cluster.client.is_alive(), "the coordinator")


if __name__ == "__main__":
    run(globals())
