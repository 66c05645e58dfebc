# SPDX-License-Identifier: Apache-2.0
"""Jobs on one worker do not reach each other, and leave nothing; a secret is seen by its task alone."""
import glob
import os
import signal
import subprocess
import sys

from client import CANCELLED, FAILED, FINAL, RUNNING, SUCCEEDED, common_pb2
from cluster import AS_ROOT, Cluster, clean_environment, program, script, trainer
from testing import check, check_equal, check_in, descendants, run, skip, wait_for

SECRET = "s3cret-of-the-test-7c1e"


def python(text):
    """The content of a program in Python, with this test's interpreter."""
    return f"#!{sys.executable} -IS\n{text}\n".encode()


def processes_of(uid):
    """The pids of all that runs under a uid."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{entry}").st_uid == uid or f"\nUid:\t{uid}\t" in open(f"/proc/{entry}/status").read():
                found.append(int(entry))
        except OSError:
            pass
    return found


def groups_of(worker, job):
    """The control groups of a job on a worker; they are named by a hash of which folder its state directory is."""
    number = 14695981039346656037
    about = os.stat(worker.state)
    for byte in f"{about.st_dev}:{about.st_ino}".encode():
        number = (number ^ byte) * 1099511628211 % 2 ** 64
    return [path for depth in ("*", "*/*", "*/*/*", "*/*/*/*")
            for path in glob.glob(f"/sys/fs/cgroup/{depth}/cadre-{number:016x}/job-{job}")]


# When a job has ended, a worker of another test on this host may give its uid to a job of its own.
OWN_UIDS = ["--job-uids", "60896-60927"]


def owner_of(entry):
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:  # of another user, who uses it
        return None


def check_gone(cluster, job, uid):
    """Of a job that has ended nothing is left on this host."""
    wait_for(f"nothing runs under uid {uid}", lambda: not processes_of(uid))
    wait_for("its folders are gone", lambda: not os.listdir(os.path.join(cluster.workers[0].state, "tasks")))
    wait_for("its control groups are gone", lambda: not groups_of(cluster.workers[0], job))
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        left = [entry.path for entry in os.scandir(folder) if owner_of(entry) == uid]
        check(not left, f"files of uid {uid} are left: {left}")


def all_command_lines():
    lines = b""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                lines += file.read()
        except OSError:
            pass
    return lines


def submit_secret(cluster, path, *options, **variables):
    environment = dict(clean_environment(), CADRE_COORDINATOR=cluster.address, **variables)
    return subprocess.Popen([program("cadre"), "submit", *options, path], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=environment)


def test_a_secret_is_nowhere():
    """Given on the command line, by the caller's environment, by a file."""
    debug = ["--log-level", "debug"]
    with Cluster(slots=3, coordinator=debug, worker=debug) as cluster:
        path = os.path.join(cluster.folder, "wait.sh")
        with open(path, "wb") as file:
            file.write(script('echo "${#TOKEN} bytes"; exec sleep 60'))
        os.chmod(path, 0o755)
        secrets = os.path.join(cluster.folder, "secrets")
        with open(secrets, "w") as file:
            file.write(f"# of the test\nTOKEN={SECRET}\n")
        clients = [submit_secret(cluster, path, "--env", f"TOKEN={SECRET}"),
                   submit_secret(cluster, path, "--env", "TOKEN", TOKEN=SECRET),
                   submit_secret(cluster, path, "--env-file", secrets)]
        for job in (1, 2, 3):
            wait_for("the task has the secret", lambda: cluster.cadre("logs", str(job), status=None).stdout.count(
                f"{len(SECRET)} bytes".encode()))
        check(SECRET.encode() not in all_command_lines(), "a command line shows the secret")
        for words in (["jobs"], ["jobs", "--json"], ["job", "1"], ["job", "3", "--json"], ["workers"]):
            shown = cluster.cadre(*words)
            check(SECRET.encode() not in shown.stdout + shown.stderr, f"cadre {words} shows the secret")
        for job in (1, 2, 3):
            cluster.client.cancel(job)
        for follow in clients:
            follow.wait(20)
        with open(secrets, "a") as file:
            file.write(f"{SECRET}\n")
        said = cluster.cadre("submit", "--env-file", secrets, path, status=2).stderr
        check_in(b"secrets, line 3", said, "the error")
        check(SECRET.encode() not in said, "the error shows the secret")
        cluster.cadre("submit", "--env-file", f"{secrets}.absent", path, status=2)
        for daemon in (cluster.coordinator, *cluster.workers):
            check(SECRET not in daemon.log(), f"the log of {daemon.name} shows the secret")


REACH = r"""
import ctypes, os, socket, sys
victim, path, *ports = sys.argv[1:]
def attempt(what, function):
    try:
        got = function()
    except OSError:
        got = None
    print("reached by " + what if got else "refused", flush=True)
def read(name):
    with open(f"/proc/{victim}/{name}", "rb") as file:
        return file.read(1)
def connect():
    with socket.socket(socket.AF_UNIX) as there:
        there.settimeout(5)
        there.connect(path)
        there.send(b"hello")
        return there.recv(1)
def greet(port):
    with socket.create_connection(("127.0.0.1", int(port)), 1) as there:
        there.send(b"\0" * 256)
        answer = b""
        while True: # what comes before we have proved anything may be a challenge; then it must end
            more = there.recv(4096)
            if not more:
                return len(answer) > 256
            answer += more
print("uid", os.getuid())
libc = ctypes.CDLL(None, use_errno=True)
attempt("kill", lambda: os.kill(int(victim), 9) is None)
attempt("ptrace", lambda: libc.ptrace(16, int(victim), 0, 0) == 0)
attempt("environ", lambda: read("environ"))
attempt("mem", lambda: read("mem"))
attempt("fd", lambda: os.listdir(f"/proc/{victim}/fd"))
attempt("cwd", lambda: os.listdir(f"/proc/{victim}/cwd"))
attempt("its socket", connect)
for port in ports:
    attempt("its mesh", lambda: greet(port))
"""


def ports_of(uid):
    """Where processes of a uid listen on IPv4."""
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file][1:]
    return [str(int(row[1].split(":")[1], 16)) for row in rows if row[3] == "0A" and int(row[7]) == uid]


def variable_of(pid, name):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(item.split(b"=", 1) for item in file.read().split(b"\0") if b"=" in item)[name.encode()].decode()


def test_jobs_do_not_reach_each_other():
    if not AS_ROOT:
        skip("not root: all tasks run as one user")
    with Cluster(slots=3, worker=OWN_UIDS) as cluster:
        client = cluster.client
        first = client.submit(trainer(), arguments=["100000000"], workers=2)
        client.watch_until(first, lambda info: info.position > 0, "it trains")
        victim = client.get(first).tasks[0].pid
        uid = os.stat(f"/proc/{victim}").st_uid
        ports = ports_of(uid)
        second = client.run(python(REACH), arguments=[str(victim), variable_of(victim, "CADRE_SOCKET"), *ports])
        words = client.log(second.id).decode()
        check_equal(second.exit_code, 0, f"{second.message}: {words}")
        check_equal(words.count("refused"), 7 + len(ports), f"attempts that failed ({words})")
        check("reached" not in words and f"uid {uid}\n" not in words, f"it reached the other job: {words}")
        os.kill(victim, 0)
        before = client.get(first)
        client.watch_until(first, lambda info: info.position > before.position, "it trains on")
        check_equal(client.get(first).generation, before.generation, "its generation")
        client.cancel(first)
        client.wait(first)
        check_gone(cluster, first, uid)


STAYS = r"""
trap "" TERM
echo uid $(id -u)
echo litter > "$TMPDIR/litter"; echo litter > /tmp/litter.$$; mkdir "$TMPDIR/deep"; chmod 0 "$TMPDIR/deep"
(trap "" TERM HUP; setsid sh -c 'cd /; trap "" TERM; sh -c "exec sleep 1003" & exec env -i sleep 1004' \
    </dev/null >/dev/null 2>&1 &)
echo ready
while :; do sleep 0.05; done
"""

FORKS = r"""
import os, signal, sys
print("uid", os.getuid(), flush=True)
first = os.getpid()
while True:
    try:
        os.fork()
    except OSError:
        if os.getpid() == first:
            sys.exit("it can fork no more")
        signal.pause()
"""

EATS = r"""
import os
print("uid", os.getuid(), flush=True)
kept = []
while True:
    kept.append(b"x" * (4 << 20))
"""


def uid_in_log(client, job):
    words = wait_for("its uid is in the log", lambda: client.log(job).split()[:2])
    return int(words[1])


def test_one_that_stays_and_litters():
    if not AS_ROOT:
        skip("not root: all tasks run as one user")
    with Cluster(coordinator=["--grace", "300ms"], worker=OWN_UIDS) as cluster:
        client = cluster.client
        job = client.submit(script(STAYS))
        wait_for("it runs", lambda: b"ready" in client.log(job))
        uid = uid_in_log(client, job)
        check(len(processes_of(uid)) >= 3, "it left nothing behind")
        client.cancel(job)
        info = client.wait(job)
        check_equal((info.state, info.tasks[0].exit.signal), (CANCELLED, 9), str(info))
        check_gone(cluster, job, uid)


WRITES = r"""
import ctypes, os, sys
os.mkdir("many")
if os.fork():
    os.wait()
os.setsid()
with open("/proc/self/stat") as file: # what it was started with is not to be read any more
    fields = file.read().rsplit(")", 1)[1].split()
start, end = int(fields[47]), int(fields[48])
ctypes.memset(start, 0, end - start)
print("uid", os.getuid(), flush=True)
n = 0
while True:
    n += 1
    try:
        os.close(os.open(f"many/{n}", os.O_CREAT | os.O_WRONLY))
    except OSError:
        os.makedirs("many", exist_ok=True)
    if n % 500 == 0:
        for name in range(n - 499, n):
            os.unlink(f"many/{name}")
"""


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def test_one_that_goes_on_writing():
    """The worker is killed, and the keeper with it: only the group of who hides in the folders is known. The next
    run starts, for it ends groups before it removes folders. The other way round it is a race, which who writes wins
    mostly, not always."""
    if not AS_ROOT:
        skip("not root: all tasks run as one user")
    with Cluster(worker=OWN_UIDS) as cluster:
        client = cluster.client
        job = client.submit(python(WRITES))
        uid = uid_in_log(client, job)
        worker = cluster.workers[0]
        if not groups_of(worker, job):
            client.cancel(job)
            skip("no control groups here: who hides is not found")
        keeper = parent_of(client.get(job).tasks[0].pid)
        os.kill(keeper, signal.SIGSTOP)  # it would find it, too
        worker.kill()
        os.kill(keeper, signal.SIGKILL)
        check(processes_of(uid), "who hides does not go on")
        worker.start()
        wait_for(f"what ran under uid {uid} ended", lambda: worker.log().count("ready") > 1 and not processes_of(uid))
        client.cancel(job)
        client.wait(job)


def test_a_killed_worker_leaves_no_control_groups():
    """No daemon may ever come for them. One that comes makes its own."""
    with Cluster(worker=OWN_UIDS) as cluster:
        client = cluster.client
        job = client.submit(script("sleep 1000"))
        client.wait_running(job)
        worker = cluster.workers[0]
        groups = groups_of(worker, job)
        if not groups:
            client.cancel(job)
            skip("no control groups here")
        worker.kill()
        wait_for("the job's groups are gone, and the worker's, which are empty",
                 lambda: not any(os.path.exists(path) or os.path.exists(os.path.dirname(path)) for path in groups))
        client.cancel(job)
        worker.start()
        client.wait(job)
        check_equal(client.run(script("exit 0")).exit_code, 0, "the next run of the worker")


def test_limits_contain():
    with Cluster(slots=2, worker=OWN_UIDS) as cluster:
        client = cluster.client
        info = client.run(script("id -u"), limits=common_pb2.JobLimits(pids=30, memory_bytes=64 << 20))
        if info.state == FAILED and "cannot keep" in info.message:
            skip(f"no limits here: {info.message}")
        if not AS_ROOT:
            skip("not root: all tasks run as one user")
        bomb = client.submit(python(FORKS), limits=common_pb2.JobLimits(pids=30))
        hog = client.submit(python(EATS), limits=common_pb2.JobLimits(memory_bytes=64 << 20))
        for job, limit in ((bomb, "--pids"), (hog, "--memory")):
            info = client.wait(job)
            check_equal(info.state, FAILED, str(info))
            check_in(limit, cluster.cadre("job", str(job)).stdout.decode(), "what `cadre job` says")
            check_gone(cluster, job, uid_in_log(client, job))
        check_equal(client.run(script("exit 0")).exit_code, 0, "the worker goes on")


WITHOUT_GROUPS = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]


def test_limits_that_cannot_be_kept():
    """A host without control groups refuses a job that names a limit, or ignores it where its options say so."""
    if subprocess.run([*WITHOUT_GROUPS, "true"], capture_output=True, check=False).returncode != 0:
        skip("no mount namespaces here: control groups cannot be hidden")
    limits = common_pb2.JobLimits(memory_bytes=64 << 20)
    for options, ends_as in ((["--limits", "strict"], FAILED), (["--limits", "best-effort"], SUCCEEDED)):
        with Cluster(workers=0) as cluster:
            worker = cluster.worker("w0", 1, options)
            worker.argv = [*WITHOUT_GROUPS, *worker.argv]
            cluster.workers.append(worker)
            worker.start()
            info = cluster.client.run(script("exit 0"), limits=limits)
            check_equal(info.state, ends_as, f"{options}: {info}")
            if ends_as == FAILED:
                check_in("cannot keep the job's --memory", info.message, "why")


CONTAINED = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c"]

# Files where everybody may write, and a process: all of it has to be there when the task ends.
ATTEMPTS = """
import os, subprocess, sys, time
name = f"/dev/shm/{os.environ['CADRE_TASK']}-{os.getpid()}-{time.monotonic_ns()}"
open(name, "w").close()
child = subprocess.Popen(["sleep", "1000"])
time.sleep(float(sys.argv[1]))
if not os.path.exists(name) or child.poll() is not None:
    sys.exit("another process removed what was mine")
"""


def contained(worker, state):
    """The worker in namespaces of its own for processes and mounts, with its own /run and its own folder of that
    path for its state; /tmp, /dev/shm and objects of System V are the host's."""
    worker.argv[worker.argv.index("--state-dir") + 1] = state
    mounts = f'mount -t tmpfs -o mode=711 none {state} && mount -t tmpfs none /run && exec "$@"'
    worker.argv = [*CONTAINED, mounts, "sh", *worker.argv]
    worker.signal = lambda number: os.kill(descendants(worker.process.pid)[0], number)


def test_daemons_that_share_no_folder():
    """One on the host and one in a container, with the same range of uids and the same path of their state: no task is
    ended and nothing is removed by the other, at ends of jobs and at a start."""
    if not AS_ROOT:
        skip("not root: all tasks run as one user")
    if subprocess.run([*CONTAINED, "mount -t tmpfs none /run"], capture_output=True, check=False).returncode != 0:
        skip("no namespaces here")
    with Cluster(worker=OWN_UIDS) as host, Cluster(workers=0) as guest:
        worker = guest.worker("w0", 1, OWN_UIDS)
        contained(worker, host.workers[0].state)
        guest.workers.append(worker)
        long = host.client.submit(python(ATTEMPTS), arguments=["3"])
        host.client.wait_running(long)
        worker.start()
        clusters = {guest: guest.client, host: host.client}
        running = {cluster: None for cluster in clusters}
        ended = dict.fromkeys(clusters, 0)

        def go_on():
            """Each has a job at any time; those of one end while those of the other run."""
            for at, (cluster, client) in enumerate(clusters.items()):
                job = running[cluster]
                info = client.get(job) if job is not None else None
                if info is not None and info.state in FINAL:
                    check_equal((info.state, info.exit_code), (SUCCEEDED, 0), f"of the {('guest', 'host')[at]}: {info}")
                    ended[cluster] += 1
                    job = None
                if job is None:
                    seconds = (0.9, 0.25) if ended[cluster] % 2 == at else (0.25, 0.9)
                    running[cluster] = client.submit(python(ATTEMPTS), arguments=[str(seconds[at])])
            return min(ended.values()) >= 8

        running[host] = long
        wait_for("eight jobs of each have ended", go_on, 120)
        kill = guest.client.submit(python(ATTEMPTS), arguments=["1000"])
        for cluster, client in clusters.items():
            check_equal(client.wait(running[cluster]).state, SUCCEEDED, "the last but one")
        guest.client.wait_running(kill)
        host.workers[0].stop()  # its next run ends what it finds of the last
        host.workers[0].start()
        check_equal(host.client.run(script("exit 0")).exit_code, 0, "the next run of the host's worker")
        check_equal(guest.client.get(kill).state, RUNNING, "the guest's job meanwhile")
        guest.client.cancel(kill)
        check_equal(guest.client.wait(kill).state, CANCELLED, "the guest's last")


if __name__ == "__main__":
    run(globals())
