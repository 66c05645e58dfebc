# SPDX-License-Identifier: Apache-2.0
"""What tasks print: seen at once, and kept when they are killed."""
import json
import os
import re
import signal
import subprocess

from client import CANCELLED, FAILED, SUCCEEDED, common_pb2
from cluster import Cluster, clean_environment, processes_naming, program, script
from testing import HANG_S, check, check_equal, check_in, run, wait_for

PRINTER = os.environ.get("CADRE_TEST_PRINTER", "")


class Reader:
    """A command whose output goes to files, which are read while it runs."""

    def __init__(self, cluster, *arguments):
        self.paths = [os.path.join(cluster.folder, f"{name}-{len(os.listdir(cluster.folder))}")
                      for name in ("stdout", "stderr")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen([program("cadre"), *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err,
                                            env=clean_environment() | {"CADRE_COORDINATOR": cluster.address})

    def read(self, stream=1):
        with open(self.paths[stream - 1], encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self, status=0):
        check_equal(self.process.wait(HANG_S), status, f"exit status; it said {self.read(2)[-1500:]}")
        return self.read()


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Gate:
    """The pipe that printers wait at."""

    def __init__(self, cluster):
        self.path = os.path.join(cluster.folder, f"gate-{len(os.listdir(cluster.folder))}")
        os.mkfifo(self.path)
        os.chmod(self.path, 0o644)
        self.pipe = os.open(self.path, os.O_RDWR)  # so that what is written stays until it is read

    def open(self, tasks):
        """One byte for each."""
        os.write(self.pipe, b"g" * tasks)

    def close(self):
        os.close(self.pipe)


def check_live(reader, gate, tasks, what):
    """The lines that were printed before the program waits are there while it waits."""
    for text in ("before cadre_init\n", "after cadre_init\n"):
        wait_for(f"{what}: {text}", lambda: reader.read().count(text) == tasks)
    gate.open(tasks)
    check_in("at the end\n", reader.end(), what)
    gate.close()


def test_a_printed_line_is_seen_at_once():
    with Cluster(slots=2) as cluster:
        gate = Gate(cluster)
        check_live(Reader(cluster, "run", "-n", "2", PRINTER, "--", gate.path), gate, 2, "cadre run")
        gate = Gate(cluster)
        check_live(Reader(cluster, "submit", "--workers", "2", PRINTER, "--", gate.path), gate, 2, "cadre submit")
        gate = Gate(cluster)
        with open(PRINTER, "rb") as file:
            job = cluster.client.submit(file.read(), arguments=[gate.path])
        check_live(Reader(cluster, "logs", "-f", str(job)), gate, 1, "cadre logs -f")


def test_what_was_printed_before_a_kill_is_kept():
    """An unfinished line, too: the bytes were in the pipe."""
    with Cluster() as cluster:
        for end in ("kill -9 $$", "kill -9 -$$", "kill -SEGV $$"):
            info = cluster.client.run(script(f"printf 'whole\\nhal'; {end}"), max_restarts=0)
            check_equal(info.state, FAILED, "the state")
            check_equal(cluster.client.log(info.id), b"whole\nhal", f"the log after {end}")
        path = make_program(cluster, "printf 'whole\nhal'; kill -9 $$")
        check_equal(cluster.cadre("run", path, status=137).stdout, b"whole\nhal", "what cadre run shows")


STAYS = "trap '' TERM; printf 'whole\nhal'; while :; do sleep 0.05; done"


def test_what_was_printed_before_a_stop_is_kept():
    """By a time limit, by cancel: SIGTERM, and SIGKILL after the grace."""
    with Cluster() as cluster:
        client = cluster.client
        info = client.run(script(STAYS), max_restarts=0, limits=common_pb2.JobLimits(time_limit_us=300000))
        check_equal((info.state, client.log(info.id)), (FAILED, b"whole\nhal"), "a time limit")
        job = client.submit(script(STAYS), max_restarts=0)
        wait_for("it prints", lambda: client.log(job) == b"whole\nhal")
        client.cancel(job)
        check_equal((client.wait(job).state, client.log(job)), (CANCELLED, b"whole\nhal"), "cancel")


def test_what_is_in_the_pipe_when_the_daemon_is_killed_is_kept():
    """The daemon stands still, the task prints and ends, the daemon is killed: the next one reads it."""
    with Cluster(worker=["--keep-tasks"]) as cluster:
        gate = Gate(cluster)
        worker = cluster.workers[0]
        job = cluster.client.submit(script(f"echo before; head -c 1 {gate.path} > /dev/null; printf 'whole\nhal';"
                                           f" head -c 1 {gate.path} > /dev/null; echo error >&2; kill -9 $$"),
                                    max_restarts=0)
        wait_for("it prints", lambda: cluster.client.log(job) == b"before\n")
        tasks = [pid for pid, line in processes_naming(f"CADRE_SOCKET={worker.state}/").items() if "program" in line]
        worker.signal(signal.SIGSTOP)
        gate.open(2)
        wait_for("the task ends", lambda: not any(runs(pid) for pid in tasks))
        worker.kill()
        worker.start()
        check_equal(cluster.client.wait(job).state, FAILED, "the state")
        seen = [cluster.cadre("logs", str(job), option).stdout for option in ("--stdout", "--stderr")]
        check_equal(seen, [b"before\nwhole\nhal", b"error\n"], "the log")
        gate.close()


def make_program(cluster, text):
    path = os.path.join(cluster.folder, f"program-{len(os.listdir(cluster.folder))}")
    with open(path, "wb") as file:
        file.write(script(text))
    os.chmod(path, 0o755)
    return path


# Each part waits until the part before was read, as a pause on the terminal would do it.
BOTH = ("echo out 0; sleep 0.3; echo err 0 >&2; sleep 0.3; printf 'out 1 begins'; sleep 0.3; echo err 1 >&2; sleep 0.3;"
        " echo ', and ends'; echo out 2")
OUT = b"out 0\nout 1 begins, and ends\nout 2\n"
ERR = b"err 0\nerr 1\n"


def test_stdout_and_stderr_are_kept_apart():
    with Cluster(slots=2) as cluster:
        path = make_program(cluster, BOTH)
        for arguments in (["run", path], ["submit", path]):
            done = cluster.cadre(*arguments)
            check_equal(done.stdout, OUT, f"standard output of {arguments[0]}")
            check_equal([line for line in done.stderr.splitlines(True) if line.startswith(b"err")],
                        ERR.splitlines(True), f"standard error of {arguments[0]}")
        check_equal(cluster.cadre("logs", "1", "--stdout").stdout, OUT, "--stdout")
        check_equal(cluster.cadre("logs", "1", "--stderr").stdout, ERR, "--stderr")
        check_equal(cluster.cadre("logs", "1", "--stderr").stderr, b"", "no gap")
        for options in ((), ("-f",)):
            check_equal(sorted(cluster.cadre("logs", "1", *options).stdout), sorted(OUT + ERR), f"both, {options}")
        check_equal(cluster.cadre("logs", "1", "--tail", "2", "--stdout").stdout, OUT[6:], "two lines of stdout")
        check_equal(cluster.cadre("logs", "1", "--tail", "1", "--stderr").stdout, ERR[6:], "one line of stderr")
        check_equal(cluster.cadre("logs", "1", "--tail", "9", "--stderr", "-f").stdout, ERR, "more than there are")
        check_in(b"give one of them", cluster.cadre("logs", "1", "--stdout", "--stderr", status=2).stderr, "both flags")
        lines = [json.loads(line) for line in cluster.cadre("logs", "1", "--json").stdout.splitlines()]
        check_equal([line["text"] for line in lines if line["stream"] == "stdout"], OUT.decode().splitlines(), "JSON")
        check_equal([line["text"] for line in lines if line["stream"] == "stderr"], ERR.decode().splitlines(), "JSON")
        check_equal(sorted(line["received_us"] for line in lines if line["stream"] == "stdout"),
                    [line["received_us"] for line in lines if line["stream"] == "stdout"], "times")


TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ) (.*)$")


def test_a_log_begins_at_a_line_or_at_a_time():
    with Cluster(slots=2) as cluster:
        gate = Gate(cluster)
        job = cluster.client.submit(script(f"echo first; head -c 1 {gate.path} > /dev/null; echo second;"
                                           " echo third >&2; printf 'the end'"), workers=2)
        wait_for("both wait", lambda: cluster.cadre("logs", "1").stdout.count(b"first") == 2)
        gate.open(2)
        cluster.client.wait(job)
        gate.close()
        stamped = {}
        for line in cluster.cadre("logs", "1", "--timestamps").stdout.decode().splitlines():
            task, rest = line.split(" ", 1)
            found = TIME.match(rest)
            check(found, f"a time in {line}")
            stamped.setdefault(task, []).append(found.groups())
        for task in ("[0]", "[1]"):
            check_equal(sorted(text for _, text in stamped[task]), ["first", "second", "the end", "third"], task)
            times = [time for time, _ in stamped[task]]
            check(times[0] < min(times[1:]), "the pause is seen")
        check_equal(sorted(cluster.cadre("logs", "1", "--tail", "2", "--stdout").stdout.decode().splitlines()),
                    ["[0] second", "[0] the end", "[1] second", "[1] the end"], "two lines of each task")
        check_equal(cluster.cadre("logs", "1", "--task", "0", "--tail", "1", "--stdout").stdout, b"the end", "the last")
        since = dict((text, time) for time, text in stamped["[0]"])["second"]
        shown = cluster.cadre("logs", "1", "--task", "0", "--since", since, "--timestamps").stdout.decode()
        check_equal(sorted(line.split(" ", 1)[1] for line in shown.splitlines()), ["second", "the end", "third"], since)
        check_equal(len(cluster.cadre("logs", "1", "--since", "1h").stdout.splitlines()), 8, "within an hour")
        check_equal(cluster.cadre("logs", "1", "--since", "2999-01-01T00:00:00+01:00").stdout, b"", "in the future")
        for wrong in ("yesterday", "10", "2026-02-30T00:00:00Z", "2026-02-03T00:00:00"):
            check_in(b"neither a duration", cluster.cadre("logs", "1", "--since", wrong, status=2).stderr, wrong)
        check_in(b"--tail", cluster.cadre("logs", "1", "--tail", "64KiB", status=2).stderr, "bytes")


ON_TERMINAL = ("test -t 1 && test -t 2 && test ! -t 0 && echo on a terminal; echo error >&2; stty size <&1;"
               " printf 'half'; kill -9 $$")


def test_a_task_can_have_a_terminal():
    """One for both streams; bytes are as they were written, and the last unfinished line is kept."""
    wanted = b"on a terminal\nerror\n24 80\nhalf"
    with Cluster() as cluster:
        path = make_program(cluster, ON_TERMINAL)
        check_equal(cluster.cadre("run", "--tty", path, status=137).stdout, wanted, "cadre run")
        check_equal(cluster.cadre("submit", "--tty", "--max-restarts", "1", path, status=137).stdout,
                    wanted * 2, "cadre submit, with one more attempt")
        check_equal(cluster.cadre("logs", "1", "--stderr").stdout, b"", "there is no stderr of its own")
        for environment, kind in (([], b"xterm\n"), (["TERM=dumb"], b"dumb\n")):
            info = cluster.client.run(script("echo $TERM"), terminal=True, environment=environment)
            check_equal(cluster.client.log(info.id), kind, "TERM")
        job = cluster.client.submit(script("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"),
                                    terminal=True)
        cluster.client.wait(job)
        check_equal(cluster.client.log(job), b"".join(b"line %d\n" % i for i in range(20000)), "all lines")


def test_a_terminal_outlives_the_daemon():
    with Cluster(worker=["--keep-tasks"]) as cluster:
        gate = Gate(cluster)
        worker = cluster.workers[0]
        job = cluster.client.submit(script(f"echo before; head -c 1 {gate.path} > /dev/null; test -t 1 && echo after"),
                                    terminal=True)
        wait_for("it prints", lambda: cluster.client.log(job) == b"before\n")
        worker.kill()
        gate.open(1)
        worker.start()
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the state")
        check_equal(cluster.client.log(job), b"before\nafter\n", "the log")
        gate.close()


if __name__ == "__main__":
    run(globals())
