# SPDX-License-Identifier: Apache-2.0
"""The proxy before a real store: without faults all is as without it, and each fault is what it says."""
import contextlib
import datetime
import hashlib
import http.client
import os
import socket
import ssl
import tempfile
import time

from chosen import chosen_store, fresh_bucket
from etcds import Certificates
from faults import CHANGED, INSTEAD, Plan, REGION, Request
from proxy import Proxy
from s3 import PART_BYTES, S3Error, signed
from testing import Failure, check, check_equal, check_in, run, wait_for

BODY = bytes(range(256)) * 400


@contextlib.contextmanager
def proxied(name, **named):
    """A bucket with BODY as "it", behind a proxy."""
    fresh_bucket(name).put("it", BODY)
    store = chosen_store()
    with Proxy(store.endpoint, **named) as proxy:
        yield proxy, store.client(endpoint=proxy.endpoint).bucket(name)


def refused(function, *arguments, **named):
    try:
        found = function(*arguments, **named)
    except S3Error as error:
        return error
    raise Failure(f"not refused: {found!r}")


def broken(function, *arguments, **named):
    """The exception of a call whose connection breaks."""
    try:
        found = function(*arguments, **named)
    except (OSError, http.client.HTTPException) as error:
        return error
    raise Failure(f"the connection is whole: {found!r}")


def status_of(proxy, operation):
    return next(record.status for record in proxy.records if record.operation == operation)


def test_what_is_held_comes_late():
    """Over what was written meanwhile, also when the one who sent it is gone."""
    with proxied("held") as (proxy, bucket):
        proxy.plan.next("held", operation="put")
        with socket.create_connection(("127.0.0.1", proxy.port)) as sender:
            headers = signed("PUT", "/held/it", {}, {"host": f"127.0.0.1:{proxy.port}",
                                                     "x-amz-content-sha256": hashlib.sha256(b"old").hexdigest()},
                             chosen_store().writer, chosen_store().region, datetime.datetime.now(datetime.timezone.utc))
            sender.sendall("\r\n".join(["PUT /held/it HTTP/1.1", "content-length: 3",
                                        *(f"{name}: {value}" for name, value in headers.items()), "", "old"]).encode())
            wait_for("it is held", proxy.held_count)
        bucket.put("it", b"new")
        check_equal(bucket.get("it"), b"new", "before it comes")
        proxy.let_go()
        wait_for("the store has it", lambda: status_of(proxy, "put"))
        check_equal((status_of(proxy, "put"), bucket.get("it")), (200, b"old"), "after it came")


def test_it_changes_nothing():
    with proxied("plain") as (proxy, bucket):
        check_equal(bucket.get("it"), BODY, "an object")
        check_equal(bucket.get("it", 1000, 1999), BODY[1000:2000], "a range")
        parts = [os.urandom(PART_BYTES), os.urandom(100)]
        upload = bucket.begin("big")
        bucket.finish("big", upload, [bucket.put_part("big", upload, n, part) for n, part in enumerate(parts, 1)])
        check_equal(bucket.get("big"), b"".join(parts), "what was uploaded in parts")
        check_equal([one.key for one in bucket.list()], ["big", "it"], "the list")
        check_equal(int(bucket.head("it")["content-length"]), len(BODY), "HEAD")
        check_equal(refused(bucket.get, "none").code, "NoSuchKey", "a refusal of the store")
        bucket.delete("big")
        counts = proxy.counts()
        check_equal(counts["operation"], {"get": 4, "begin-upload": 1, "put-part": 2, "finish-upload": 1, "list": 1,
                                          "head": 1, "delete": 1}, "requests")
        check_equal(proxy.down_of()["plain/it"], len(BODY) + 1000, "bytes asked of the store")
        check(counts["up"] >= PART_BYTES + 100, f"bytes given to the store: {counts['up']}")
        check_equal(counts["fault"], {}, "faults")
        check_equal(counts["connections"], 1, "connections")


def test_lists_that_lack_what_is_new():
    """What was there before is listed, what is put then is not, and all of it is read."""
    with proxied("old-lists") as (proxy, bucket):
        bucket.put("known", b"1")
        proxy.stop_lists()
        bucket.put("known", b"22")
        bucket.put("a new+one", b"333")
        upload = bucket.begin("big")
        bucket.finish("big", upload, [bucket.put_part("big", upload, 1, b"4444")])
        check_equal([(one.key, one.bytes) for one in bucket.list()], [("it", len(BODY)), ("known", 2)], "the list then")
        check_equal(bucket.get("a new+one"), b"333", "an object that is not listed")
        proxy.go_on_with_lists()
        check_equal([one.key for one in bucket.list()], ["a new+one", "big", "it", "known"], "the list afterwards")


def test_answers_instead_of_the_stores():
    wanted = {"500": (500, "InternalError"), "503": (503, "SlowDown"), "429": (429, "TooManyRequests"),
              "redirect": (301, "PermanentRedirect"), "expired": (400, "ExpiredToken"), "html-502": (502, "")}
    with proxied("instead") as (proxy, bucket):
        for kind, answer in wanted.items():
            proxy.plan.next(kind)
            error = refused(bucket.get, "it")
            check_equal((error.status, error.code), answer, kind)
            proxy.plan.next(kind)
            check_equal(refused(bucket.put, "other", BODY).status, answer[0], f"{kind} for a PUT")
            check_equal(bucket.get("it"), BODY, f"the connection after {kind}")
        proxy.plan.next("html")
        check_in(b"<html>", bucket.get("it"), "html")
        proxy.plan.next("redirect", operation="head")
        answer = bucket.store.send("HEAD", "/instead/it")
        check_equal((answer.status, answer.headers["x-amz-bucket-region"]), (301, REGION), "a redirect of a HEAD")
        proxy.plan.next("refused")
        broken(bucket.get, "it")
        check_equal(refused(bucket.get, "other").code, "NoSuchKey", "what the store was not asked for")
        check_equal(set(proxy.counts()["fault"]), set(INSTEAD) - {"list-again", "list-endless", "late-error"}, "faults")


def test_answers_that_are_changed():
    with proxied("changed") as (proxy, bucket):
        for kind in ("cut", "reset", "longer"):
            proxy.plan.next(kind)
            error = broken(bucket.get, "it")
            check_equal(isinstance(error, ConnectionResetError), kind == "reset", f"{kind}: {error!r}")
        proxy.plan.next("shorter")
        check_equal(bucket.get("it"), BODY[:len(BODY) // 2], "shorter")
        proxy.plan.next("flipped")
        found = bucket.get("it")
        check_equal((found[0], found[1:]), (BODY[0] ^ 1, BODY[1:]), "flipped")
        proxy.plan.next("extra")
        check_equal(bucket.get("it"), BODY, "extra: the client reads what is announced")
        bucket.store.close()
        proxy.plan.next("lost")
        broken(bucket.put, "lost", b"it is there")
        check_equal(bucket.get("lost"), b"it is there", "what the store did although its answer was lost")
        for kind in ("cut", "reset"):
            proxy.plan.next(kind)
            broken(bucket.put, kind, b"")
        check_equal(set(proxy.counts()["fault"]), set(CHANGED) - {"slow", "stall"}, "faults")


def test_slow_answers():
    with proxied("slow") as (proxy, bucket):
        proxy.slow_bytes_s = len(BODY) * 4
        proxy.plan.next("slow")
        began = time.monotonic()
        check_equal(bucket.get("it"), BODY, "slow")
        check(time.monotonic() - began > 0.15, f"almost a quarter of a second: {time.monotonic() - began:.2f} s")
        proxy.plan.next("stall")
        bucket.store.close()
        bucket.store.connection.timeout = 1  # of the next connection
        check(isinstance(broken(bucket.get, "it"), socket.timeout), "a stall ends by the client's patience")


def test_lists_that_do_not_end():
    with proxied("endless") as (proxy, bucket):
        proxy.plan.next("list-endless", count=20)
        keys = [one.key for _, one in zip(range(60), bucket.list("a/"))]
        check_equal(keys, sorted(set(keys)), "new keys, in order")
        proxy.plan.clear()
        proxy.plan.next("list-again", count=20)
        keys = [one.key for _, one in zip(range(60), bucket.list("a/"))]
        check_equal(len(set(keys)), 3, "the same keys again")
        proxy.plan.next("late-error")
        upload = bucket.begin("big")
        etags = [bucket.put_part("big", upload, 1, b"all")]
        error = refused(bucket.finish, "big", upload, etags)
        check_equal((error.status, error.code), (200, "InternalError"), "late-error")
        bucket.finish("big", upload, etags)


def test_the_clock():
    with proxied("clock") as (proxy, bucket):
        proxy.clock_ahead_s = 3600
        check_equal(refused(bucket.get, "it").code, "RequestTimeTooSkewed", "an hour behind")
        check_equal(proxy.counts()["fault"], {"skewed": 1}, "faults")


def test_a_foreign_authority():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        foreign, other = Certificates(folder, "foreign"), Certificates(folder, "other")
        with proxied("tls", tls=foreign.server()) as (proxy, bucket):
            check(isinstance(broken(bucket.get, "it"), ssl.SSLCertVerificationError), "an authority that is not known")
            store = chosen_store()
            known = store.client(endpoint=proxy.endpoint, ca=foreign.ca).bucket("tls")
            check_equal(known.get("it"), BODY, "an authority that is known")
            proxy.plan.next("reset")
            broken(known.get, "it")
            unknown = store.client(endpoint=proxy.endpoint, ca=other.ca).bucket("tls")
            check(isinstance(broken(unknown.get, "it"), ssl.SSLCertVerificationError), "another authority")


def test_the_link():
    with proxied("link") as (proxy, bucket):
        proxy.link.latency_s = 0.1
        began = time.monotonic()
        bucket.get("it", 0, 0)
        bucket.get("it", 0, 0)
        check(time.monotonic() - began >= 0.3, "a connection and two requests: three round trips")
        proxy.link.latency_s, proxy.link.bytes_s = 0, len(BODY) * 5
        for ask in (lambda: bucket.get("it"), lambda: bucket.put("that", BODY)):
            began = time.monotonic()
            ask()
            check(0.15 < time.monotonic() - began, f"a fifth of a second: {time.monotonic() - began:.2f} s")


def test_what_is_drawn():
    plans = [Plan(seed) for seed in (1, 1, 2)]
    requests = [Request(serial, "GET", "/b/k", {}) for serial in range(1, 4001)]
    drawn = []
    for plan in plans:
        plan.draw(**{"500": 3, "reset": 2, "list-again": 10})
        drawn.append([plan.fault_of(request) for request in requests])
    check_equal(drawn[0], drawn[1], "what a seed draws")
    check(drawn[0] != drawn[2], "two seeds draw the same")
    for kind, percent in (("500", 3), ("reset", 2), ("list-again", 0)):
        share = 100 * drawn[0].count(kind) / len(requests)
        check(abs(share - percent) < 1, f"{kind}: {share} % instead of {percent} %")
    try:
        plans[0].draw(none=1)
    except ValueError as error:
        check_in("there are 500, 503", str(error), "a kind that is none")
    else:
        raise Failure("a kind that is none is drawn")


if __name__ == "__main__":
    run(globals())
