# SPDX-License-Identifier: Apache-2.0
"""common/etcd against real etcd: what is applied is applied once, whatever is killed or stopped, and each thing that is
wrong with an etcd is a sentence."""
import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading

from etcds import Certificates, Etcds, HOST, free_ports, need_etcd
from testing import Failure, HANG_S, SLOW, check, check_equal, check_in, run, wait_for

OK, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED = 0, 4, 7, 8
INVALID_ARGUMENT, FAILED_PRECONDITION, UNAVAILABLE, UNAUTHENTICATED = 3, 9, 14, 16

PATIENT_MS = int(120000 * SLOW)  # for calls that are to succeed
SHORT_MS = int(1000 * SLOW)      # for calls that may not be answered
KIB = 1024


class Driver:
    """etcd_driver: a command, and the line that answers it."""

    def __init__(self, address, *options):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", os.environ["CADRE_TEST_ETCD_DRIVER"],
                                         address, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers = queue.Queue()
        self.watched = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.process.stdout:
            what, *fields = text.rstrip("\n").split("\t")
            answer = dict(field.split("=", 1) for field in fields)
            answer["what"], answer["status"] = what, int(answer.get("status", 0))
            (self.watched if what == "watch" else self.answers).put(answer)

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        try:
            return self.answers.get(timeout=HANG_S)
        except queue.Empty as empty:
            raise Failure(f"no answer; the driver's status is {self.process.poll()}") from empty

    def ask(self, command):
        self.send(command)
        return self.answer()

    def txn(self, name, size=100, ms=PATIENT_MS):
        return self.ask(f"txn {name} {size} {ms}")

    def range(self, key, end="-", limit=100, ms=PATIENT_MS):
        return self.ask(f"range {key} {end} {limit} {ms}")

    def keys(self, key, end="-", limit=100):
        return [one.split(":")[0] for one in self.range(key, end, limit)["keys"].split(",") if one]

    def look(self, status):
        """The next notice of the watch with this status; others before it are skipped."""
        while True:
            try:
                notice = self.watched.get(timeout=HANG_S)
            except queue.Empty as empty:
                raise Failure(f"no notice with status {status}") from empty
            if notice["status"] == status:
                return notice

    def endpoint(self):
        return int(self.ask("endpoint")["index"])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # it may have ended
        check_equal(self.process.wait(timeout=HANG_S), 0, "exit status of the driver")


def good(answer):
    check_equal(answer["status"], OK, answer["text"])
    return answer


def fails(answer, status, *parts):
    check_equal(answer["status"], status, answer["text"])
    for part in parts:
        check_in(part, answer["text"], "what it says")
    return answer


def until_applied(driver, name):
    """As a caller does it: the same transaction again until it is answered. The head must be `name` then."""
    attempts = []

    def applied():
        answer = driver.txn(name, ms=SHORT_MS)
        attempts.append(answer)
        if answer["status"] != OK:
            check(answer["status"] in (UNAVAILABLE, DEADLINE_EXCEEDED), answer["text"])
            return False
        check(answer["succeeded"] == "1" or answer.get("head") == name,
              f"{name} is not applied, and the head is {answer.get('head')}")
        return True

    wait_for(f"the transaction {name} is applied", applied)
    return attempts


def check_once(driver, names):
    """Each transaction is in the store once: `head` has as many versions as there were."""
    pair = driver.range("head")["keys"].split(":")
    check_equal(int(pair[2]), len(names), "puts of head")
    seen = driver.range("log/", "log0", 1000)["keys"].split(",")
    check_equal([(one.split(":")[0], one.split(":")[2]) for one in seen],
                [(f"log/{name}", "1") for name in sorted(names)], "the log's keys and versions")


# ---- one member ----

def test_transactions_reads_and_a_watch():
    with Etcds(1) as etcds, Driver(etcds.address("site/cadre")) as driver, \
            Driver(etcds.address("site/cadre")) as other:
        other.send("watch head")
        other.look(OK)
        first = good(driver.txn("a00", 1000 * KIB))
        check_equal(first["succeeded"], "1", "the first one")
        other.look(OK)
        lost = good(other.txn("b00"))  # it has not seen the head
        check_equal((lost["succeeded"], lost["head"], lost["version"]), ("0", "a00", "1"), "the guard")
        check_equal(lost["cluster"], first["cluster"], "the cluster's id")
        check_equal(good(other.txn("b00"))["succeeded"], "1", "with the head that was read")
        for i in range(1, 6):
            other.send(f"txn b0{i} {100 * i} {PATIENT_MS}")
            good(other.answer())
        page = good(driver.range("log/", "log0", 3))
        check_equal((page["more"], page["count"]), ("1", "3"), "the first page")
        check_in("log/a00:1024000:1,log/b00:", page["keys"], "keys, sizes, versions")
        rest = good(driver.range("log/b02", "log0", 100))
        check_equal((rest["more"], rest["count"]), ("0", "4"), "the last page")
        status = good(driver.ask(f"status 0 {PATIENT_MS}"))
        check_equal((status["version"][:2], status["leader"], status["no_space"], status["corrupt"]),
                    ("3.", "1", "0", "0"), "the member")
        check_in("site/cadre/log/a00\n", etcds.ctl("get", "--prefix", "--keys-only", "site/cadre/"), "keys in etcd")
        fails(driver.txn("large", 1100 * KIB), INVALID_ARGUMENT, "make two of it")


def test_limits_of_an_etcd():
    with Etcds(1, "--max-request-bytes", "10000", "--max-txn-ops", "1") as etcds, \
            Driver(etcds.address("cadre")) as driver:
        fails(driver.txn("a"), INVALID_ARGUMENT, "--max-txn-ops=128")
    with Etcds(1, "--max-request-bytes", "10000") as etcds, Driver(etcds.address("cadre")) as driver:
        fails(driver.txn("a", 20000), INVALID_ARGUMENT, "--max-request-bytes=1572864")
        fails(driver.txn("a", 1000 * KIB), INVALID_ARGUMENT, "--max-request-bytes=1572864")
        good(driver.txn("a", 5000))


def test_a_full_database():
    quota = 2 ** 21
    with Etcds(1, "--quota-backend-bytes", str(quota)) as etcds, Driver(etcds.address("cadre")) as driver:
        answer = next(answer for answer in (driver.ask(f"force {i % 2} {200 * KIB} {PATIENT_MS}") for i in range(100))
                      if answer["status"] != OK)
        fails(answer, RESOURCE_EXHAUSTED, "alarm NOSPACE", "etcdctl alarm disarm")
        check_equal(answer["unknown"], "0", "it was not applied")
        check_equal(good(driver.ask(f"status 0 {PATIENT_MS}"))["no_space"], "1", "the alarm")
        good(driver.range("head"))
        revision = str(json.loads(etcds.ctl("get", "cadre/head", "-w", "json"))["header"]["revision"])
        etcds.ctl("compact", "--physical", revision)
        etcds.ctl("defrag")
        etcds.ctl("alarm", "disarm")
        good(driver.ask(f"force 0 1000 {PATIENT_MS}"))
        check_equal(good(driver.ask(f"status 0 {PATIENT_MS}"))["no_space"], "0", "the alarm")


# ---- three members ----

def test_members_are_killed():
    with Etcds(3) as etcds, Driver(etcds.address("cadre")) as driver:
        names = []
        for round_ in range(3):
            names.append(f"{len(names):02}")
            until_applied(driver, names[-1])
            member = etcds.members[driver.endpoint()] if round_ != 1 else etcds.leader()
            member.kill()
            for _ in range(5):
                names.append(f"{len(names):02}")
                until_applied(driver, names[-1])
            member.start()
            wait_for("it is back", member.is_healthy)
        check_once(driver, names)


def test_a_stopped_member_applies_late_or_never():
    """Its kernel takes the transaction; it reads it after another member has applied the same one."""
    with Etcds(3) as etcds, Driver(etcds.address("cadre")) as driver:
        good(driver.txn("00"))
        stopped = etcds.members[driver.endpoint()]
        stopped.stop_clock()
        answer = fails(driver.txn("01", ms=SHORT_MS), DEADLINE_EXCEEDED, "transaction: no answer within",
                       "send the same one again")
        check_equal(answer["unknown"], "1", "the outcome")
        check(driver.endpoint() != etcds.members.index(stopped), "the next endpoint is used")
        until_applied(driver, "01")
        stopped.go_on()
        wait_for("it is back", stopped.is_healthy)
        until_applied(driver, "02")
        check_once(driver, ["00", "01", "02"])


def test_no_quorum():
    with Etcds(3) as etcds, Driver(etcds.address("cadre")) as driver:
        good(driver.txn("00"))
        followers = etcds.followers()
        for member in followers:
            member.kill()
        leader = etcds.leader()
        index = etcds.members.index(leader)

        def says_it():
            answer = driver.txn("01", ms=int(15000 * SLOW))
            check(answer["status"] in (UNAVAILABLE, DEADLINE_EXCEEDED), answer["text"])
            return answer["endpoint"] == leader.endpoint() and "members" in answer["text"]

        wait_for("the member that is left says that it has no quorum", says_it)
        good(driver.ask(f"status {index} {PATIENT_MS}"))  # it needs none
        for member in followers:
            member.start()
        until_applied(driver, "01")
        check_once(driver, ["00", "01"])


class Valve:
    """A port that passes on to a member, and whose answers can be held back for good."""

    def __init__(self, member):
        self.member, self.open = member, True
        self.server = socket.create_server((HOST, 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                one = self.server.accept()[0]
                other = socket.create_connection((HOST, self.member.client))
                for source, sink, answers in ((one, other, False), (other, one, True)):
                    threading.Thread(target=self.pump, args=(source, sink, answers), daemon=True).start()

    def pump(self, source, sink, answers):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.open or not answers:
                    sink.sendall(data)

    def close(self):
        self.server.close()


def test_an_answer_is_lost():
    with Etcds(2) as etcds:
        valve = Valve(etcds.members[0])
        address = f"etcd://{HOST}:{valve.port},{etcds.members[1].endpoint()}/cadre"
        with Driver(address) as driver, Driver(etcds.address("cadre", etcds.members[1:])) as other:
            good(driver.txn("00"))
            valve.open = False
            driver.send(f"txn 01 100 {SHORT_MS}")
            wait_for("it is applied", lambda: "log/01" in other.keys("log/", "log0"))
            answer = fails(driver.answer(), DEADLINE_EXCEEDED)
            check_equal(answer["unknown"], "1", "the outcome")
            again = good(driver.txn("01"))  # the same one, at the other member
            check_equal((again["succeeded"], again["head"]), ("0", "01"), "it finds its own head")
            good(driver.txn("02"))
            check_once(other, ["00", "01", "02"])
        valve.close()


def test_a_watch_outlives_its_member():
    with Etcds(3) as etcds, Driver(etcds.address("cadre")) as driver, Driver(etcds.address("cadre")) as other:
        driver.send("watch head")
        driver.look(OK)
        etcds.members[0].kill()  # both use it
        check_in("watch: ", driver.look(UNAVAILABLE)["text"], "why it broke")
        driver.look(OK)
        until_applied(other, "00")
        driver.look(OK)
        check_equal(driver.keys("log/", "log0"), ["log/00"], "what is read")


def test_two_clusters():
    with Etcds(1) as one, Etcds(1) as other:
        address = f"etcd://{one.members[0].endpoint()},{other.members[0].endpoint()}/cadre"
        with Driver(address) as driver:
            good(driver.txn("00"))
            one.members[0].kill()
            wait_for("the other is asked", lambda: driver.txn("01", ms=SHORT_MS)["status"] == FAILED_PRECONDITION)
            answer = fails(driver.ask(f"status 1 {PATIENT_MS}"), FAILED_PRECONDITION, "it is of the etcd cluster")
            check_equal(answer["unknown"], "0", "nothing was sent")


# ---- logins ----

def with_users(etcds):
    etcds.ctl("user", "add", "root:rootpw")
    etcds.ctl("user", "grant-role", "root", "root")
    etcds.ctl("role", "add", "cadre")
    etcds.ctl("role", "grant-permission", "cadre", "--prefix=true", "readwrite", "cadre/")
    etcds.ctl("user", "add", "anna:annapw")
    etcds.ctl("user", "grant-role", "anna", "cadre")
    etcds.ctl("auth", "enable")


def test_logins():
    with Etcds(1, "--auth-token-ttl", "1", "--log-level", "debug") as etcds:
        member = etcds.members[0]
        with Driver(etcds.address("cadre"), "anna", "annapw") as driver:
            good(driver.txn("00"))  # before there are users: the login is off
            with_users(etcds)
            good(driver.txn("01"))
            wait_for("the token has expired", lambda: "deleted a simple token" in member.log())
            good(driver.txn("02"))
            member.kill()  # its tokens are in memory
            member.start()
            until_applied(driver, "03")
            check_once(driver, ["00", "01", "02", "03"])
            driver.send("watch head")
            driver.look(OK)
        with Driver(etcds.address("cadre")) as driver:
            fails(driver.txn("x"), UNAUTHENTICATED, "it asks for a login: give a user and a password")
        with Driver(etcds.address("cadre"), "anna", "wrong") as driver:
            fails(driver.txn("x"), UNAUTHENTICATED, 'the user "anna" does not exist or has another password')
        with Driver(etcds.address("cadre"), "bert", "bertpw") as driver:
            fails(driver.txn("x"), UNAUTHENTICATED, 'the user "bert" does not exist')
        with Driver(etcds.address("other"), "anna", "annapw") as driver:
            fails(driver.txn("x"), PERMISSION_DENIED, 'the user "anna" may not read and write other/',
                  "etcdctl role grant-permission")
            fails(driver.range("head"), PERMISSION_DENIED, "other/")
            driver.send("watch head")
            fails(driver.look(PERMISSION_DENIED), PERMISSION_DENIED, "other/")


# ---- TLS ----

@contextlib.contextmanager
def certificates():
    need_etcd()
    folder = tempfile.mkdtemp(prefix="cadre-etcd-tls-")
    try:
        yield Certificates(folder, "etcd-ca"), Certificates(folder, "other-ca")
    finally:
        shutil.rmtree(folder)


def explained(driver, status, *parts):
    """The sentence is there when the reason has been looked for, which the first call may not wait for."""
    wait_for(f"{parts[0]}", lambda: parts[0] in driver.range("head", ms=int(5000 * SLOW))["text"])
    fails(driver.range("head", ms=int(5000 * SLOW)), status, *parts)


def test_tls():
    with certificates() as (ours, other), Etcds(1, tls=ours.server()) as etcds:
        address = etcds.address("cadre")
        with Driver(address, "--ca", ours.ca) as driver:
            good(driver.txn("00"))
        with Driver(address, "--ca", other.ca) as driver:
            explained(driver, UNAUTHENTICATED, 'is of the CA "etcd-ca", which is not that of', other.ca)
        with Driver(address) as driver:
            explained(driver, UNAUTHENTICATED, "requires TLS: give the file of its CA")
        with Etcds(1) as plain, Driver(plain.address("cadre"), "--ca", ours.ca) as driver:
            explained(driver, UNAVAILABLE, "does not answer a TLS handshake: is it etcd with TLS?")
    with certificates() as (ours, _), Etcds(1, tls=ours.server("named", "DNS:etcd.example")) as etcds, \
            Driver(etcds.address("cadre"), "--ca", ours.ca) as driver:
        explained(driver, UNAUTHENTICATED, '("named") does not name the host "127.0.0.1"')


def test_tls_to_localhost():
    """A certificate is to have the name that was written: "localhost" is another one than the address that it is."""
    with certificates() as (ours, _):
        for names, good_at, bad_at in (("DNS:localhost", "localhost", HOST), (f"IP:{HOST}", HOST, "localhost")):
            with Etcds(1, tls=ours.server(good_at, names)) as etcds:
                address = etcds.address("cadre")
                with Driver(address.replace(HOST, good_at), "--ca", ours.ca) as driver:
                    good(driver.txn("00"))
                with Driver(address.replace(HOST, bad_at), "--ca", ours.ca) as driver:
                    explained(driver, UNAUTHENTICATED, f'("{good_at}") does not name the host "{bad_at}"')


def test_tls_with_certificates_of_clients():
    with certificates() as (ours, other), Etcds(1, tls=ours.server(), client_ca=ours.ca) as etcds:
        address, anna, eve = etcds.address("cadre"), ours.client("anna"), other.client("eve")

        def files(folder):
            return ["--cert", os.path.join(folder, "cert.pem"), "--key", os.path.join(folder, "key.pem")]

        with Driver(address, "--ca", ours.ca, *files(anna)) as driver:
            good(driver.txn("00"))
        with Driver(address, "--ca", ours.ca) as driver:
            explained(driver, UNAUTHENTICATED, "demands a certificate of its clients, and none is given")
        with Driver(address, "--ca", ours.ca, *files(eve)) as driver:
            explained(driver, UNAUTHENTICATED, "eve", "of", "other-ca")


# ---- what is no etcd ----

def test_no_etcd():
    need_etcd()
    closed = free_ports(1)[0]
    with Driver(f"etcd://{HOST}:{closed}/cadre") as driver:
        answer = fails(driver.txn("x"), UNAVAILABLE, f"etcd at {HOST}:{closed}, transaction: ")
        check_equal(answer["unknown"], "0", "nothing was sent")
    server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "python3", "-u", "-m", "http.server", "--bind", HOST,
                               "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = server.stdout.readline().split(" port ")[1].split()[0]
        with Driver(f"etcd://{HOST}:{port}/cadre") as driver:
            answer = driver.txn("x")
            check(answer["status"] in (UNAVAILABLE, FAILED_PRECONDITION), answer["text"])
            check_in(f"etcd at {HOST}:{port}, transaction: ", answer["text"], "what it says")
            check_equal(answer["unknown"], "0", "nothing was sent")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    run(dict(globals()))
