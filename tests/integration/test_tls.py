# SPDX-License-Identifier: Apache-2.0
"""A cluster over TLS on addresses that are not loopback: it trains, and every wrong certificate says what is wrong."""
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import ssl
import subprocess

from client import (CALL_S, SUCCEEDED, agent_pb2, agent_pb2_grpc, blob_chunks, common_pb2, grpc, jobs_pb2,
                    refusal)
from cluster import Cluster, clean_environment, program, script
from hosts import Hosts
from learning import Learning, learner
from pki import Pki
from testing import HANG_S, check, check_equal, check_in, run, wait_for

PORT = 7078
BLOCK_BYTES = 8 << 20  # of a checkpoint


class Secured(Cluster):
    """The coordinator on host 0, worker i on host i + 1 and people on the last host; all over TLS."""

    def __init__(self, hosts, workers):
        super().__init__(workers=0)
        self.hosts = hosts
        self.pki = Pki(self.folder)
        self.secure = f"{Hosts.address(0)}:{PORT}"
        tls = self.pki.issue("coordinator", "main")
        self.coordinator.argv = hosts.on(0, [*self.coordinator.argv, "--listen", f"0.0.0.0:{PORT}", "--tls-dir", tls,
                                             "--http", "127.0.0.1:0"])
        for i in range(workers):
            self.add_worker(i, self.pki.issue("worker", f"w{i}"))

    def add_worker(self, i, tls, *options):
        worker = self.worker(f"w{i}", 1, ["--mesh-host", Hosts.address(i + 1), "--tls-dir", tls, *options])
        worker.argv[worker.argv.index("--coordinator") + 1] = self.secure
        worker.argv = self.hosts.on(i + 1, worker.argv)
        self.workers.append(worker)
        return worker

    def ask(self, tls, *arguments, status=0, address=None, plain=False):
        """`cadre` on the last host."""
        options = ["--coordinator", address or self.secure] + ([] if plain else ["--tls-dir", tls])
        argv = self.hosts.on(self.hosts.count - 1, [program("cadre"), *options, *arguments])
        done = subprocess.run(argv, capture_output=True, timeout=HANG_S, check=False, env=clean_environment(),
                              text=True)
        check_equal(done.returncode, status, f"cadre {' '.join(arguments)}: {done.stdout[-500:]}{done.stderr[-800:]}")
        return done.stdout + done.stderr


def not_loopback(hosts):
    """The hosts' addresses here are such that TLS is demanded for them: 10.77.h.1 instead of 127.77.h.1."""
    for host in range(hosts.count):
        hosts.ip("-n", hosts.name(host), "addr", "add", f"10.77.{host}.1/16", "dev", "cable")


def test_it_trains_over_tls():
    old = Hosts.address
    Hosts.address = staticmethod(lambda host: f"127.77.{host}.1")
    with Hosts(4) as hosts:
        not_loopback(hosts)
        Hosts.address = staticmethod(lambda host: f"10.77.{host}.1")
        try:
            with Secured(hosts, 2) as cluster:
                anna = cluster.pki.issue("client", "anna")
                trains(cluster, anna)
                denied(cluster, anna)
                renewed(cluster, anna)
        finally:
            Hosts.address = old


def ageless(listed):
    """It was asked a moment later."""
    return re.sub(r"\d+ days left", "days left", re.sub(r" +\d+ (s|min) ago", " a while ago", listed))


def trains(cluster, anna):
    said = cluster.ask(anna, "submit", "--workers", "2", "--file", program("digits-train.bin"),
                       "--file", program("digits-test.bin"), program("digits"), "--", "--epochs", "2")
    check_in("test accuracy", said + cluster.ask(anna, "logs", "1"), "what the digits say")
    files = [word for name in ("cert", "key", "ca") for word in (f"--tls-{name}", os.path.join(anna, f"{name}.pem"))]
    workers = cluster.ask(None, *files, "workers", plain=True)
    check_equal(ageless(cluster.ask(anna, "workers")), ageless(workers), "with --tls-dir, and with its files")
    check_in("w0", workers, "the workers")
    check_in("w1", workers, "the workers")
    check_in("CERTIFICATE", workers, "a column of the workers")
    check("expire" not in workers, f"no certificate expires soon: {workers}")


def denied(cluster, anna):
    """Each wrong combination, and the word that must be in its sentence."""
    pki = cluster.pki
    other = Pki(cluster.folder, "other")
    viewer = pki.issue("viewer", "eve")
    submitter = pki.issue("submitter", "bot")
    worker = pki.issue("worker", "w9")
    cluster.ask(viewer, "jobs")
    cluster.ask(submitter, "job", "1")
    page = cluster.ask(viewer, "dashboard")
    port = re.search(r"http://127\.0\.0\.1:(\d+)/#token=", page)[1]
    check_in(f"ssh -N -L {port}:127.0.0.1:{port} {Hosts.address(0)}\n", page, "the page is on another host")
    check_in("the role viewer (\"eve\") may not call /cadre.v1.Jobs/Drain",
             cluster.ask(viewer, "drain", "w0", status=1), "a viewer drains")
    check_in("the role submitter", cluster.ask(submitter, "drain", "w0", status=1), "a submitter drains")
    check_in("the role worker (\"w9\")", cluster.ask(worker, "jobs", status=1), "a worker asks for jobs")
    check_in("both ends need certificates of one CA",
             cluster.ask(other.issue("client", "anna"), "jobs", status=1), "another CA")
    check_in("need TLS", cluster.ask("", "jobs", status=2, plain=True), "plain text off the host")
    lost = os.path.join(cluster.folder, "lost")
    shutil.copytree(anna, lost)
    os.unlink(os.path.join(lost, "key.pem"))
    check_in("key.pem", cluster.ask(lost, "jobs", status=1), "a missing key")
    shutil.copy(os.path.join(viewer, "key.pem"), os.path.join(lost, "key.pem"))
    check_in("does not belong to", cluster.ask(lost, "jobs", status=2), "another key")
    os.chmod(os.path.join(lost, "key.pem"), 0o644)
    check_in("mode 0644", cluster.ask(lost, "jobs", status=1), "a key for everybody")

    impostor = cluster.add_worker(2, worker, "--name", "w0")
    impostor.start(ready=False)
    check_equal(impostor.wait_end(), 1, "a worker whose name is not its certificate's")
    check_in("is that of worker \\\"w9\\\"", impostor.log(), "the impostor's log")
    cluster.workers.remove(impostor)
    wrong = cluster.add_worker(2, viewer)
    wrong.start(ready=False)
    check_equal(wrong.wait_end(), 1, "a worker with a viewer's certificate")
    check_in("needs one of the role worker", wrong.log(), "its log")
    cluster.workers.remove(wrong)
    stranger = cluster.add_worker(2, other.issue("worker", "w2"))
    stranger.start(ready=False)
    wait_for("the stranger says why", lambda: "both ends need certificates of one CA" in stranger.log())
    stranger.stop()
    cluster.workers.remove(stranger)
    wait_for("the coordinator tells whom it refused", lambda: "a connection is refused" in cluster.coordinator.log())
    check_in("10.77.", [line for line in cluster.coordinator.log().splitlines() if "is refused" in line][0],
             "the peer's address")


def renewed(cluster, anna):
    """New certificates are taken up at SIGHUP; the workers' streams stay."""
    pki = cluster.pki
    folder = os.path.join(cluster.folder, "tls-pki-coordinator-main")
    joins = cluster.coordinator.log().count("worker said hello")
    with open(os.path.join(folder, "cert.pem"), "r+", encoding="ascii") as file:
        good = file.read()
        file.seek(0)
        file.write("broken")
        file.truncate()
    cluster.coordinator.signal(signal.SIGHUP)
    wait_for("the broken file is logged", lambda: "the old ones stay in use" in cluster.coordinator.log())
    cluster.ask(anna, "jobs")
    with open(os.path.join(folder, "cert.pem"), "w", encoding="ascii") as file:
        file.write(good)
    pki.issue("coordinator", "main", "--force", "--days", "20", into=folder)
    cluster.coordinator.signal(signal.SIGHUP)
    wait_for("the new file is in use", lambda: "new files are in use" in cluster.coordinator.log())
    wait_for("its end is logged", lambda: "expires soon" in cluster.coordinator.log())
    pki.issue("worker", "w0", "--force", "--days", "20", into=os.path.join(cluster.folder, "tls-pki-worker-w0"))
    cluster.workers[0].signal(signal.SIGHUP)
    wait_for("the worker's end is shown", lambda: "that expire soon: w0 in " in cluster.ask(anna, "workers"))
    cluster.ask(anna, "jobs")
    check_equal(cluster.coordinator.log().count("worker said hello"), joins, "joins after the reload")


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def test_a_worker_says_the_name_of_another():
    """The coordinator does not rely on the worker's own check."""
    with Cluster(workers=0, start=False) as cluster:
        pki = Pki(cluster.folder)
        tls = pki.issue("coordinator", "main", "--host", "127.0.0.1")
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", "--tls-dir", tls]
        cluster.coordinator.start()
        port = re.search(r"listening address=127\.0\.0\.1:(\d+)", cluster.coordinator.log())[1]
        version = cluster.client.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S).agent_protocol
        for role, mine, name, refused in (("worker", "w9", "w0", 'name "w0" has the certificate of worker "w9"'),
                                          ("worker", "w9", "w9", ""), ("viewer", "eve", "eve", "the role viewer")):
            own = pki.issue(role, mine, "--force")
            credentials = grpc.ssl_channel_credentials(*[read(own, f"{part}.pem") for part in ("ca", "key", "cert")])
            with grpc.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
                hello = agent_pb2.AgentHello(protocol_version=version, library_version="test", name=name, host="here",
                                             boot_nonce=7, slots=1)
                said = queue.SimpleQueue()
                said.put(agent_pb2.AgentUp(hello=hello))
                join = agent_pb2_grpc.AgentsStub(channel).Join(iter(said.get, None), timeout=CALL_S)
                try:
                    check_equal((next(join).WhichOneof("message"), refused), ("welcome", ""), f"{mine} as {name}")
                except grpc.RpcError as error:
                    check_equal((error.code().name, bool(refused)), ("PERMISSION_DENIED", True), error.details())
                    check_in(refused, error.details(), f"{mine} as {name}")
                finally:
                    said.put(None)
        check_equal([worker.name for worker in cluster.client.workers()], ["w9"], "workers that were taken")


def agents_of(address, tls):
    """The calls of a worker daemon, by a holder of these files."""
    files = [read(tls, name) for name in ("ca.pem", "key.pem", "cert.pem")]
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*files),
                                  options=[("grpc.ssl_target_name_override", "main.example")])
    return agent_pb2_grpc.AgentsStub(channel)


def output(task, path):
    header = agent_pb2.OutputHeader(task=task, path=path, size_bytes=1)
    return iter([agent_pb2.OutputChunk(header=header, data=b"x")])


def test_a_worker_reports_for_its_own_tasks():
    """Its certificate's name says which they are; without TLS nothing is asked."""
    with Cluster(workers=1, start=False) as cluster:
        pki, worker = Pki(cluster.folder), cluster.workers[0]
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", "--tls-dir",
                                     pki.issue("coordinator", "main", "--host", "main.example")]
        cluster.coordinator.start()
        with open(cluster.coordinator.ready_file, encoding="ascii") as ready:
            address = ready.read().split()[1]
        own, other = pki.issue("worker", "w0"), pki.issue("worker", "w1")
        worker.argv[worker.argv.index("--coordinator") + 1] = address
        worker.argv += ["--tls-dir", own]
        worker.start()
        gate = os.path.join(cluster.folder, "gate")
        job = cluster.client.submit(script(
            f'while [ ! -e {gate} ]; do sleep 0.02; done; echo own; echo own > "$CADRE_OUTPUT_DIR/own"'))
        incarnation = cluster.client.wait_running(job).tasks[0].incarnation
        task = common_pb2.TaskRef(job=job, slot=0, incarnation=incarnation)
        thief = agents_of(address, other)
        for call, request in ((thief.PutOutput, output(task, "forged")), (thief.PutBlob, blob_chunks(b"forged"))):
            code, said = refusal(call, request)
            check_equal(code, "PERMISSION_DENIED", said)
            check_in('worker "w1" may not', said, "the refusal")
        stale = common_pb2.TaskRef(job=job, slot=0, incarnation=incarnation + 1)
        check_equal(refusal(agents_of(address, own).PutOutput, output(stale, "forged"))[0], "PERMISSION_DENIED",
                    "another incarnation of the task")
        version = cluster.client.jobs.Version(jobs_pb2.VersionRequest()).agent_protocol
        hello = agent_pb2.AgentHello(protocol_version=version,
                                     name="w1", host="h", library_version="0", boot_nonce=1, slots=1)
        log = agent_pb2.AgentLog(task=task, offset=0, data=b"forged")
        said = thief.Join(iter([agent_pb2.AgentUp(hello=hello), agent_pb2.AgentUp(log=log)]), timeout=10)
        check_in("log_ack", [down.WhichOneof("message") for down in said], "what it receives")
        for agents, path in ((agents_of(address, own), "by-name"), (cluster.client.agents, "local")):
            agents.PutOutput(output(task, path), timeout=10)
            agents.PutBlob(blob_chunks(path.encode()), timeout=10)
        with open(gate, "wb"):
            pass
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
        check_equal(cluster.client.log(job), b"own\n", "its log")
        check_equal(cluster.client.outputs(job), {"0/own": b"own\n", "0/by-name": b"x", "0/local": b"x"}, "its outputs")


def with_certificates(cluster):
    """Starts it, each worker with a certificate of its name. The calls of each worker, by name."""
    pki = Pki(cluster.folder)
    cluster.coordinator.argv += ["--listen", "127.0.0.1:0", "--tls-dir",
                                 pki.issue("coordinator", "main", "--host", "main.example")]
    cluster.coordinator.start()
    with open(cluster.coordinator.ready_file, encoding="ascii") as ready:
        address = ready.read().split()[1]
    agents = {}
    for worker in cluster.workers:
        folder = pki.issue("worker", worker.name)
        worker.argv[worker.argv.index("--coordinator") + 1] = address
        worker.argv += ["--tls-dir", folder]
        worker.start()
        agents[worker.name] = agents_of(address, folder)
    return agents


def own_and_other(learning, agents):
    own = learning.get().tasks[0].worker
    return own, next(name for name in agents if name != own)


def test_a_worker_gets_what_its_jobs_need():
    """By its certificate's name: programs and files of jobs that have a task there, their checkpoints, and nothing
    else; what it may not have and what is not there get the same answer, which tells no path."""
    with Cluster(workers=2, start=False) as cluster:
        agents = with_certificates(cluster)

        def blob(worker, digest):
            chunks = list(agents[worker].GetBlob(common_pb2.GetBlobRequest(sha256=digest), timeout=CALL_S))
            return b"".join(chunk.data for chunk in chunks)

        def refused(worker, digest):
            code, said = refusal(agents[worker].GetBlob, common_pb2.GetBlobRequest(sha256=digest))
            check_in(digest.hex(), said, "the refusal")
            check(cluster.folder not in said and "/" not in said, f"it tells a path: {said}")
            return code, said.replace(digest.hex(), "X")

        learning = Learning(cluster, workers=1, max_restarts=1, checkpoint_every=4, allowed=10)
        learning.until(lambda info: info.checkpoint, "a checkpoint is published")
        own, other = own_and_other(learning, agents)
        content, secret = learner(), b"of a job that waits"
        program_hash, nothing = hashlib.sha256(content).digest(), hashlib.sha256(b"nothing").digest()
        cluster.client.upload([secret])
        check_equal(blob(own, program_hash), content, "the program of its job")
        answers = {refused(other, program_hash), refused(other, nothing), refused(own, nothing),
                   refused(own, hashlib.sha256(secret).digest())}
        check_equal({code for code, _ in answers}, {"NOT_FOUND"}, "codes")
        check_equal(len(answers), 1, f"answers that tell what is there: {answers}")

        os.kill(learning.get().tasks[0].pid, signal.SIGKILL)  # its next incarnation restores
        learning.allow()
        end = learning.end()
        check_equal(end.restarts, 1, "restarts")
        learning.check_learned()
        check_equal(refused(own, program_hash)[0], "NOT_FOUND", "the program of a job that ended")
        again = Learning(cluster, workers=2, restore_from=learning.job)
        check_equal(again.end().restarts, 0, "restarts of a job that goes on from another's checkpoint")
        check_equal(again.state()["count"], learning.state()["count"], "how often each sample was applied")


def bytes_sent(worker, step):
    """Of the checkpoint of that step, as the worker says it when it is at the coordinator."""
    said = re.search(rf"is at the coordinator job=\d+ step={step} bytes=\d+ bytes_sent=(\d+)", worker.log())
    return int(said[1]) if said else None


def test_a_worker_learns_of_contents_that_it_has():
    """By hash it learns of a content only when a job with a task there needs it, or it had it itself; and counts on no
    other. What of a checkpoint has not changed since the last one does not travel again."""
    with Cluster(workers=2, start=False) as cluster:
        agents = with_certificates(cluster)
        blobs = os.path.join(cluster.coordinator.state, "blobs")

        def missing(worker, *hashes):
            asked = common_pb2.BlobList(sha256=hashes)
            return set(agents[worker].MissingBlobs(asked, timeout=CALL_S).sha256)

        def counted_on(digest):
            return os.stat(os.path.join(blobs, digest.hex())).st_atime > 0

        learning = Learning(cluster, f"constant={2 << 20}", workers=1, checkpoint_every=4, allowed=6)
        learning.until(lambda info: info.checkpoint, "a checkpoint is published")
        own, other = own_and_other(learning, agents)
        secret = b"of a job that waits"
        program_hash, secret_hash, nothing = (
            hashlib.sha256(content).digest() for content in (learner(), secret, b"nothing"))
        cluster.client.upload([secret])
        asked = (program_hash, secret_hash, nothing)
        check_equal(missing(own, *asked), {secret_hash, nothing}, "what the worker of the job has to bring")
        check_equal(missing(other, *asked), set(asked), "what another has to bring")
        check(not counted_on(secret_hash), "a worker counts on what it does not have")

        agents[own].PutBlob(blob_chunks(secret), timeout=CALL_S)
        check_equal(missing(own, *asked), {nothing}, "what it brought, it knows")
        check_equal(missing(other, secret_hash), {secret_hash}, "what another brought")
        check(counted_on(secret_hash), "no worker counts on what was said to be here")
        agents[own].PutBlob(blob_chunks(secret), timeout=CALL_S)  # once more
        check(counted_on(secret_hash), "who brings it again takes it from those who count on it")

        manifest = json.loads(cluster.client.outputs(learning.job)["checkpoints/checkpoint-4.json"])
        blocks = {bytes.fromhex(block["sha256"]) for block in manifest["blocks"]}
        check_equal(missing(own, *blocks), set(), "blocks of the job's checkpoint")
        check_equal(missing(other, *blocks), blocks, "blocks of another's checkpoint")
        worker = next(worker for worker in cluster.workers if worker.name == own)
        wait_for("the first is there", lambda: bytes_sent(worker, 4))
        learning.allow(10)
        wait_for("the second is there", lambda: bytes_sent(worker, 8))
        first, second = bytes_sent(worker, 4), bytes_sent(worker, 8)
        check(first > 2 * BLOCK_BYTES, f"bytes that were sent of the first: {first}")
        check(second < BLOCK_BYTES + 65536, f"bytes that were sent of the second: {second}")
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def session_of(port, context, session=None):
    """The TLS session of a new connection, once the server's first frame was read: tickets come before it; and
    whether `session` was resumed for it."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as plain:
        with context.wrap_socket(plain, session=session) as sock:
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
            check(sock.recv(9), "the server sends no frame")
            return sock.session, sock.session_reused


def test_no_session_is_resumed():
    """Its certificate's end would not be checked again, and each resumed session gives a ticket for another one."""
    with Cluster(workers=0, start=False) as cluster:
        pki = Pki(cluster.folder)
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", "--tls-dir", pki.issue("coordinator", "main")]
        cluster.coordinator.start()
        with open(cluster.coordinator.ready_file, encoding="ascii") as file:
            port = int(re.search(r"^127\.0\.0\.1:(\d+)$", file.read(), re.M)[1])
        anna = pki.issue("client", "anna")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_cert_chain(f"{anna}/cert.pem", f"{anna}/key.pem")
            context.load_verify_locations(f"{anna}/ca.pem")
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2"])
            session, _ = session_of(port, context)
            check(not session_of(port, context, session)[1], f"a session of {version.name} was resumed")


def test_files_that_are_named_are_read():
    """Also where the coordinator's address needs none; those of the environment may be for other coordinators."""
    with Cluster(workers=0) as cluster:
        for arguments in (("jobs", "--tls-dir", "/nosuch"), ("--tls-dir", "/nosuch", "jobs")):
            said = cluster.cadre(*arguments, status=1).stderr.decode()
            check_in("/nosuch/cert.pem", said, f"cadre {' '.join(arguments)}")
        environment = clean_environment() | {"CADRE_COORDINATOR": cluster.address, "CADRE_TLS_DIR": "/nosuch"}
        done = subprocess.run([program("cadre"), "jobs"], capture_output=True, timeout=HANG_S, check=False,
                              env=environment)
        check_equal(done.returncode, 0, f"CADRE_TLS_DIR and a Unix socket: {done.stderr.decode()}")


def test_pki():
    with Cluster(start=False) as cluster:
        pki = Pki(cluster.folder)
        key = os.path.join(pki.authority, "ca-key.pem")
        check_equal(os.stat(key).st_mode & 0o777, 0o600, "mode of the CA's key")
        check_in("exists", pki.cadre("init", pki.authority, status=1), "a second init")
        out = pki.issue("worker", "host-a", "--host", "host-a.example", "--host", "10.1.2.3")
        check_equal(os.stat(os.path.join(out, "key.pem")).st_mode & 0o777, 0o600, "mode of the key")
        check_in("--force", pki.cadre("issue", pki.authority, "worker", "host-a", "-o", out, status=1),
                 "a second issue")
        check_in("is no role", pki.cadre("issue", pki.authority, "boss", "a", "-o", out, status=2), "a wrong role")
        check_in("is no name", pki.cadre("issue", pki.authority, "worker", "a b", "-o", out, status=2), "a wrong name")
        check_in("fewer --days", pki.cadre("issue", pki.authority, "worker", "a", "-o", out + "2", "--days", "9000",
                                           status=1), "longer than the authority")
        files = [os.path.join(out, name) for name in ("cert.pem", "key.pem", "ca.pem")]
        said = pki.cadre("show", *files)
        check_equal(ageless(pki.cadre("show", out)), ageless(said), "cadre pki show of the folder")
        for part in ("role         worker", "name         host-a", "private key", "authority    Cadre CA"):
            check_in(part, said, "cadre pki show")
        os.chmod(files[1], 0o640)
        os.chown(files[1], os.getuid(), os.getgid())
        before = open(files[0], encoding="ascii").read()
        pki.issue("worker", "host-a", "--force")
        check(open(files[0], encoding="ascii").read() != before, "the renewed certificate is the old one")
        check_equal(os.stat(files[1]).st_mode & 0o777, 0o640, "mode of the renewed key")
        check(not [name for name in os.listdir(out) if name not in ("cert.pem", "key.pem", "ca.pem")], "left over")
        checked = subprocess.run(["openssl", "verify", "-x509_strict", "-CAfile", files[2], files[0]],
                                 capture_output=True, check=False, text=True)
        check_equal(checked.returncode, 0, f"openssl verify: {checked.stdout}{checked.stderr}")
        os.chmod(files[1], 0o644)
        check_in("mode 0644", pki.cadre("show", files[1], status=1), "a key for everybody")


if __name__ == "__main__":
    run(globals())
