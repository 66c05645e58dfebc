# SPDX-License-Identifier: Apache-2.0
"""The least of an S3 client, for tests: it signs by version 4, sends one request, and gives back what came. Standard
library only, and nothing of Cadre's, so that it can be set beside it.

    bucket = S3(store.endpoint, store.region, store.writer).bucket("data")
    bucket.put("a/b", b"bytes")                 S3Error with status and code where the store refuses
    bucket.get("a/b", first=2, last=4)
    [entry.key for entry in bucket.list("a/")]

Source: "Signature Version 4 signing process" and the API reference of Amazon S3 (2006-03-01).
"""
import collections
import datetime
import hashlib
import hmac
import http.client
import ssl
import urllib.parse
import xml.etree.ElementTree

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
PART_BYTES = 5 << 20  # the least that stores allow for all parts but the last
TIMEOUT_S = 600       # only a fault lets a request take so long

User = collections.namedtuple("User", "access_key secret_key")
Entry = collections.namedtuple("Entry", "key bytes etag")
Answer = collections.namedtuple("Answer", "status headers body")


class S3Error(Exception):
    """What a store refused: the HTTP status, and the code of its answer ("" when it has none)."""

    def __init__(self, status, code, text):
        super().__init__(f"{status} {code}: {text}")
        self.status, self.code = status, code


def encoded(text, keep=""):
    """As the signature wants it: all but the unreserved characters as %XX."""
    return urllib.parse.quote(text, safe="-_.~" + keep)


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def canonical_query(query):
    return "&".join(f"{name}={value}" for name, value in
                    sorted((encoded(name), encoded(value)) for name, value in query.items()))


def signed(method, path, query, headers, user, region, now):
    """The headers to send: `headers` (names in lower case, "host" and "x-amz-content-sha256" among them), the time and
    the signature. `path` is encoded already."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {**headers, "x-amz-date": stamp}
    names = sorted(name for name in headers if name != "authorization")
    request = "\n".join([method, path, canonical_query(query),
                         *(f"{name}:{' '.join(str(headers[name]).split())}" for name in names), "",
                         ";".join(names), headers["x-amz-content-sha256"]])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{user.secret_key}".encode()
    for step in (stamp[:8], region, "s3", "aws4_request"):
        key = digest(key, step)
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={user.access_key}/{scope}, "
                                f"SignedHeaders={';'.join(names)}, Signature={digest(key, text).hex()}")
    return headers


def texts(document, name):
    """The texts of all elements of this name, whatever their name space."""
    return [element.text or "" for element in document.iter() if element.tag.rsplit("}", 1)[-1] == name]


class S3:
    """A store, as one user sees it. `ahead_s`: how far the client's clock is ahead. One thread at a time."""

    def __init__(self, endpoint, region, user, ahead_s=0, ca=None):
        url = urllib.parse.urlsplit(endpoint)
        self.host = url.netloc
        self.region, self.user, self.ahead_s = region, user, ahead_s
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=ca)
            self.connection = http.client.HTTPSConnection(self.host, timeout=TIMEOUT_S, context=context)
        else:
            self.connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT_S)

    def send(self, method, path, query=None, headers=None, body=b""):
        """One request and its answer, whatever that says. OSError and HTTPException where none comes."""
        query = query or {}
        url = encoded(path, "/")
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead_s)
        sum256 = hashlib.sha256(body).hexdigest() if body else EMPTY_SHA256
        headers = signed(method, url, query, {"host": self.host, "x-amz-content-sha256": sum256, **(headers or {})},
                         self.user, self.region, now)
        del headers["host"]  # http.client sends its own, which is the same
        try:
            self.connection.request(method, f"{url}?{canonical_query(query)}" if query else url, body, headers)
            answer = self.connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        except BaseException:
            self.connection.close()
            raise

    def ask(self, *arguments, **named):
        """The same; S3Error unless the store did it, also where it says so in the body of a 200."""
        answer = self.send(*arguments, **named)
        refused = answer.status >= 300 or answer.body[:300].find(b"<Error>") >= 0
        if refused:
            try:
                document = xml.etree.ElementTree.fromstring(answer.body.strip())
                code, text = texts(document, "Code")[0], (texts(document, "Message") or [""])[0]
            except (xml.etree.ElementTree.ParseError, IndexError):
                code, text = "", answer.body[:200]
            raise S3Error(answer.status, code, text)
        return answer

    def bucket(self, name):
        return Bucket(self, name)

    def close(self):
        self.connection.close()


class Bucket:
    def __init__(self, store, name):
        self.store, self.name = store, name

    def ask(self, method, key="", **named):
        return self.store.ask(method, f"/{self.name}/{key}" if key else f"/{self.name}", **named)

    def document(self, method, key="", **named):
        return xml.etree.ElementTree.fromstring(self.ask(method, key, **named).body.strip())

    def make(self):
        self.ask("PUT")
        return self

    def put(self, key, body, **headers):
        """Its ETag. Headers are named with underscores: if_none_match="*"."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("PUT", key, body=body, headers=named).headers["etag"]

    def get(self, key, first=None, last=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if first is not None:
            named["range"] = f"bytes={first}-{'' if last is None else last}"
        return self.ask("GET", key, headers=named).body

    def head(self, key):
        return self.ask("HEAD", key).headers

    def delete(self, key):
        self.ask("DELETE", key)

    def pages(self, prefix="", delimiter=None, page=1000):
        """ListObjectsV2, document by document."""
        query = {"list-type": "2", "prefix": prefix, "max-keys": str(page)}
        if delimiter:
            query["delimiter"] = delimiter
        while True:
            document = self.document("GET", query=query)
            yield document
            if texts(document, "IsTruncated") != ["true"]:
                return
            query["continuation-token"] = texts(document, "NextContinuationToken")[0]

    def list(self, prefix="", page=1000):
        for document in self.pages(prefix, page=page):
            for contents in document.iter():
                if contents.tag.endswith("}Contents") or contents.tag == "Contents":
                    yield Entry(texts(contents, "Key")[0], int(texts(contents, "Size")[0]),
                                texts(contents, "ETag")[0])

    def folders(self, prefix=""):
        """What keys beneath `prefix` begin with, up to the next slash."""
        return [text for document in self.pages(prefix, delimiter="/")
                for common in document.iter() if common.tag.endswith("CommonPrefixes")
                for text in texts(common, "Prefix")]

    def begin(self, key):
        """Begins an upload in parts: its ID."""
        return texts(self.document("POST", key, query={"uploads": ""}), "UploadId")[0]

    def put_part(self, key, upload, number, body):
        return self.ask("PUT", key, query={"partNumber": str(number), "uploadId": upload}, body=body).headers["etag"]

    def finish(self, key, upload, etags):
        parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
                        for number, etag in enumerate(etags, 1))
        document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        self.document("POST", key, query={"uploadId": upload}, body=document)

    def abort(self, key, upload):
        self.ask("DELETE", key, query={"uploadId": upload})

    def uploads(self, prefix=""):
        """The keys and IDs of uploads that were begun and not ended."""
        document = self.document("GET", query={"uploads": "", "prefix": prefix})
        return list(zip(texts(document, "Key"), texts(document, "UploadId")))
