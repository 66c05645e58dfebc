# SPDX-License-Identifier: Apache-2.0
"""Three coordinators, three members of etcd and three workers, each on a host of its own, and the faults of these hosts
while a job trains: what each does, and how it is undone."""
import contextlib
import os
import random
import signal
import time

from etcds import Etcds, Place
from hosts import Hosts
from learning import FAST_WORKER, SAMPLES, BATCH, TEST, Learning
from pushing import Pushing
from several import PATIENCE_S, Following, Several
from small_disk import SmallDisk
from testing import SLOW, check, check_equal, scaled, wait_for

PORT = 7070
COORDINATORS, MEMBERS, WORKERS = (0, 1, 2), (3, 4, 5), (6, 7, 8)
LEASE_S = 1.0 * SLOW
DISK_MIB = 32
EPOCHS = 18
EPOCH_STEPS = SAMPLES // BATCH + TEST // 8  # the first ones train
# The leases of workers are longer than a change of the leader takes.
TIMING = ["--lease", scaled("10s"), "--rewind-patience", scaled("60s"), "--report-timeout", scaled("2s")]


class WiredSeveral(Several):
    """Coordinator i is on host i, member i of etcd on host 3 + i, worker i on host 6 + i. Clients use Unix sockets."""

    def __init__(self, hosts):
        super().__init__(workers=0, coordinator=[*TIMING, "--disk-reserve", "0"], lease=scaled("1s"))
        self.hosts = hosts
        places = [Place(Hosts.address(host), lambda argv, host=host: hosts.on(host, argv)) for host in MEMBERS]
        self.etcds = Etcds(3, "--heartbeat-interval", "50", "--election-timeout", "300", places=places)
        self.ports = ",".join(f"{Hosts.address(host)}:{PORT}" for host in COORDINATORS)
        for i, host in enumerate(WORKERS):
            worker = self.worker(f"w{i}", 2, FAST_WORKER)
            worker.argv[worker.argv.index("--coordinator") + 1] = self.ports
            worker.argv = hosts.on(host, worker.argv)
            self.workers.append(worker)
        self.disks = [SmallDisk(os.path.join(self.folder, f"c{i}"), DISK_MIB) for i in COORDINATORS]
        self.mounted = contextlib.ExitStack()

    @property
    def client(self):
        return Following(self)

    def __enter__(self):
        for disk in self.disks:
            self.mounted.enter_context(disk)
        try:
            return super().__enter__()
        except BaseException:
            self.mounted.close()
            raise

    def __exit__(self, kind, error, trace):
        try:
            super().__exit__(kind, error, trace)
        finally:
            self.mounted.close()

    def one(self, number):
        daemon = super().one(number)
        port = f"{Hosts.address(number)}:{PORT}"
        daemon.argv = self.hosts.on(number, [*daemon.argv, "--listen", port, "--advertise", port])
        return daemon


class Drill:
    """Faults, one after the other, under jobs that train."""

    def __init__(self, cluster, seed, lasts=(0.1, 0.5, 0.9, 1.2, 2.0, 3.0)):
        self.cluster = cluster
        self.lasts = lasts  # how many leases of the lead a fault lasts
        self.hosts = cluster.hosts
        self.draw = random.Random(seed)
        self.took_ms = []  # from a leader's death to the next step that another one admitted
        self.learning = None

    def leader_host(self):
        return self.cluster.coordinators.index(self.cluster.leader())

    def last(self):
        """As long as a part of the lease, or several of them: here the passing of time is what is tested."""
        time.sleep(LEASE_S * self.draw.choice(self.lasts))

    def begin(self, kind):
        self.learning = JOBS[kind](self.cluster)
        self.before = self.learning.until_position(5)

    def fault(self, kind):
        """Does it while the job takes fifteen steps; then the job has taken them, with the tasks that it had."""
        position = self.learning.get().position
        self.learning.allow(position + 15)
        KINDS[kind](self)
        self.cluster.follow()
        after = self.learning.until(lambda info: info.position >= position + 13, f"15 steps after: {kind}")
        check_equal([(task.slot, task.incarnation) for task in after.tasks],
                    [(task.slot, task.incarnation) for task in self.before.tasks], f"incarnations after: {kind}")
        check_equal(after.restarts, 0, f"restarts after: {kind}")
        for one in self.cluster.coordinators:
            check(one.runs(), f"{one.name} has ended after: {kind}\n{one.log()[-2000:]}")

    def end(self):
        self.learning.allow()
        self.learning.end(deadline_s=120)
        self.learning.check()
        self.learning = None

    # --- faults ---

    def note_next_step(self, gone, began):
        """How long it took until another coordinator, which is asked as fast as it answers, has admitted a step."""
        self.cluster.follow(but=gone)
        first = self.learning.get().position
        self.learning.allow(first + 30)
        wait_for("a step under the next leader", lambda: self.learning.get().position > first, PATIENCE_S)
        self.took_ms.append((time.monotonic() - began) * 1000)

    def kill_all(self):
        """Steps that were admitted are taken without any coordinator."""
        self.learning.stand()
        for one in self.cluster.coordinators:
            one.kill()
        self.learning.go_on_alone()
        self.last()
        for one in self.cluster.coordinators:
            one.start()

    def kill_leader(self):
        leader = self.cluster.leader()
        began = time.monotonic()
        leader.kill()
        self.note_next_step(leader, began)
        self.last()
        leader.start()

    def kill_follower(self):
        leader = self.cluster.leader()
        victim = self.draw.choice([one for one in self.cluster.coordinators if one is not leader])
        victim.kill()
        self.last()
        victim.start()

    def end_leader(self):
        leader = self.cluster.leader()
        leader.stop()
        self.last()
        leader.start()

    def stop_leader(self):
        leader = self.cluster.leader()
        os.killpg(leader.process.pid, signal.SIGSTOP)
        self.last()
        os.killpg(leader.process.pid, signal.SIGCONT)

    def cut_leader(self):
        host = self.leader_host()
        self.hosts.cut(host)
        self.last()
        self.hosts.heal(host)

    def mute(self, pairs):
        """Each of the pairs: what the first host says does not come to the others."""
        for host, others in pairs:
            self.hosts.mute(host, others)
        self.last()
        for host, others in pairs:
            self.hosts.unmute(host, others)

    def leader_to_etcd(self):
        self.mute([(self.leader_host(), MEMBERS)])

    def etcd_to_leader(self):
        leader = self.leader_host()
        self.mute([(member, [leader]) for member in MEMBERS])

    def leader_to_workers(self):
        self.mute([(self.leader_host(), WORKERS)])

    def workers_to_leader(self):
        leader = self.leader_host()
        self.mute([(worker, [leader]) for worker in WORKERS])

    def leader_to_all(self):
        self.mute([(self.leader_host(), [*MEMBERS, *WORKERS])])

    def kill_member(self):
        member = self.draw.choice(self.cluster.etcds.members)
        member.kill()
        self.last()
        member.start()

    def stop_member(self):
        member = self.draw.choice(self.cluster.etcds.members)
        os.killpg(member.process.pid, signal.SIGSTOP)
        self.last()
        os.killpg(member.process.pid, signal.SIGCONT)

    def kill_leader_and_member(self):
        member = self.draw.choice(self.cluster.etcds.members)
        member.kill()
        self.kill_leader()
        member.start()

    def no_quorum(self):
        members = self.draw.sample(self.cluster.etcds.members, 2)
        for member in members:
            member.kill()
        self.last()
        for member in members:
            member.start()

    def fill_disk(self, coordinator):
        disk = self.cluster.disks[self.cluster.coordinators.index(coordinator)]
        disk.leave(0)
        self.last()
        disk.clear()

    def fill_leader(self):
        self.fill_disk(self.cluster.leader())

    def fill_follower(self):
        leader = self.cluster.leader()
        self.fill_disk(self.draw.choice([one for one in self.cluster.coordinators if one is not leader]))


class DrilledLearning(Learning):
    """Of two tasks, which is proved to have applied each sample once, in the one order."""

    def __init__(self, cluster, workers_min):
        super().__init__(cluster, f"epochs={EPOCHS}", "save=1", workers=2, workers_min=workers_min, allowed=7,
                         request_id=os.urandom(16))
        self.place = None

    def applied(self, position):
        return divmod(position, EPOCH_STEPS) in self.log_lines()

    def stand(self):
        """At a gate before a step of training that comes after one."""
        gate = self.get().position + 20
        while not 0 < gate % EPOCH_STEPS < SAMPLES // BATCH:
            gate += 1
        self.allow(gate)
        wait_for(f"the job stands at {gate}", lambda: self.applied(gate - 1))
        self.place = gate
        time.sleep(LEASE_S * 0.2)  # the next step is admitted meanwhile

    def go_on_alone(self):
        self.allow(self.place + 15)
        wait_for(f"step {self.place} is taken, which was admitted", lambda: self.applied(self.place))

    def check(self):
        self.check_learned(epochs=EPOCHS)


JOBS = {"fixed": lambda cluster: DrilledLearning(cluster, 2),
        "parameter servers": Pushing,
        "elastic": lambda cluster: DrilledLearning(cluster, 1)}
KINDS = {"the leader is killed": Drill.kill_leader,
         "a follower is killed": Drill.kill_follower,
         "the leader ends in order": Drill.end_leader,
         "the leader is stopped": Drill.stop_leader,
         "the leader is cut off from all": Drill.cut_leader,
         "no message of the leader comes to etcd": Drill.leader_to_etcd,
         "no answer of etcd comes to the leader": Drill.etcd_to_leader,
         "no message of the leader comes to the workers": Drill.leader_to_workers,
         "no message of the workers comes to the leader": Drill.workers_to_leader,
         "no message of the leader comes to anyone": Drill.leader_to_all,
         "a member of etcd is killed": Drill.kill_member,
         "a member of etcd is stopped": Drill.stop_member,
         "the leader and a member of etcd are killed": Drill.kill_leader_and_member,
         "two members of etcd are killed": Drill.no_quorum,
         "all coordinators are killed": Drill.kill_all,
         "the disk of the leader is full": Drill.fill_leader,
         "the disk of a follower is full": Drill.fill_follower}
