# SPDX-License-Identifier: Apache-2.0
"""Several coordinators that share a ledger in etcd, and workers that know all of them.

    with Several(workers=2) as cluster:      three coordinators, one etcd
        leader = cluster.leader()            the one that leads; kill(), signal() as of every daemon
        cluster.follow()                     cluster.client is of the one that leads now
"""
import json
import os

import grpc

from client import Client, health_pb2
from cluster import Cluster, Daemon, program
from etcds import Etcds
from speed import Patience
from testing import Failure, check, scaled, wait_for

LEASE = scaled("1s")
# The leases of workers are longer than a change of the leader takes.
TIMING = ["--lease", scaled("10s"), "--rewind-patience", scaled("60s"), "--report-timeout", scaled("2s")]
PATIENCE_S = 60


class Following:
    """A client of the coordinator that leads, as `cadre` is: what is refused while another one begins to lead is asked
    of that one. A submission that may come twice needs a request_id."""

    def __init__(self, cluster):
        self.cluster = cluster

    def __getattr__(self, name):
        def call(*arguments, **options):
            patience = Patience(PATIENCE_S)
            while True:
                try:
                    return getattr(self.cluster.clients[0], name)(*arguments, **options)
                except (grpc.RpcError, Failure) as error:
                    cause = error if isinstance(error, grpc.RpcError) else error.__cause__
                    if not isinstance(cause, grpc.RpcError) or cause.code() != grpc.StatusCode.UNAVAILABLE \
                            or patience.is_over():
                        raise
                self.cluster.follow()
        return call


class Several(Cluster):
    def __init__(self, workers=1, slots=1, coordinators=3, members=1, etcd=(), coordinator=(), worker=(), lease=LEASE,
                 start=True):
        super().__init__(workers=0, start=start)
        self.etcds = Etcds(members, *etcd)
        self.contents, self.environment = self.made_contents()
        self.lease = lease
        self.options = coordinator
        self.addresses = [f"unix:{self.folder}/c{i}.sock" for i in range(coordinators)]
        self.address = ",".join(self.addresses)
        self.workers = [self.worker(f"w{i}", slots, worker) for i in range(workers)]

    def made_contents(self):
        """A folder, or with CADRE_TEST_CONTENTS=store a place in an object store, and what finds that."""
        if os.environ.get("CADRE_TEST_CONTENTS") == "store":
            import stored_contents
            return stored_contents.fresh_place(), stored_contents.variables()
        folder = os.path.join(self.folder, "contents")
        os.mkdir(folder)
        return folder, {}

    def snapshots(self):
        """The names of those of the ledger."""
        if self.environment:
            import stored_contents
            return stored_contents.names(f"{self.contents}/snapshots")
        return os.listdir(f"{self.contents}/snapshots")

    def __enter__(self):
        self.etcds.__enter__()
        try:
            self.coordinators = [self.one(i) for i in range(len(self.addresses))]
            self.coordinator = self.coordinators[0]
            super().__enter__()
            if self.start:
                self.follow()
        except BaseException:
            self.etcds.end()
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            super().__exit__(kind, error, trace)
        finally:
            self.etcds.__exit__(kind, error, trace)

    def one(self, number):
        """The coordinator of this number, which is not started yet."""
        daemon = Daemon(self, f"c{number}", [
            program("cadre-coordinator"), "--listen", self.addresses[number], "--grace", "1s", "--collect-timeout",
            scaled("20s"), "--ha", self.etcds.address("cadre"), "--ha-lease", self.lease, "--name", f"c{number}",
            "--contents", self.contents, *self.options])
        daemon.address = self.addresses[number]
        daemon.environment = dict(self.environment)
        return daemon

    @staticmethod
    def leads(daemon):
        """Whether it takes calls of clients and workers."""
        if not daemon.runs():
            return False
        client = Client(daemon.address)
        try:
            answer = client.health.Check(health_pb2.HealthCheckRequest(service="cadre.v1.Jobs"), timeout=5)
            return answer.status == health_pb2.HealthCheckResponse.SERVING
        except grpc.RpcError:
            return False
        finally:
            client.close()

    def leader(self, but=None):
        """The one that leads, and is not `but`."""
        return wait_for("a coordinator leads", lambda: next(
            (one for one in self.coordinators if one is not but and self.leads(one)), None), PATIENCE_S)

    def follow(self, but=None):
        """Makes cluster.client one of the coordinator that leads; returns that."""
        leader = self.leader(but)
        self.clients.insert(0, Client(leader.address))
        return leader

    def check_all_follow(self):
        """All that run have applied the same entries, and one leads."""
        check(sum(self.leads(one) for one in self.coordinators) == 1, "one leads")

    def shown(self, daemon):
        """What this one says of all coordinators, by name."""
        said = self.cadre("--coordinator", daemon.address, "coordinators", "--json").stdout
        return {one["name"]: one for one in json.loads(said)["coordinators"]}
