# SPDX-License-Identifier: Apache-2.0
"""common/storage before a real store, and before the proxy: what is read and written is right to the last byte whatever
the network does, and each thing that is wrong is a sentence."""
import contextlib
import datetime
import http.server
import json
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from chosen import PAGE, chosen_store, fresh_bucket
from etcds import Certificates
from proxy import Proxy
from testing import Failure, HANG_S, SLOW, check, check_equal, check_in, run, wait_for

OK, INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = \
    0, 3, 5, 7, 9, 14, 15, 16
CANCELLED, OUT_OF_RANGE = 1, 11
MIB = 1 << 20
PART = 8 * MIB
SHORT_MS = int(800 * SLOW)
DIFFICULT = ["a b", "a+b", "a%20b", "a=b&c?d#e", "über/雪/😀", "..", "a/../b", "a/./b", "'\"<>&;,:@$!*()[]{}|\\^~`",
             "x" * 1024]


class Driver:
    """storage_driver: a command, and what answers it."""

    def __init__(self, folder, variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.folder, self.files = folder, 0
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", os.environ["CADRE_TEST_STORAGE_DRIVER"]],
                                        env={**clean, "HOME": folder, **variables}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.answers = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.opened = self.answer()

    def read(self):
        for text in self.process.stdout:
            self.answers.put(dict(field.split("=", 1) for field in text.rstrip("\n").split("\t")))
        self.answers.put(None)

    def send(self, *fields):
        self.process.stdin.write("\t".join(map(str, fields)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        try:
            answer = self.answers.get(timeout=HANG_S)
        except queue.Empty as empty:
            raise Failure("no answer of the driver") from empty
        check(answer is not None, "the driver ended")
        answer["status"] = int(answer["status"])
        return answer

    def ask(self, *fields):
        self.send(*fields)
        return self.answer()

    def do(self, *fields):
        """What must work."""
        answer = self.ask(*fields)
        check_equal(answer["status"], OK, f"{fields}: {answer['message']}")
        return answer

    def refused(self, status, parts, *fields):
        """What must not, and the sentence for it, in which `parts` are."""
        answer = self.ask(*fields)
        check_equal(answer["status"], status, f"{fields}: {answer['message']}")
        for part in parts:
            check_in(part, answer["message"], f"the sentence of {fields}")
        return answer["message"]

    def file(self, body=None):
        """A file's path, with this in it."""
        self.files += 1
        path = os.path.join(self.folder, f"f{self.files}")
        if body is not None:
            with open(path, "wb") as file:
                file.write(body)
        return path

    def put(self, path, body):
        self.do("put", path, self.file(body))

    def get(self, path, piece=MIB, threads=1):
        into = self.file()
        self.do("fetch", path, into, piece, threads)
        with open(into, "rb") as file:
            return file.read()

    def list(self, folder, starts="", deep=False, most=10 ** 9):
        """The paths beneath it."""
        answer = self.do("list", folder, starts, int(deep), most)
        return [urllib.parse.unquote(entry.split("|")[0]) for entry in answer["keys"].split(" ") if entry]

    def end(self):
        self.process.stdin.close()
        check_equal(self.process.wait(HANG_S), 0, "the driver's end")


@contextlib.contextmanager
def driver(**variables):
    """One with the settings of the writer, but for those that are given."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        one = Driver(folder, {**chosen_store().variables(), **variables})
        try:
            yield one
            one.end()
        finally:
            one.process.kill()
            one.process.wait()


@contextlib.contextmanager
def proxied(**named):
    with Proxy(chosen_store().endpoint, **named) as proxy, driver(AWS_ENDPOINT_URL=proxy.endpoint) as one:
        yield proxy, one


def test_objects():
    fresh_bucket("client-objects")
    with driver() as one:
        for size in (0, 1, 100000, 9 * MIB + 7):
            body = os.urandom(size)
            path = f"s3://client-objects/of/{size}"
            one.put(path, body)
            check_equal(int(one.do("stat", path)["bytes"]), size, "the size")
            check_equal(one.get(path, threads=4) == body, True, f"{size} bytes")
        one.put(path, b"again")
        check_equal(one.get(path), b"again", "an object that was written over")
        check_equal(one.do("put-if-absent", path, one.file(b"no"))["was_there"], "1", "what was there")
        check_equal(one.get(path), b"again", "what was there stays")
        check_equal(one.do("put-if-absent", path + "new", one.file(b"yes"))["was_there"], "0", "what was not there")
        check_equal(one.get(path + "new"), b"yes", "what was not there")
        one.do("remove", path)
        one.do("remove", path)
        one.refused(NOT_FOUND, [path], "stat", path)


def test_difficult_keys():
    fresh_bucket("client-difficult")
    with driver() as one:
        for number, key in enumerate(DIFFICULT):
            one.put(f"s3://client-difficult/{key}", str(number).encode())
        for number, key in enumerate(DIFFICULT):
            check_equal(one.get(f"s3://client-difficult/{key}"), str(number).encode(), f"the object {key[:50]}")
        check_equal(one.list("s3://client-difficult/", deep=True),
                    [f"s3://client-difficult/{key}" for key in sorted(DIFFICULT, key=str.encode)], "the list")
        one.refused(INVALID_ARGUMENT, ["1,024"], "stat", "s3://client-difficult/" + "x" * 1025)


def test_lists():
    bucket = fresh_bucket("client-lists")
    start = "s3://client-lists/"
    keys = [f"a/{i:04}" for i in range(2 * PAGE + 30)] + ["a/b/c", "b", "c/d"]
    for key in keys:
        bucket.put(key, b"")
    with driver() as one:
        check_equal(one.list(start, deep=True), [start + key for key in sorted(keys)], "all, in several pages")
        check_equal(one.list(start), [start + "a/", start + "b", start + "c/"], "one level")
        check_equal(one.list(start + "a/", "b"), [start + "a/b/"], "one level of a folder, by its start")
        check_equal(one.list(start + "a/", "000", deep=True), [start + key for key in keys[:10]], "by their start")
        check_equal(one.list(start, deep=True, most=3), [start + key for key in keys[:3]], "three")
        check_equal(one.list(start + "none/"), [], "an empty one")


def test_uploads():
    bucket = fresh_bucket("client-uploads")
    body = os.urandom(2 * PART + 12345)
    with driver() as one:
        one.do("upload", "s3://client-uploads/big one", one.file(body), PART, 3)
        check_equal(one.get("s3://client-uploads/big one", threads=4) == body, True, "what three threads sent")
        check_equal(bucket.uploads(), [], "uploads that are left")
        for name in ("a/1", "a/2", "b/3"):
            one.do("begin", f"s3://client-uploads/{name}")
            one.do("leave")
        check_equal(one.do("clear", "s3://client-uploads/a/")["count"], "2", "uploads that were ended")
        check_equal([key for key, _ in bucket.uploads()], ["b/3"], "the other stays")


def test_uploads_by_several_processes():
    bucket = fresh_bucket("client-joined")
    path = "s3://client-joined/a b"
    bodies = [os.urandom(PART), os.urandom(PART), os.urandom(77)]
    with driver() as one, driver() as two:
        name = one.do("begin", path)["name"]
        for number, body, who in ((1, os.urandom(PART), two), (3, bodies[2], two), (1, bodies[0], one)):
            who.do("join", path, name, number, who.file(body))
        two.refused(NOT_FOUND, [path], "stat", path)
        two.do("join", path, name, 2, two.file(bodies[1]))
        one.do("finish", 3)
        check_equal(two.get(path, threads=2) == b"".join(bodies), True, "what both sent")
        check(two.ask("join", path, name, 4, two.file(b"late"))["status"] in (OK, NOT_FOUND), "a part after the end")
        check_equal(two.get(path, threads=2) == b"".join(bodies), True, "what both sent, after a part that is late")
        name = one.do("begin", path)["name"]
        two.do("join", path, name, 2, two.file(bodies[1]))
        one.refused(DATA_LOSS, [path], "finish", 2)
        check_equal(two.get(path, threads=2) == b"".join(bodies), True, "what was there before one without a part")
        check_equal(bucket.uploads(), [], "uploads that are left")


def test_an_object_that_changes():
    bucket = fresh_bucket("client-changes")
    bucket.put("it", b"old bytes")
    with driver() as one:
        one.do("open", 1, "s3://client-changes/it")
        one.do("part", 1, 0, 3, one.file())
        bucket.put("it", b"new bytes")
        one.refused(DATA_LOSS, ["s3://client-changes/it"], "part", 1, 0, 3, one.file())
        one.do("close", 1)
        one.do("open", 1, "s3://client-changes/it")
        one.refused(OUT_OF_RANGE, ["s3://client-changes/it"], "part", 1, 5, 100, one.file())
        one.do("close", 1)


def test_faults_that_pass():
    """A tenth of all requests goes wrong, in each way that may pass; nothing is wrong in the end."""
    bucket = fresh_bucket("client-faults")
    for i in range(15):
        bucket.put(f"many/{i:02}", str(i).encode())
    body = os.urandom(10 * MIB + 3)
    kinds = ("500", "503", "429", "refused", "lost", "cut", "reset", "longer", "shorter", "html-502")
    with proxied(seed=28) as (proxy, one):
        proxy.slow_bytes_s = 10 * MIB
        proxy.plan.draw(**dict.fromkeys(kinds, 1))
        one.do("upload", "s3://client-faults/big", one.file(body), PART, 3)
        check_equal(one.get("s3://client-faults/big", 256 << 10, 8) == body, True, "what was read")
        for i in range(15):
            path = f"s3://client-faults/many/{i:02}"
            check_equal(one.get(path), str(i).encode(), path)
            one.put(path, b"new")
            check_equal(one.get(path), b"new", f"{path} after it was written")
        check_equal(len(one.list("s3://client-faults/many/")), 15, "the list")
        counts = proxy.counts()["fault"]
        check(len(counts) > len(kinds) // 2, f"faults that were met: {counts}")
        print(f"    faults: {counts}", flush=True)
    check_equal(bucket.uploads(), [], "uploads that are left")


def test_answers_that_are_lost():
    fresh_bucket("client-lost")
    with proxied() as (proxy, one):
        proxy.plan.next("lost", operation="put")
        answer = one.do("put-if-absent", "s3://client-lost/token", one.file(b"mine"))
        check_equal(one.get("s3://client-lost/token"), b"mine", f"what was put, said {answer}")
        body = os.urandom(PART + 1)
        proxy.plan.next("lost", operation="finish-upload")
        one.do("upload", "s3://client-lost/big", one.file(body), PART, 2)
        check_equal(one.get("s3://client-lost/big") == body, True, "an upload whose end was answered to no avail")
        proxy.plan.next("late-error")
        one.do("upload", "s3://client-lost/big2", one.file(body), PART, 2)
        check_equal(one.get("s3://client-lost/big2") == body, True, "an upload whose end failed once, by a 200")
        proxy.plan.next("lost", operation="begin-upload")
        one.do("upload", "s3://client-lost/big3", one.file(body), PART, 2)


def test_what_is_refused():
    bucket = fresh_bucket("client-closed")
    bucket.put("it", b"secret")
    store = chosen_store()
    path = "s3://client-closed/it"
    with driver() as one:
        one.refused(NOT_FOUND, ["s3://client-none/it"], "stat", "s3://client-none/it")
        one.refused(NOT_FOUND, ["client-none"], "put", "s3://client-none/it", one.file(b""))
        one.refused(NOT_FOUND, ["client-none"], "list", "s3://client-none/", "", 1, 9)
        one.refused(NOT_FOUND, ["client-none"], "begin", "s3://client-none/it")
        one.refused(NOT_FOUND, [path + "s"], "stat", path + "s")
        one.refused(INVALID_ARGUMENT, [], "stat", "s3://Client_Closed/it")
        one.refused(INVALID_ARGUMENT, [], "stat", "s3://client-closed/")
    with driver(AWS_ACCESS_KEY_ID=store.reader.access_key, AWS_SECRET_ACCESS_KEY=store.reader.secret_key) as one:
        one.refused(PERMISSION_DENIED, [path, "s3:GetObject"], "stat", path)
        one.refused(PERMISSION_DENIED, [path, "s3:PutObject"], "put", path, one.file(b""))
        one.refused(PERMISSION_DENIED, ["s3:ListBucket"], "list", "s3://client-closed/", "", 1, 9)
        one.refused(PERMISSION_DENIED, [path, "s3:PutObject"], "begin", path)
        one.refused(PERMISSION_DENIED, [path, "s3:DeleteObject"], "remove", path)
    with driver(AWS_SECRET_ACCESS_KEY="wrong-secret") as one:
        for fields in (("stat", path), ("put", path, one.file(b"")), ("list", "s3://client-closed/", "", 1, 9)):
            text = one.refused(UNAUTHENTICATED, [], *fields)
            check("wrong-secret" not in text, f"a secret is shown: {text}")
    with driver(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="") as one:
        one.refused(UNAUTHENTICATED, ["AWS_ACCESS_KEY_ID"], "stat", path)
    with driver(AWS_ENDPOINT_URL=f"{store.endpoint}/not/here") as one:
        one.refused(NOT_FOUND, [path, f"{store.endpoint}/not/here"], "stat", path)
    with driver(AWS_REGION="mars-1") as one:  # a store that refuses it says which is right
        one.do("stat", path)
        one.do("list", "s3://client-closed/", "", 1, 9)


def test_answers_of_other_servers():
    fresh_bucket("client-others").put("it", b"here")
    path = "s3://client-others/it"
    with proxied() as (proxy, one):
        one.do("deadline", SHORT_MS)
        for kind, status, parts in [("expired", UNAUTHENTICATED, []), ("redirect", FAILED_PRECONDITION, ["ap-test-2"]),
                                    ("html", UNAVAILABLE, []), ("html-502", UNAVAILABLE, ["502"]),
                                    ("500", UNAVAILABLE, ["500"]), ("503", UNAVAILABLE, ["503"])]:
            for fields in (("list", "s3://client-others/", "", 1, 9), ("stat", path), ("put", path, one.file(b"new")),
                           ("put-if-absent", "s3://client-others/new", one.file(b"new"))):
                if (kind, fields[0]) == ("expired", "stat"):
                    continue  # an answer to HEAD has no body: it says nothing
                if fields[0].startswith("put") and kind not in ("html", "expired"):
                    continue  # as a list is refused, and each takes the deadline
                proxy.plan.clear()
                proxy.plan.next(kind, count=10 ** 6)
                one.refused(status, parts, *fields)
        proxy.plan.clear()
        proxy.plan.next("list-again", count=10 ** 6)
        one.refused(DATA_LOSS, ["client-others"], "list", "s3://client-others/", "", 1, 10 ** 6)
        proxy.plan.clear()
        proxy.plan.next("list-endless", count=10 ** 6)
        check_equal(len(one.list("s3://client-others/", deep=True, most=1000)), 1000, "of a list without an end")


def test_clocks():
    fresh_bucket("client-clocks").put("it", b"here")
    with proxied() as (proxy, one):
        one.do("deadline", SHORT_MS)
        proxy.clock_ahead_s = 3600
        one.refused(FAILED_PRECONDITION, ["clock"], "list", "s3://client-clocks/", "", 1, 9)


class Credentials(http.server.BaseHTTPRequestHandler):
    """What a container's host gives its programs, for an hour; counted."""

    given = 0

    def do_GET(self):
        type(self).given += 1
        writer = chosen_store().writer
        ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        body = json.dumps({"AccessKeyId": writer.access_key, "SecretAccessKey": writer.secret_key,
                           "Token": f"token{self.given}", "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_credentials_that_end():
    fresh_bucket("client-ends").put("it", b"here")
    path = "s3://client-ends/it"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Credentials) as server, \
            Proxy(chosen_store().endpoint) as proxy:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        with driver(AWS_ENDPOINT_URL=proxy.endpoint, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="",
                    AWS_CONTAINER_CREDENTIALS_FULL_URI=url) as one:
            one.do("open", 1, path)
            for i in range(3):
                one.do("part", 1, 0, 4, one.file())
            check_equal(Credentials.given, 1, "times that credentials were asked for")
            proxy.plan.next("expired", operation="get")
            one.do("part", 1, 0, 4, one.file())
            check_equal(Credentials.given, 2, "times, after they ended")
            one.do("close", 1)
        server.shutdown()


def test_stores_that_are_not_there():
    fresh_bucket("client-away").put("it", b"here")
    path = "s3://client-away/it"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with driver(AWS_ENDPOINT_URL=f"http://127.0.0.1:{taken.getsockname()[1]}") as one:
            one.do("deadline", SHORT_MS)
            one.refused(UNAVAILABLE, ["127.0.0.1"], "stat", path)
    with driver(AWS_ENDPOINT_URL="http://no-such-host.invalid") as one:
        one.do("deadline", SHORT_MS)
        one.refused(UNAVAILABLE, ["no-such-host.invalid"], "stat", path)
    with proxied() as (proxy, one):
        one.do("deadline", SHORT_MS)
        proxy.plan.next("stall", count=100, operation="get")
        one.do("open", 1, path)
        one.refused(UNAVAILABLE, [path], "part", 1, 0, 4, one.file())
        one.do("close", 1)


def test_a_call_that_is_stopped():
    fresh_bucket("client-stops").put("it", b"here")
    with proxied() as (proxy, one):
        one.do("open", 1, "s3://client-stops/it")
        proxy.plan.next("stall", count=100, operation="get")
        one.send("part", 1, 0, 4, one.file())
        wait_for("the read has begun", lambda: proxy.at_once == 1)
        one.process.send_signal(signal.SIGUSR1)
        answer = one.answer()
        check_equal(answer["status"], CANCELLED, answer["message"])
        one.refused(CANCELLED, [], "stat", "s3://client-stops/it")
        one.do("close", 1)


def test_tls():
    fresh_bucket("client-tls").put("it", b"here")
    path = "s3://client-tls/it"
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        foreign, other = Certificates(folder, "foreign"), Certificates(folder, "other")
        with Proxy(chosen_store().endpoint, tls=foreign.server()) as proxy:
            with driver(AWS_ENDPOINT_URL=proxy.endpoint, AWS_CA_BUNDLE=foreign.ca) as one:
                check_equal(one.get(path), b"here", "by TLS")
            with driver(AWS_ENDPOINT_URL=proxy.endpoint) as one:
                one.refused(FAILED_PRECONDITION, ["AWS_CA_BUNDLE"], "stat", path)
            with driver(AWS_ENDPOINT_URL=proxy.endpoint, AWS_CA_BUNDLE=other.ca) as one:
                one.refused(FAILED_PRECONDITION, ["AWS_CA_BUNDLE"], "stat", path)
        with Proxy(chosen_store().endpoint, tls=foreign.server("elsewhere", "DNS:elsewhere.example")) as proxy, \
                driver(AWS_ENDPOINT_URL=proxy.endpoint, AWS_CA_BUNDLE=foreign.ca) as one:
            one.refused(FAILED_PRECONDITION, ["127.0.0.1"], "stat", path)


if __name__ == "__main__":
    run(globals())
