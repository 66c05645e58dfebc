# SPDX-License-Identifier: Apache-2.0
"""What Cadre builds on, asked of a real store by a client that has nothing of Cadre: objects, ranges, lists, uploads in
parts, conditions, refusals; and where stores differ."""
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys

from chosen import chosen_store, fresh_bucket
from s3 import PART_BYTES, S3Error, User, signed
from store import answers
from testing import Failure, check, check_equal, check_in, descendants, run, wait_for

DIFFICULT = ["a b", "a+b", "a%20b", "a=b&c?d#e", "über/雪/😀", "..", "a/../b", "a//b", "a/./b", "a/",
             "'\"<>&;,:@$!*()[]{}|\\^~`", "x" * 1024]


def refused(status, code, function, *arguments, **named):
    """The error of a call that must be refused so."""
    try:
        found = function(*arguments, **named)
    except S3Error as error:
        check_equal((error.status, error.code), (status, code), str(error))
        return error
    raise Failure(f"not refused with {status} {code}: {found!r}")


def test_signatures_are_those_of_the_documents():
    user = User("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    now = datetime.datetime(2013, 5, 24)
    empty = {"host": "examplebucket.s3.amazonaws.com", "x-amz-content-sha256": hashlib.sha256(b"").hexdigest()}
    for path, query, more, wanted in [
            ("/test.txt", {}, {"range": "bytes=0-9"},
             "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            ("/", {"lifecycle": ""}, {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("/", {"max-keys": "2", "prefix": "J"}, {},
             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")]:
        headers = signed("GET", path, query, {**empty, **more}, user, "us-east-1", now)
        check_equal(headers["authorization"].rsplit("=", 1)[1], wanted, f"the signature of {path} {query}")


def test_objects():
    bucket = fresh_bucket("objects")
    for size in (0, 1, 70000):
        body = os.urandom(size)
        check_equal(bucket.put(f"of/{size}", body).strip('"'), hashlib.md5(body).hexdigest(), f"ETag of {size} bytes")
        check_equal(bucket.get(f"of/{size}"), body, f"{size} bytes")
        check_equal(int(bucket.head(f"of/{size}")["content-length"]), size, f"HEAD of {size} bytes")
    bucket.put("of/1", b"again")
    check_equal(bucket.get("of/1"), b"again", "an object that was written over")
    bucket.delete("of/1")
    bucket.delete("of/1")
    refused(404, "NoSuchKey", bucket.get, "of/1")


def test_ranges():
    bucket = fresh_bucket("ranges")
    body = os.urandom(100000)
    bucket.put("it", body)
    for first, last in ((0, 0), (0, 99999), (500, 70499), (99999, 99999), (50000, None)):
        check_equal(bucket.get("it", first, last), body[first:None if last is None else last + 1], f"{first} to {last}")
    check_equal(bucket.get("it", 99990, 200000), body[99990:], "a range that ends behind the object")
    refused(416, "InvalidRange", bucket.get, "it", 100000, 100001)
    bucket.put("empty", b"")
    refused(416, "InvalidRange", bucket.get, "empty", 0, 9)


def test_difficult_keys():
    bucket = fresh_bucket("difficult")
    for number, key in enumerate(DIFFICULT):
        bucket.put(key, str(number).encode())
    for number, key in enumerate(DIFFICULT):
        check_equal(bucket.get(key), str(number).encode(), f"the object {key[:50]}")
    check_equal([one.key for one in bucket.list()], sorted(DIFFICULT, key=str.encode), "the list")
    refused(*chosen_store().refusals["long key"], bucket.put, "x" * 1025, b"")


def test_lists():
    bucket = fresh_bucket("lists")
    keys = [f"a/{i:03}" for i in range(25)] + ["a/b/c", "b", "c/d"]
    for key in keys:
        bucket.put(key, b"12345")
    check_equal([one.key for one in bucket.list(page=7)], sorted(keys), "all, in pages of 7")
    check_equal({one.bytes for one in bucket.list()}, {5}, "the sizes")
    check_equal([one.key for one in bucket.list("a/00", page=4)], keys[:10], "by a prefix")
    check_equal(bucket.folders(), ["a/", "c/"], "folders")
    check_equal(bucket.folders("a/"), ["a/b/"], "folders of a folder")
    check_equal(list(bucket.list("none/")), [], "an empty list")


def test_uploads_in_parts():
    bucket = fresh_bucket("uploads")
    first, last = os.urandom(PART_BYTES), os.urandom(1000)
    upload = bucket.begin("big")
    check_equal(bucket.uploads(), [("big", upload)], "uploads that were begun")
    etags = [bucket.put_part("big", upload, 1, os.urandom(PART_BYTES)), bucket.put_part("big", upload, 2, last)]
    etags[0] = bucket.put_part("big", upload, 1, first)
    refused(404, "NoSuchKey", bucket.get, "big")
    bucket.finish("big", upload, etags)
    bucket.finish("big", upload, etags)  # as a client does that did not get the answer
    check_equal(bucket.uploads(), [], "uploads after the end of the one")
    check_equal(bucket.get("big"), first + last, "what was uploaded")
    check_equal(bucket.get("big", PART_BYTES - 10, PART_BYTES + 9), first[-10:] + last[:10], "a range over both parts")
    sums = b"".join(hashlib.md5(part).digest() for part in (first, last))
    check_equal(bucket.head("big")["etag"], f'"{hashlib.md5(sums).hexdigest()}-2"', "the ETag of two parts")
    check_equal([(one.key, one.bytes) for one in bucket.list()], [("big", PART_BYTES + 1000)], "the list")


def test_uploads_that_go_wrong():
    bucket = fresh_bucket("wrong-uploads")
    upload = bucket.begin("a b+c")
    etag = bucket.put_part("a b+c", upload, 1, b"small")
    wrong = f'"{hashlib.md5(b"other").hexdigest()}"'
    refused(400, "InvalidPart", bucket.finish, "a b+c", upload, [wrong])
    second = bucket.put_part("a b+c", upload, 2, b"small")
    refused(400, "EntityTooSmall", bucket.finish, "a b+c", upload, [etag, second])
    bucket.abort("a b+c", upload)
    check_equal(bucket.uploads(), [], "uploads after an abort")
    refused(404, "NoSuchUpload", bucket.put_part, "a b+c", upload, 1, b"small")
    refused(*chosen_store().refusals["end of no upload"], bucket.finish, "a b+c", upload, [etag])
    refused(404, "NoSuchKey", bucket.get, "a b+c")


def test_conditions():
    bucket = fresh_bucket("conditions")
    old = bucket.put("it", b"old")
    check_equal(bucket.get("it", 0, 1, if_match=old), b"ol", "a range, if it is still the same")
    bucket.put("it", b"new")
    refused(412, "PreconditionFailed", bucket.get, "it", if_match=old)
    refused(412, "PreconditionFailed", bucket.get, "it", 0, 1, if_match=old)
    if not chosen_store().puts_if_absent:
        refused(501, "NotImplemented", bucket.put, "it", b"newer", if_none_match="*")
    else:
        refused(412, "PreconditionFailed", bucket.put, "it", b"newer", if_none_match="*")
        check_equal(bucket.get("it"), b"new", "what was there stays")
        bucket.put("other", b"first", if_none_match="*")
        check_equal(bucket.get("other"), b"first", "what was not there is written")


def test_refusals():
    store = chosen_store()
    fresh_bucket("closed").put("it", b"secret")
    refused(404, "NoSuchBucket", store.client().bucket("none").get, "it")
    refused(404, "NoSuchBucket", list, store.client().bucket("none").list())
    refused(404, "NoSuchBucket", store.client().bucket("none").put, "it", b"")
    closed = store.client(store.reader).bucket("closed")
    refused(403, "AccessDenied", closed.get, "it")
    refused(403, "AccessDenied", closed.put, "it", b"")
    refused(403, "AccessDenied", list, closed.list())
    refused(403, "AccessDenied", closed.begin, "it")
    refused(403, "AccessDenied", closed.delete, "it")
    wrong = store.client(store.writer._replace(secret_key="wrong")).bucket("closed")
    refused(403, "SignatureDoesNotMatch", wrong.get, "it")
    refused(403, "SignatureDoesNotMatch", wrong.put, "it", b"")
    unknown = store.client(User("un:known", "wrong")).bucket("closed")
    refused(*store.refusals["unknown user"], unknown.get, "it")


def test_regions_and_clocks():
    store = chosen_store()
    fresh_bucket("places").put("it", b"here")
    elsewhere = store.client(region="mars-1").bucket("places")
    if store.checks_regions:
        refused(400, "AuthorizationHeaderMalformed", elsewhere.get, "it")
    else:
        check_equal(elsewhere.get("it"), b"here", "a region that the store does not have")
    for ahead_s in (-3600, 3600):
        refused(403, "RequestTimeTooSkewed", store.client(ahead_s=ahead_s).bucket("places").get, "it")
    check_equal(store.client(ahead_s=600).bucket("places").get("it"), b"here", "10 minutes ahead")


def test_it_ends_with_its_test():
    """Also when that is killed: all of its servers, not the first alone."""
    up = os.path.join(os.path.dirname(os.path.abspath(__file__)), "up")
    with subprocess.Popen([sys.executable, "-B", up, chosen_store().name], stdout=subprocess.PIPE, text=True) as one:
        folder = re.search(r"below (\S+)", one.stdout.readline())[1]
        try:
            check_in("the bucket data is closed", one.stdout.readline(), "what is said of the other user")
            endpoint = re.search(r"AWS_ENDPOINT_URL=(\S+)", one.stdout.readline())[1]
            check(answers(endpoint), "it answers")
            servers = descendants(one.pid)
            check(len(servers) >= 3, f"its servers: {servers}")
            one.kill()
            one.wait()
            wait_for("its servers end", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in servers))
            check(not answers(endpoint), "it answers still")
        finally:
            one.kill()
            shutil.rmtree(folder)


if __name__ == "__main__":
    run(globals())
