# SPDX-License-Identifier: Apache-2.0
"""What real processes do to a folder, and what they promise meanwhile; then each state that a power cut could leave of
it, before the checks of the promises."""
import fcntl
import json
import os
import random
import re
import shutil
import sys
import tempfile

from disk import FOLDER, MARK, RENAME, OUTPUT, SYNC, UNLINK, Disk, put_on_disk, put_record, read_trace
from testing import Failure, check, check_equal, wait_for

RECORDER = os.environ.get("CADRE_TEST_RECORDER", "")


class Promise:
    """Holds for every cut at or behind the record before which it was output."""

    def __init__(self, at, kind, facts):
        self.at = at
        self.kind = kind
        self.facts = facts


class Recording:
    """environment() makes a process write the trace; promise() notes what one of them has just said."""

    def __init__(self, folder, trace=None):
        """`trace`: of before, to be replayed once more."""
        self.folder = os.path.realpath(folder)
        self.trace = trace or tempfile.mkstemp(prefix="cadre-trace-")[1]
        self.records = read_trace(self.trace)
        self.keep = trace is not None
        if not self.keep:
            os.chmod(self.trace, 0o666)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.keep or (kind is Lost and "--seeds" in sys.argv):
            print(f"kept: --trace {self.trace}", flush=True)
        else:
            os.unlink(self.trace)

    def environment(self):
        return {"LD_PRELOAD": RECORDER, "DISK_RECORDER_FOLDER": self.folder, "DISK_RECORDER_TRACE": self.trace}

    def attach(self, daemon):
        """Before its start. Its ready file lies apart: the folder that it is in is synced."""
        self.make_folder(f"ready-{daemon.name}")
        path = os.path.join(self.folder, f"ready-{daemon.name}", "ready")
        daemon.argv = [path if part == daemon.ready_file else part for part in daemon.argv]
        daemon.ready_file = path
        daemon.environment = self.environment()

    def kill(self, daemon):
        """Between two calls, not between a call and its record: what the recorder does holds the lock, shared."""
        with open(self.trace, "rb") as trace:
            fcntl.flock(trace, fcntl.LOCK_EX)
            daemon.kill()

    def promise(self, kind, **facts):
        put_record(self.trace, MARK, data=json.dumps({"kind": kind, **facts}).encode())

    def make_folder(self, name):
        """One that was there before, and on the disk."""
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        put_record(self.trace, FOLDER, name, inode=os.stat(path).st_ino)
        put_record(self.trace, SYNC, ".")

    def syncs_of(self, name):
        """How many there were of the files of this name, and whether something was written since the last one."""
        count = 0
        pending = False
        inodes = set()
        for record in read_trace(self.trace):
            if record.kind == SYNC and os.path.basename(record.path) == name:
                count += 1
                pending = False
                inodes.add(record.inode)
            elif record.inode in inodes:
                pending = True
        return count, pending

    def end(self):
        """The processes are gone. What was recorded is what lies there: else something was missed."""
        self.records = read_trace(self.trace)
        disk = Disk()
        for record in self.records:
            disk.take(record)
        for below in self.below():
            wanted = {}
            for path, what in disk_now(disk.root, ""):
                if path.split("/")[0] == below:
                    wanted[path] = what
            check_equal(sorted(wanted), sorted(path for path, _ in really(self.folder, below)), f"names in {below}")
            for path, what in really(self.folder, below):
                check(what == wanted[path], f"{path} has another content than what was recorded")

    def below(self):
        return sorted({record.path.split("/")[0] for record in self.records if "/" in record.path})

    def promises(self):
        """What a program says in lines like "saved 3"; what the test noted counts from the last thing that was said
        before the test recorded it."""
        last_output = 0
        last_mark = 0
        found = []
        for number, record in enumerate(self.records):
            if record.kind == OUTPUT:
                last_output = number
                if line := re.search(rb"^(\w+) (\d+)$", record.data, re.MULTILINE):
                    found.append(Promise(number, line[1].decode(), int(line[2])))
            elif record.kind == MARK:
                facts = json.loads(record.data)
                check(last_output > last_mark or "since" in facts or "ended" in facts,
                      f"{facts} was recorded without an output")
                last_mark = number
                found.append(self.noted(facts, number, last_output, found))
        return found

    @staticmethod
    def noted(facts, number, last_output, found):
        since = facts.pop("since", None)
        if since is not None:  # it was promised with another one
            last_output = [promise.at for promise in found
                      if promise.kind == since and promise.facts["job"] == facts["job"]][-1]
        return Promise(number if facts.pop("ended", False) else last_output, facts.pop("kind"), facts)


def disk_now(folder, prefix):
    for name, what in folder.now.items():
        path = prefix + name
        if hasattr(what, "now"):
            yield path, None
            yield from disk_now(what, path + "/")
        else:
            yield path, what.says if hasattr(what, "says") else what.newest()


def really(root, below):
    for folder, folders, names in os.walk(os.path.join(root, below)):
        yield os.path.relpath(folder, root), None
        for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                yield os.path.relpath(path, root), os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    yield os.path.relpath(path, root), file.read()


class Lost(Exception):
    """A state in which a promise is not kept."""


class Replay:
    """Every state is made in `place`, once, and shown to check(promises so far, all promises)."""

    def __init__(self, recording, below, seed, draws=1, singles=1, ignored=lambda path: False):
        self.recording = recording
        self.below = below
        self.random = random.Random(seed)
        self.seed = seed
        self.draws = draws
        self.singles = singles
        self.ignored = ignored
        self.states = 0

    def cuts(self, promises):
        """Before each sync, rename and removal, and before each word that promises something: between them nothing
        becomes more certain."""
        at = {promise.at for promise in promises} | {len(self.recording.records)}
        at |= {number for number, record in enumerate(self.recording.records)
               if record.kind in (SYNC, RENAME, UNLINK) and record.path.split("/")[0] == self.below}
        return at

    def run(self, place, show, share=1.0):
        """show(kept, at): raises Lost. `share`: of the cuts at which nothing is said, how many are tried."""
        promises = self.recording.promises()
        last_output = {promise.at for promise in promises}
        cuts = self.cuts(promises)
        disk = Disk(self.ignored)
        seen = set()
        for number in range(len(self.recording.records) + 1):
            if number in cuts and (number in last_output or self.random.random() < share):
                kept = [promise for promise in promises if promise.at <= number]
                self.at_cut(disk, number, kept, place, show, seen)
            if number < len(self.recording.records):
                disk.take(self.recording.records[number])

    def at_cut(self, disk, number, kept, place, show, seen):
        for tree in disk.states(self.below, self.random, self.draws, self.singles):
            key = (len(kept), hash(frozenset(tree.items())))
            if key in seen:
                continue
            seen.add(key)
            shutil.rmtree(os.path.join(place, self.below), ignore_errors=True)
            put_on_disk(tree, place)
            self.states += 1
            try:
                show(kept, number)
            except (Lost, Failure) as why:
                raise Lost(f"a power cut before record {number} of {len(self.recording.records)} (seed {self.seed}, "
                           f"state {self.states}): {why}") from why


def must_notice(what, replay):
    """The replay has to find a loss."""
    try:
        replay()
    except Lost:
        return
    raise Failure(f"not found by the checks: {what}")


def wait_for_sync(recording, name):
    """Until nothing of the files of this name is only in memory any more."""
    wait_for(f"what is in {name} is on the disk", lambda: recording.syncs_of(name)[1] is False)
