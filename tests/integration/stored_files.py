# SPDX-License-Identifier: Apache-2.0
"""Jobs whose files are objects: how they are submitted, and a site that is not a store."""
import hashlib
import http.server
import os
import ssl
import sys
import threading

from client import common_pb2, job_file, jobs_pb2

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "object_storage"))
from chosen import environment_of  # noqa: E402


class Submitter:
    """`cadre submit` in a folder with a program, with the store's variables, or these, in a file."""

    def __init__(self, cluster, content, variables=None, **named):
        self.cluster = cluster
        self.folder = os.path.join(cluster.folder, "app")
        os.makedirs(self.folder, exist_ok=True)
        lines = environment_of(**named) if variables is None else variables
        for name, text in (("program", content), ("store.env", "\n".join(lines).encode() + b"\n")):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(text)
        os.chmod(os.path.join(self.folder, "program"), 0o755)

    def submit(self, *options, arguments=(), status=0):
        done = self.cluster.cadre("submit", "--env-file", "store.env", *options, "./program", "--", *arguments,
                                  cwd=self.folder, status=status)
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def detach(self, *options, arguments=()):
        """The job's number."""
        self.submit("--detach", *options, arguments=arguments)
        return max(job.id for job in self.cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs)


def object_file(name, url, version="", size_bytes=0):
    return common_pb2.JobFile(name=name, url=url, sha256=hashlib.sha256(url.encode()).digest(), version=version,
                              size_bytes=size_bytes)


def submit_raw(cluster, content, files, **fields):
    """Without the look at the objects that `cadre submit` takes."""
    cluster.client.upload([content])
    spec = common_pb2.JobSpec(name="job", program=job_file("program", content, True), files=files,
                              **{"workers": 1, "environment": environment_of(), **fields})
    return cluster.client.jobs.Submit(spec).id


class Served:
    """Its `server`, of http.server, serves while this is entered."""

    server = None

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


class Site(Served):
    """A server of one file. `tls`: a folder with cert.pem and key.pem; `moved`: a path below this redirects there."""

    def __init__(self, content, tls=None, moved=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                self.answer(b"")

            def do_GET(self):
                self.answer(content)

            def answer(self, body):
                if moved and self.path.startswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", moved)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                first, last = 0, len(content) - 1
                if "Range" in self.headers and body:
                    first, last = map(int, self.headers["Range"].split("=")[1].split("-"))
                self.send_response(206 if "Range" in self.headers else 200)
                if "Range" in self.headers:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
                self.send_header("Content-Length", str(last - first + 1))
                self.end_headers()
                self.wfile.write(body[first:last + 1])

            def log_message(self, *arguments):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{tls}/cert.pem", f"{tls}/key.pem")
            # The handshake is done by the thread of the connection, when it reads.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"{'https' if tls else 'http'}://{self.host}"


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Handshakes that clients refuse are what some tests want."""
