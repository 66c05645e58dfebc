#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An object store in memory of S3, checks signatures by code of its own, and does wrong what a test asks for.

usage: fake_s3.py [--tls CERT KEY]     prints its port and a newline; ends with the process that started it

One user (ACCESS, SECRET), path style, any bucket but "missing". Under "/-/" it takes orders:

    POST /-/reset              empty, no rules, no counts
    POST /-/rules              JSON: a list of rules (below), added to those that are there
    POST /-/settings           JSON: page (keys of a list), clock_s (added to the time), region, token, conditional,
                               identity, role
    GET  /-/count?WHAT         how many requests began with WHAT, such as "GET /bucket/key"
    GET  /-/connections        how many connections were made, and how many requests came at a time at the most
    GET  /-/header?NAME        that header of the last request for an object
    GET  /-/uploads            how many uploads are open
    GET  /-/credentials        the user's, as a container gets them
    POST /-/sts/               the same, by AssumeRoleWithWebIdentity for the token and the role of the settings

A rule: {"match": "GET /b/k", "skip": 0, "times": 1, "act": ACT, ...}; the first that matches and is not used up acts:

    status (code, s3, headers, html)   that answer       cut      half of the body, then the connection ends
    reset     the connection is reset                    silent   no answer until the client leaves
    stall     half of the body, then nothing             drip     one byte of the body every 50 ms
    longer, shorter   a Content-Length that is wrong     other_range, other_total   a Content-Range that is wrong
    raw (text)        these bytes, then the end          delay (s)     then the right answer
    lost      it is done, and the connection is reset    late_error (s3)   status 200 with an error in XML
    changed   another ETag                               no_range  status 200 with all of it
    endless   headers without an end                     redirect (to)   status 302
"""
import calendar
import hashlib
import hmac
import http.server
import json
import os
import re
import select
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from email.utils import formatdate

ACCESS, SECRET = "AKTEST", "a/secret+key"
MISSING = "missing"


class Failure(Exception):
    def __init__(self, status, code, message="", extra=""):
        super().__init__(code)
        self.status, self.code, self.message, self.extra = status, code, message, extra


class Store:
    def __init__(self):
        self.lock = threading.Lock()
        self.epoch = 0
        self.clear()

    def clear(self):
        self.objects = {}  # (bucket, key) -> bytes, etag, time
        self.uploads = {}  # id -> bucket, key, time, {number: bytes}
        self.rules = []
        self.requests = []
        self.headers = {}
        self.settings = {"page": 1000, "clock_s": 0, "region": "us-east-1", "token": "", "conditional": True,
                         "identity": "", "role": ""}
        self.next_upload = 1
        self.now, self.most, self.connections = 0, 0, 0
        self.epoch += 1  # what began before does not count

    def rule_for(self, request):
        with self.lock:
            for rule in self.rules:
                if request.startswith(rule["match"]) and rule.get("times", 1) > 0:
                    if rule.get("skip", 0) > 0:
                        rule["skip"] -= 1
                    else:
                        rule["times"] = rule.get("times", 1) - 1
                        return rule
        return None


STORE = Store()


def quote(text):
    return urllib.parse.quote(text, safe="-._~")


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def iso(when):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when))


def etag_of(data):
    return '"' + hashlib.md5(data).hexdigest() + '"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    counted = -1

    def date_time_string(self, timestamp=None):
        return formatdate(time.time() + STORE.settings["clock_s"], usegmt=True)

    def log_message(self, *_):
        pass

    def version_string(self):
        return "fake"

    # --- requests ---

    def handle_method(self):
        if self.path.startswith("/-/"):
            return self.take_order()
        if self.path.startswith("http://"):  # this is a proxy now
            self.headers["X-Proxied"] = "yes"
            self.path = "/" + self.path.split("/", 3)[3]
        with STORE.lock:
            STORE.requests.append(f"{self.command} {self.path}")
            STORE.headers = self.headers
            STORE.connections += self.counted != STORE.epoch
            self.counted = epoch = STORE.epoch
            STORE.now += 1
            STORE.most = max(STORE.most, STORE.now)
        try:
            self.rule = STORE.rule_for(f"{self.command} {self.path}")
            self.act_before()
        except Failure as failure:
            self.send_failure(failure)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True
        finally:
            with STORE.lock:
                STORE.now -= STORE.epoch == epoch

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_method

    def read_body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def act_before(self):
        rule = self.rule
        act = rule["act"] if rule else None
        if act == "status" and rule.get("early"):
            self.close_connection = True
        else:
            self.body = self.read_body()
        if act == "delay":
            self.wait(rule["s"])
        if act == "silent":
            return self.wait(3600)
        if act == "reset":
            return self.reset()
        if act == "raw":
            self.wfile.write(rule["text"].encode("latin-1"))
            self.close_connection = True
            return None
        if act == "endless":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(100000):
                self.wfile.write(b"X-%d: %s\r\n" % (number, b"x" * 1000))
            return None
        if act == "status":
            if rule.get("html"):
                return self.send(rule["code"], rule["html"].encode(), {"Content-Type": "text/html"})
            raise Failure(rule["code"], rule.get("s3", ""), rule.get("message", ""), rule.get("extra", ""))
        if act == "redirect":
            return self.send(302, b"", {"Location": rule["to"]})
        path, _, query = self.path.partition("?")
        if not path.startswith("/web/"):
            self.check_signature(path, query)
        return self.serve(path, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))

    def check_signature(self, path, query):
        given = self.headers.get("Authorization", "")
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", given)
        if not match:
            raise Failure(403, "AccessDenied", "not signed")
        access, day, region, signed, signature = match.groups()
        if access != ACCESS:
            raise Failure(403, "InvalidAccessKeyId")
        token = STORE.settings["token"]
        if token and self.headers.get("X-Amz-Security-Token") != token:
            raise Failure(400, "ExpiredToken")
        if region != STORE.settings["region"]:
            raise Failure(400, "AuthorizationHeaderMalformed", "wrong region",
                          f"<Region>{STORE.settings['region']}</Region>")
        now = time.time() + STORE.settings["clock_s"]
        sent = self.headers["X-Amz-Date"]
        when = calendar.timegm(time.strptime(sent, "%Y%m%dT%H%M%SZ"))
        if abs(when - now) > 900:
            raise Failure(403, "RequestTimeTooSkewed", "", f"<ServerTime>{iso(now)}</ServerTime>")
        hashed = self.headers["X-Amz-Content-Sha256"]
        if quote(urllib.parse.unquote(path)).replace("%2F", "/") != path:
            raise Failure(400, "InvalidURI", "not encoded as it is to be")
        canonical = "\n".join([self.command, path, "&".join(sorted(canonical_query(query))),
                               "".join(f"{name}:{' '.join(self.headers[name].split())}\n"
                                       for name in signed.split(";")), signed, hashed])
        to_sign = "\n".join(["AWS4-HMAC-SHA256", sent, f"{day}/{region}/s3/aws4_request",
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for piece in (day, region, "s3", "aws4_request", to_sign):
            key = hmac.new(key, piece.encode(), hashlib.sha256).digest()
        if key.hex() != signature:
            raise Failure(403, "SignatureDoesNotMatch")
        if "host" not in signed or "x-amz-date" not in signed:
            raise Failure(403, "AccessDenied", "host or date is not signed")
        if hashed != "UNSIGNED-PAYLOAD" and hashlib.sha256(self.body).hexdigest() != hashed:
            raise Failure(400, "XAmzContentSHA256Mismatch")

    def serve(self, path, query):
        bucket, _, key = urllib.parse.unquote(path[1:]).partition("/")
        if bucket == MISSING:
            raise Failure(404, "NoSuchBucket")
        if not key:
            if "uploads" in query:
                return self.list_uploads(bucket, query)
            return self.list_objects(bucket, query)
        if "uploads" in query:
            return self.begin_upload(bucket, key)
        if "uploadId" in query:
            return self.serve_upload(bucket, key, query)
        if self.command == "PUT":
            return self.put(bucket, key)
        if self.command == "DELETE":
            with STORE.lock:
                STORE.objects.pop((bucket, key), None)
            return self.send(204, b"")
        return self.get(bucket, key)

    def put(self, bucket, key):
        with STORE.lock:
            if self.headers.get("If-None-Match") == "*":
                if not STORE.settings["conditional"]:
                    raise Failure(501, "NotImplemented", "A header you provided implies functionality")
                if (bucket, key) in STORE.objects:
                    raise Failure(412, "PreconditionFailed")
            STORE.objects[bucket, key] = (self.body, etag_of(self.body), time.time())
        self.send(200, b"", {"ETag": etag_of(self.body)})

    def get(self, bucket, key):
        found = STORE.objects.get((bucket, key))
        if not found:
            raise Failure(404, "NoSuchKey")
        data, etag, when = found
        if self.rule and self.rule["act"] == "changed":
            etag = '"0123456789abcdef0123456789abcdef"'
        headers = {"ETag": etag, "Last-Modified": formatdate(when, usegmt=True), "Accept-Ranges": "bytes"}
        wanted = self.headers.get("If-Match")
        if wanted and wanted != etag and self.rule is None:
            raise Failure(412, "PreconditionFailed")
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span and not (self.rule and self.rule["act"] == "no_range"):
            first, last = int(span.group(1)), min(int(span.group(2)), len(data) - 1)
            if first >= len(data):
                raise Failure(416, "InvalidRange")
            shown = first + 1 if self.rule and self.rule["act"] == "other_range" else first
            total = len(data) + (1 if self.rule and self.rule["act"] == "other_total" else 0)
            headers["Content-Range"] = f"bytes {shown}-{last}/{total}"
            return self.send(206, data[first:last + 1], headers)
        return self.send(200, data, headers)

    def list_objects(self, bucket, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", "")
        names = {}
        for (where, key), (data, etag, when) in list(STORE.objects.items()):
            if where == bucket and key.startswith(prefix):
                end = key.find(delimiter, len(prefix)) if delimiter else -1
                name = key if end < 0 else key[:end + 1]
                names[name] = None if end >= 0 else (data, etag, when)
        sorted_names = sorted((n for n in names if n > after), key=lambda name: name.encode())
        page = sorted_names[:min(STORE.settings["page"], int(query.get("max-keys", 1000)))]
        more = len(page) < len(sorted_names)
        shown = quote if query.get("encoding-type") == "url" else escape
        out = ["<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>",
               f"<Name>{bucket}</Name><Prefix>{shown(prefix)}</Prefix><EncodingType>url</EncodingType>",
               f"<IsTruncated>{str(more).lower()}</IsTruncated>"]
        if more:
            token = after if STORE.settings.get("same_page") and after else page[-1]
            out.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        for name in page:
            if names[name] is not None:
                data, etag, when = names[name]
                out.append(f"<Contents><Key>{shown(name)}</Key><LastModified>{iso(when)}</LastModified>"
                           f"<ETag>{etag.replace(chr(34), '&quot;')}</ETag><Size>{len(data)}</Size></Contents>")
        for name in page:
            if names[name] is None:
                out.append(f"<CommonPrefixes><Prefix>{shown(name)}</Prefix></CommonPrefixes>")
        self.send_xml("".join(out) + "</ListBucketResult>")

    # --- uploads ---

    def begin_upload(self, bucket, key):
        with STORE.lock:
            name = f"up.{STORE.next_upload:06d}~"
            STORE.next_upload += 1
            STORE.uploads[name] = (bucket, key, time.time() + STORE.settings["clock_s"], {})
        self.send_xml(f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                      f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>")

    def serve_upload(self, bucket, key, query):
        upload = STORE.uploads.get(query["uploadId"])
        if not upload or upload[:2] != (bucket, key):
            raise Failure(404, "NoSuchUpload")
        pieces = upload[3]
        if self.command == "PUT":
            pieces[int(query["partNumber"])] = self.body
            return self.send(200, b"", {"ETag": etag_of(self.body)})
        if self.command == "DELETE":
            del STORE.uploads[query["uploadId"]]
            return self.send(204, b"")
        if self.command == "GET":
            return self.list_pieces(pieces, int(query.get("part-number-marker", 0)))
        return self.complete(bucket, key, query["uploadId"], pieces)

    def list_pieces(self, pieces, after):
        numbers = sorted(n for n in pieces if n > after)
        page = numbers[:STORE.settings["page"]]
        more = len(page) < len(numbers)
        out = [f"<ListPartsResult><IsTruncated>{str(more).lower()}</IsTruncated>"]
        if page:
            out.append(f"<NextPartNumberMarker>{page[-1]}</NextPartNumberMarker>")
        out += [f"<Part><PartNumber>{n}</PartNumber><LastModified>{iso(0)}</LastModified>"
                f"<ETag>{etag_of(pieces[n]).replace(chr(34), '&quot;')}</ETag><Size>{len(pieces[n])}</Size></Part>"
                for n in page]
        self.send_xml("".join(out) + "</ListPartsResult>")

    def complete(self, bucket, key, name, pieces):
        text = self.body.decode()
        wanted = [(int(n), e.replace("&quot;", '"').strip('"')) for n, e in re.findall(
            r"<PartNumber>(\d+)</PartNumber>\s*<ETag>(.*?)</ETag>", text, re.S)]
        if not wanted or any(n not in pieces or etag_of(pieces[n]).strip('"') != e for n, e in wanted):
            raise Failure(400, "InvalidPart")
        if any(len(pieces[n]) < 5 << 20 for n, _ in wanted[:-1]) and not STORE.settings.get("small"):
            raise Failure(400, "EntityTooSmall")
        data = b"".join(pieces[n] for n, _ in wanted)
        sums = b"".join(hashlib.md5(pieces[n]).digest() for n, _ in wanted)
        etag = f'"{hashlib.md5(sums).hexdigest()}-{len(wanted)}"'
        with STORE.lock:
            STORE.objects[bucket, key] = (data, etag, time.time())
            STORE.uploads.pop(name, None)
        self.send_xml(f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>")

    def list_uploads(self, bucket, query):
        prefix = query.get("prefix", "")
        after = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        found = sorted((up[1], name, up[2]) for name, up in STORE.uploads.items()
                       if up[0] == bucket and up[1].startswith(prefix) and (up[1], name) > after)
        page = found[:STORE.settings["page"]]
        more = len(page) < len(found)
        out = [f"<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
               f"<IsTruncated>{str(more).lower()}</IsTruncated>"]
        if more:
            out.append(f"<NextKeyMarker>{quote(page[-1][0])}</NextKeyMarker>"
                       f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>")
        out += [f"<Upload><Key>{quote(key)}</Key><UploadId>{name}</UploadId><Initiated>{iso(when)}</Initiated></Upload>"
                for key, name, when in page]
        self.send_xml("".join(out) + "</ListMultipartUploadsResult>")

    # --- answers ---

    def send_failure(self, failure):
        text = (f"<?xml version='1.0'?><Error><Code>{failure.code}</Code><Message>{failure.message}</Message>"
                f"{failure.extra}</Error>") if failure.code else ""
        self.rule = None
        self.send(failure.status, text.encode(), {"Content-Type": "application/xml"})

    def send_xml(self, text):
        self.send(200, text.encode(), {"Content-Type": "application/xml"})

    def send(self, status, body, headers=None):
        act = self.rule["act"] if self.rule else None
        if act == "lost":
            return self.reset()
        if act == "late_error":
            body = f"<Error><Code>{self.rule['s3']}</Code><Message>late</Message></Error>".encode()
        length = len(body) + {"longer": 7, "shorter": -3}.get(act, 0)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status == 400:  # as Amazon's does, for HEAD, which has no body
            self.send_header("X-Amz-Bucket-Region", STORE.settings["region"])
        if status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return None
        if act in ("cut", "stall"):
            self.wfile.write(body[:len(body) // 2])
            if act == "stall":
                self.wait(3600)
            self.close_connection = True
        elif act == "drip":
            for at in range(len(body)):
                self.wfile.write(body[at:at + 1])
                if self.wait(0.05):
                    break
            self.close_connection = True
        else:
            self.wfile.write(body)
            self.close_connection = self.close_connection or act in ("longer", "shorter")
        return None

    def wait(self, seconds):
        """Until then, or until the client leaves."""
        ready, _, _ = select.select([self.connection], [], [], seconds)
        if ready:
            self.close_connection = True
        return bool(ready)

    def reset(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def finish(self):
        try:
            super().finish()
        except (OSError, ValueError):
            pass

    # --- orders ---

    def exchange_token(self, body):
        if self.headers.get("Content-Type") != "application/x-www-form-urlencoded" or "Authorization" in self.headers:
            return self.send(400, b"<html>a form, unsigned</html>")
        form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
        if form["Action"] != "AssumeRoleWithWebIdentity" or form["Version"] != "2011-06-15" or \
                not re.fullmatch(r"[\w+=,.@-]{2,64}", form["RoleSessionName"]):
            return self.send(400, b"<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>")
        if form["WebIdentityToken"] != STORE.settings["identity"]:
            return self.send(400, b"<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>"
                                  b"<Message>no</Message></Error></ErrorResponse>")
        if form["RoleArn"] != STORE.settings["role"]:
            return self.send(403, b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
        return self.send(200, f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>x</SubjectFromWebIdentityToken><Credentials>
<SessionToken>{STORE.settings["token"]}</SessionToken><SecretAccessKey>{SECRET}</SecretAccessKey>
<Expiration>{iso(time.time() + 3600)}</Expiration><AccessKeyId>{ACCESS}</AccessKeyId></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>""".encode(), {"Connection": "close"})

    def take_order(self):
        body = self.read_body()
        if self.path == "/-/sts/" and self.command == "POST":
            self.rule = None
            self.close_connection = True
            return self.exchange_token(body)
        order, _, argument = self.path[3:].partition("?")
        argument = urllib.parse.unquote(argument)
        self.rule = None
        text = ""
        with STORE.lock:
            if order == "reset":
                STORE.clear()
            elif order == "rules":
                STORE.rules += json.loads(body)
            elif order == "settings":
                STORE.settings.update(json.loads(body))
            elif order == "count":
                text = str(sum(1 for r in STORE.requests if r.startswith(argument)))
            elif order == "connections":
                text = f"{STORE.connections} {STORE.most}"
            elif order == "header":
                text = STORE.headers.get(argument, "")
            elif order == "credentials":
                text = json.dumps({"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": STORE.settings["token"],
                                   "Expiration": iso(time.time() + 3600)})
            elif order == "uploads":
                text = str(len(STORE.uploads))
        self.close_connection = True
        self.send(200, text.encode(), {"Connection": "close"})


def canonical_query(query):
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        yield f"{quote(urllib.parse.unquote(name))}={quote(urllib.parse.unquote(value))}"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


def main(arguments):
    server = Server(("127.0.0.1", 0), Handler)
    if arguments[:1] == ["--tls"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments[1], arguments[2])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
