# SPDX-License-Identifier: Apache-2.0
"""Three replicas beside real etcd: one leads, all apply the same entries in the same order, none that was reported as
logged is missing, whatever is killed or stopped, and no two may send at once."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from etcds import Etcds
from testing import Failure, HANG_S, SLOW, check, check_equal, check_in, run, wait_for

LEASE_MS = int(1500 * SLOW)
PATIENCE_S = 60
STEPPED_DOWN, REFUSED = 3, 4
MIB = 1024 * 1024


def boot_us():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Replica:
    """One process of replica_driver, and what it printed."""

    def __init__(self, name, *arguments):
        self.name = name
        self.applied = []    # (index, term, hash, text)
        self.logged = []     # texts
        self.terms = []      # (term, time) that it led
        self.may = []        # [from, until)
        self.leader = None   # (name, term, left)
        self.nonce = None    # with which it led
        self.known = None    # (id, term, secret) of the cluster
        self.stored = []     # (index, term, hash, SHA-256, size) of snapshots
        self.installed = []  # indices of snapshots
        self.suspended = False
        self.end = None
        self.lock = threading.Lock()
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", os.environ["CADRE_TEST_REPLICA_DRIVER"],
                                         arguments[0], name, *arguments[1:]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for text in self.process.stdout:
            if text.endswith("\n"):  # the last line of a process that was killed may be cut
                with self.lock:
                    self.note(*text.rstrip("\n").split("\t"))

    def note(self, what, *fields):
        if what == "applied":
            self.applied.append((int(fields[0]), int(fields[1]), fields[2], fields[3]))
        elif what == "logged":
            self.logged.append(fields[0])
        elif what == "lead":
            self.terms.append((int(fields[0]), int(fields[1])))
            self.nonce = fields[2]
        elif what == "may":
            self.note_may(int(fields[0]), int(fields[1]))
        elif what == "leader":
            self.leader = (fields[0], int(fields[1]), fields[2] == "1")
        elif what == "known":
            self.known = fields
        elif what == "stored":
            self.stored.append((int(fields[0]), *fields[1:]))
        elif what == "installed":
            self.installed.append(int(fields[0]))
        elif what in ("suspend", "resume"):
            self.suspended = what == "suspend"
        else:
            self.end = (what, fields[0])

    def note_may(self, now, until):
        if self.may:
            self.may[-1][1] = min(self.may[-1][1], max(now, self.may[-1][0]))
        if until > now:
            self.may.append([now, until])

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def runs(self):
        return self.process.poll() is None

    def leads(self):
        return self.runs() and bool(self.terms) and self.end is None and not self.suspended

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.finish()

    def finish(self):
        """Waits for its end and all that it printed; the exit status."""
        status = self.process.wait(timeout=HANG_S)
        self.reader.join(timeout=HANG_S)
        return status


class World:
    """Replicas c0, c1, c2, each with its earlier processes. With `snapshot_bytes` the log is trimmed all the time."""

    def __init__(self, etcds, lease_ms=LEASE_MS, count=3, snapshot_bytes=0, folder=None):
        self.arguments = [etcds.address("cadre"), str(lease_ms)]
        if snapshot_bytes > 0:
            folder = folder or tempfile.mkdtemp(dir=etcds.folder)
            self.arguments += [folder, str(snapshot_bytes)]
        self.now = {f"c{i}": None for i in range(count)}
        self.all = []
        for name in self.now:
            self.start(name)

    def start(self, name):
        self.now[name] = Replica(name, *self.arguments)
        self.all.append(self.now[name])

    def running(self):
        return [one for one in self.now.values() if one.runs()]

    def leader(self, other_than=None):
        """The one that leads, as of the highest term."""
        def find():
            leading = [one for one in self.running() if one.leads() and one is not other_than]
            return max(leading, key=lambda one: one.terms[-1][0], default=None)
        return wait_for("one leads", find, PATIENCE_S)

    def tool(self, *arguments):
        """Runs replica_tool; what it prints."""
        done = subprocess.run([os.environ["CADRE_TEST_REPLICA_TOOL"], self.arguments[0], *arguments],
                              capture_output=True, text=True, timeout=HANG_S, check=False)
        check_equal(done.returncode, 0, f"exit status of {arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def progress(self, count=10):
        """Some replica logs so many entries more."""
        before = sum(len(one.logged) for one in self.all)
        wait_for(f"{count} entries more are logged",
                 lambda: sum(len(one.logged) for one in self.all) >= before + count, PATIENCE_S)

    def restart_ended(self):
        """As a service manager does it after a step down."""
        for name, one in self.now.items():
            if not one.runs():
                check(one.end is None or one.end[0] == "step_down", f"{name}: {one.end}")
                self.start(name)

    def check(self):
        """All processes that ever ran applied a part of one log, from its beginning; see the file's first lines."""
        longest = max((one.applied for one in self.all), key=len)
        for one in self.all:
            with one.lock:
                applied = list(one.applied)
            check_equal(applied, longest[:len(applied)], f"what {one.name} applied")
        check_equal([entry[0] for entry in longest], list(range(1, len(longest) + 1)), "indices")
        known = {(one.known[0], one.known[2]) for one in self.all if one.known}
        check_equal(len(known), 1, "ids and secrets of the cluster")
        texts = [entry[3] for entry in longest]
        entries = [text for text in texts if text != "TERM"]
        check_equal(len(entries), len(set(entries)), "entries that are there once")
        check_equal([entry[1] for entry in longest], sorted(entry[1] for entry in longest), "terms along the log")
        led = sorted(term for one in self.all for term, _ in one.terms)
        check_equal(len(led), len(set(led)), "terms that one replica led")
        logged = {text for one in self.all for text in list(one.logged) if not text.endswith("-confirmed")}
        check(len(logged) > 0, "something was logged")
        check_equal(logged - set(texts), set(), "what was logged and is in no log")
        spans = sorted((begin, until, one.name, id(one)) for one in self.all for begin, until in one.may)
        check(len(spans) > 0, "some replica might send")
        for before, after in zip(spans, spans[1:]):
            if before[3] != after[3]:
                check(before[1] <= after[0], f"{before[2]} may send until {before[1]}, {after[2]} from {after[0]}")

    def catch_up(self, behind=lambda: None):
        """Each has applied all that was logged until now; who steps down meanwhile is started again. `behind` is
        called while one has not."""
        logged = {text for one in self.all for text in list(one.logged) if not text.endswith("-confirmed")}

        def done():
            self.restart_ended()
            has = all(logged <= {entry[3] for entry in list(one.applied)} for one in self.now.values())
            if not has:
                behind()
            return has
        wait_for("all have applied all that is logged", done, PATIENCE_S)

    def finish(self):
        self.catch_up()
        for one in self.running():
            one.process.stdin.close()
            one.finish()
        self.check()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for one in self.all:
            if one.runs():
                one.signal(signal.SIGCONT)
                one.kill()
            if error is not None:
                print(f"{one.name}: terms {one.terms}, applied {len(one.applied)}, logged {len(one.logged)}, "
                      f"suspended {one.suspended}, end {one.end}", flush=True)


@contextlib.contextmanager
def world(members, lease_ms=LEASE_MS, **options):
    with Etcds(members) as etcds, World(etcds, lease_ms, **options) as replicas:
        yield etcds, replicas


def test_one_leads():
    with world(1) as (_, replicas):
        leader = replicas.leader()
        replicas.progress(50)
        leader.send(f"append {3 * MIB}")
        replicas.progress(20)
        for one in replicas.running():
            wait_for(f"{one.name} knows the leader",
                     lambda one=one: one.leader and one.leader[0] == leader.name, PATIENCE_S)
        replicas.finish()


def kill_leader(replicas):
    leader = replicas.leader()
    replicas.progress()
    killed_us = boot_us()
    leader.kill()
    new = replicas.leader()
    took_ms = (new.terms[-1][1] - killed_us) / 1000
    replicas.progress()
    replicas.restart_ended()
    return took_ms


def test_the_leader_is_killed():
    with world(3) as (_, replicas):
        for _ in range(2):
            kill_leader(replicas)
        replicas.finish()


def test_how_long_it_takes():
    """Printed, not checked: from the kill of a leader to the lead of the next one."""
    for lease_ms in (1000, 3000):
        with world(3, lease_ms) as (_, replicas):
            took = sorted(kill_leader(replicas) for _ in range(5))
            print(f"L = {lease_ms} ms: {', '.join(f'{one:.0f}' for one in took)} ms", flush=True)
            replicas.finish()


def test_the_leader_is_stopped():
    """It goes on after another has led, and finds itself replaced."""
    with world(3) as (_, replicas):
        for _ in range(2):
            leader = replicas.leader()
            replicas.progress()
            leader.signal(signal.SIGSTOP)
            replicas.leader(other_than=leader)
            replicas.progress()
            leader.signal(signal.SIGCONT)
            check_equal(leader.finish(), STEPPED_DOWN, "exit status")
            check_in("another coordinator leads now", leader.end[1], "why")
            replicas.restart_ended()
        replicas.finish()


def test_one_steps_down_while_all_catch_up():
    """As a leader does that was held up, and finds itself replaced only when the others have gone on."""
    with world(1) as (_, replicas):
        leader = replicas.leader()
        replicas.progress()
        leader.signal(signal.SIGSTOP)
        replicas.leader(other_than=leader)
        replicas.progress()
        replicas.catch_up(behind=lambda: leader.signal(signal.SIGCONT))
        check_equal(leader.finish(), STEPPED_DOWN, "exit status")
        replicas.finish()


def test_the_leader_leaves():
    """The next one does not wait for the lease, which is longer than this test is patient."""
    with world(1, 10 * 60 * 1000) as (_, replicas):
        for _ in range(4):
            leader = replicas.leader()
            replicas.progress()
            replicas.catch_up()  # so that another can take over
            leader.send("leave")
            check_equal(leader.finish(), STEPPED_DOWN, "exit status")
            check_equal(leader.end[1], "it has left", "why")
            replicas.restart_ended()
        replicas.leader()
        replicas.finish()


def test_a_dead_leader_is_resigned():
    """As a service manager does it after the end of the process; the lease is longer than this test is patient."""
    with world(3, 10 * 60 * 1000) as (_, replicas):
        for _ in range(2):
            leader = replicas.leader()
            replicas.progress()
            replicas.catch_up()  # so that another can take over
            killed_us = boot_us()
            leader.kill()
            leader.note_may(boot_us(), 0)  # a dead process sends nothing
            check_in("the process that led has left", replicas.tool("resign", leader.nonce), "what it says")
            new = replicas.leader()
            print(f"it took {(new.terms[-1][1] - killed_us) / 1000:.0f} ms", flush=True)
            replicas.progress()
            check_in("does not lead", replicas.tool("resign", leader.nonce), "what it says")
            replicas.restart_ended()
        replicas.finish()


def test_a_member_of_etcd_is_killed():
    with world(3) as (etcds, replicas):
        for which in (etcds.leader, lambda: etcds.followers()[0], etcds.leader):
            replicas.leader()
            replicas.progress()
            member = which()
            member.kill()
            replicas.restart_ended()
            replicas.progress(30)
            member.start()
            wait_for("it is back", member.is_healthy)
            replicas.restart_ended()
        replicas.leader()
        replicas.finish()


def test_no_quorum():
    """The leader is suspended, none takes over, and the same one goes on afterwards, or one after it."""
    with world(3) as (etcds, replicas):
        leader = replicas.leader()
        replicas.progress()
        killed = etcds.members[:2]
        for member in killed:
            member.kill()
        wait_for("the leader is suspended", lambda: leader.suspended, PATIENCE_S)
        count = len(leader.logged)
        check(not any(one.leads() for one in replicas.running()), "none leads")
        check_equal(len(leader.logged), count, "nothing is logged")
        for member in killed:
            member.start()
        replicas.leader()
        replicas.progress()
        replicas.restart_ended()
        replicas.finish()


def test_a_log_that_is_trimmed():
    """One that was down while entries were trimmed that it lacks comes back by a snapshot; then it leads, and trims."""
    with world(1, snapshot_bytes=20000) as (_, replicas):
        leader = replicas.leader()
        follower = next(one for one in replicas.running() if one is not leader)
        follower.kill()
        # What is behind the first snapshot is trimmed before the second one is stored.
        wait_for("two snapshots are stored", lambda: len(leader.stored) >= 2, PATIENCE_S)
        replicas.restart_ended()
        back = replicas.now[follower.name]
        wait_for("it is back", lambda: back.installed, PATIENCE_S)
        replicas.catch_up()
        for one in replicas.running():
            if one is not back:
                one.kill()
        wait_for("it leads", back.leads, PATIENCE_S)
        wait_for("it stores a snapshot", lambda: back.stored, PATIENCE_S)
        replicas.restart_ended()
        replicas.finish()


def seed(replicas, how, known, snapshot):
    """Writes a new log from the snapshot, by replica_tool."""
    index, *rest = snapshot
    text = replicas.tool(how, *known, str(index), *rest)
    check_in(f"etcd's log begins behind entry {index} in term", text, "what it says")
    return int(text.split()[-1])


def goes_on_from(etcds, before, how):
    """Coordinators without any copy go on from the newest snapshot of `before`, which has ended, in a log that is
    written again."""
    snapshot = max(one for replica in before.all for one in replica.stored)
    known = max((one.known for one in before.all if one.known), key=lambda known: int(known[1]))
    longest = max((one.applied for one in before.all), key=len)
    index, folder = snapshot[0], before.arguments[2]
    with World(etcds, snapshot_bytes=20000, folder=folder, count=0) as tool:
        term = seed(tool, how, known, snapshot)
    check(term >= int(known[1]) + (1000 if how == "reseed" else 0), f"term {term}, {known[1]} was known")
    with World(etcds, snapshot_bytes=20000, folder=folder) as replicas:
        leader = replicas.leader()
        check(leader.terms[-1][0] > term, f"term {leader.terms}, written with {term}")
        check_equal(leader.applied[:index], longest[:index], "what is before the new log")
        replicas.progress()
        replicas.finish()
        check_equal({one.known[2] for one in replicas.all if one.known}, {known[2]}, "secrets")


def stop_with_a_snapshot(replicas):
    replicas.leader()
    wait_for("a snapshot is stored", lambda: any(one.stored for one in replicas.all), PATIENCE_S)
    replicas.progress()
    for one in replicas.running():
        one.kill()


def test_an_older_etcd_is_reseeded():
    with world(1, snapshot_bytes=20000) as (etcds, replicas):
        member = etcds.members[0]
        replicas.leader()
        member.kill()
        copy = copy_state(member, "backup")
        member.start()
        stop_with_a_snapshot(replicas)
        member.kill()
        state = os.path.join(member.folder, member.name)
        shutil.rmtree(state)
        os.rename(copy, state)
        member.start()
        etcds.wait_healthy()
        goes_on_from(etcds, replicas, "reseed")


def test_a_ledger_is_imported():
    """Into an etcd that holds none; so is a ledger reseeded whose etcd was lost."""
    for how in ("import", "reseed"):
        with world(1, snapshot_bytes=20000) as (_, replicas), Etcds(1) as empty:
            stop_with_a_snapshot(replicas)
            goes_on_from(empty, replicas, how)


def copy_state(member, name):
    return shutil.copytree(os.path.join(member.folder, member.name), os.path.join(member.folder, name))


def test_an_older_etcd_is_refused():
    with world(1) as (etcds, replicas):
        member = etcds.members[0]
        replicas.leader()
        replicas.progress()
        member.kill()
        copy = copy_state(member, "backup")
        member.start()
        replicas.progress(50)
        replicas.restart_ended()  # another may have taken over while etcd was away
        replicas.catch_up()  # one that does not know of what is lost would lead
        member.kill()
        state = os.path.join(member.folder, member.name)
        shutil.rmtree(state)
        os.rename(copy, state)
        member.start()
        ended = list(replicas.now.values())
        for one in ended:
            status = one.finish()
            check(status in (STEPPED_DOWN, REFUSED), f"{one.name}: {status}")
        refused = [one for one in ended if one.end[0] == "refused"]
        check(len(refused) >= 2, f"the followers are refused: {[one.end for one in ended]}")
        for one in refused:
            check_in("etcd holds an older", one.end[1], "what it says")
            check_in("--reseed", one.end[1], "what it says")


if __name__ == "__main__":
    run(dict(globals()))
