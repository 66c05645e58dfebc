# SPDX-License-Identifier: Apache-2.0
"""What the proxy does wrong, and to which request: by a seed, and by command. No sockets here."""
import collections
import random
import threading
import urllib.parse

# Answered by the proxy; the store is not asked.
INSTEAD = {
    "500": "500 InternalError",
    "503": "503 SlowDown",
    "429": "429 TooManyRequests, Retry-After: 1",
    "redirect": "301 PermanentRedirect to the bucket's region, in x-amz-bucket-region",
    "expired": "400 ExpiredToken",
    "html": "200 with a page for people",
    "html-502": "502 with a page for people",
    "refused": "the connection is reset at once",
    "list-again": "lists: the same page, with the same token, without an end",
    "list-endless": "lists: a new page with a new token, without an end",
    "late-error": "ends of uploads: 200 whose body is an error",
}
# The store gets it later than it was sent, also when the sender is gone by then.
HELD = {
    "held": "the store gets it when Proxy.let_go() is called",
}
# The store does what was asked for, and its answer does not arrive as it was.
CHANGED = {
    "lost": "the connection is reset instead of the answer",
    "cut": "the connection is closed after half of the body",
    "reset": "the connection is reset after half of the body",
    "slow": "the body comes at `slow_bytes_s` bytes a second",
    "stall": "after half of the body nothing comes, and the connection stays",
    "shorter": "half of the body, and a Content-Length that says so",
    "longer": "a Content-Length of 10 bytes more than there are",
    "extra": "10 bytes more than Content-Length says",
    "flipped": "one bit of the body is wrong",
}
KINDS = {**INSTEAD, **HELD, **CHANGED}
ONLY_FOR = {"list-again": "list", "list-endless": "list", "late-error": "finish-upload"}

CODES = {"500": (500, "InternalError", "We encountered an internal error. Please try again."),
         "503": (503, "SlowDown", "Please reduce your request rate."),
         "429": (429, "TooManyRequests", "Please reduce your request rate."),
         "redirect": (301, "PermanentRedirect", "The bucket must be addressed at the endpoint of its region."),
         "expired": (400, "ExpiredToken", "The provided token has expired."),
         "late-error": (200, "InternalError", "We encountered an internal error. Please try again."),
         "skewed": (403, "RequestTimeTooSkewed",
                    "The difference between the request time and the current time is too large.")}
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Welcome</h1></body></html>\n"
REGION = "ap-test-2"  # of redirects

Request = collections.namedtuple("Request", "serial method target headers")


def query_of(request):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.target).query, keep_blank_values=True))


def key_of(request):
    """ "bucket/key", or "bucket". """
    return urllib.parse.unquote(urllib.parse.urlsplit(request.target).path).strip("/")


def operation_of(request):
    """What it asks for: "get", "put", "list", "put-part", ..."""
    query, method = query_of(request), request.method
    if "/" not in urllib.parse.urlsplit(request.target).path.strip("/"):
        if method == "GET":
            return "list-uploads" if "uploads" in query else "list"
        if method == "POST":
            return "delete-many"
        return {"PUT": "make-bucket", "DELETE": "remove-bucket", "HEAD": "head-bucket"}.get(method, method.lower())
    if "uploadId" in query:
        return {"PUT": "put-part", "POST": "finish-upload", "GET": "list-parts"}.get(method, "abort-upload")
    if "uploads" in query:
        return "begin-upload"
    return method.lower()


def document(code, text, more=""):
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{text}</Message>{more}'
            "<RequestId>0123456789ABCDEF</RequestId></Error>").encode()


def page_of(bucket, query, number, token):
    """A page of a list that goes on: three keys, of which `number` says the first."""
    prefix = query.get("prefix", "")
    keys = "".join(f"<Contents><Key>{prefix}endless-{number * 3 + i:012}</Key><Size>1</Size><ETag>&quot;e&quot;</ETag>"
                   "<LastModified>2024-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass>"
                   "</Contents>" for i in range(3))
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{prefix}</Prefix><KeyCount>3</KeyCount><MaxKeys>3</MaxKeys>"
            f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>{keys}"
            "</ListBucketResult>").encode()


def instead(kind, request):
    """Status, headers and body of what the proxy answers by itself."""
    headers = {"Content-Type": "application/xml"}
    if kind in ("html", "html-502"):
        return (200 if kind == "html" else 502), {"Content-Type": "text/html"}, PAGE
    if kind.startswith("list-"):
        query = query_of(request)
        token = query.get("continuation-token", "0")
        number = 0 if kind == "list-again" or not token.isdigit() else int(token)
        return 200, headers, page_of(key_of(request), query, number, "0" if kind == "list-again" else str(number + 1))
    status, code, text = CODES[kind]
    if kind == "429":
        headers["Retry-After"] = "1"
    if kind == "redirect":
        headers["x-amz-bucket-region"] = REGION
        return status, headers, document(code, text, f"<Endpoint>bucket.s3.{REGION}.example</Endpoint>")
    return status, headers, document(code, text)


class Plan:
    """Which request gets which fault. What is drawn depends on the seed and on the request's number alone."""

    def __init__(self, seed):
        self.seed = seed
        self.lock = threading.Lock()
        self.percents = {}
        self.planned = []

    def draw(self, **percents):
        """From here on each request gets a fault by these percentages: draw(**{"500": 5, "cut": 2})."""
        for kind in percents:
            if kind not in KINDS:
                raise ValueError(f"{kind} is no fault; there are {', '.join(KINDS)}")
        if sum(percents.values()) > 100:
            raise ValueError("more than 100 % of faults")
        self.percents = percents

    def next(self, kind, count=1, operation=None, key=None):
        """The next `count` requests get it, of this operation and with this in their key (None: any)."""
        if kind not in KINDS:
            raise ValueError(f"{kind} is no fault; there are {', '.join(KINDS)}")
        with self.lock:
            self.planned.append([kind, count, operation or ONLY_FOR.get(kind), key])

    def clear(self):
        with self.lock:
            self.percents, self.planned = {}, []

    def fault_of(self, request):
        """Its fault, or None."""
        operation, key = operation_of(request), key_of(request)
        with self.lock:
            for entry in self.planned:
                kind, _, wanted, part = entry
                if wanted in (None, operation) and (part is None or part in key):
                    entry[1] -= 1
                    if entry[1] == 0:
                        self.planned.remove(entry)
                    return kind
        at = random.Random(f"{self.seed}/{request.serial}").uniform(0, 100)
        for kind, percent in self.percents.items():
            at -= percent
            if at < 0:
                return kind if ONLY_FOR.get(kind, operation) == operation else None
        return None
