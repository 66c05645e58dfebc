# SPDX-License-Identifier: Apache-2.0
"""What a browser asks of the coordinator: requests below /api/, and requests byte by byte that no browser makes."""
import http.client
import json
import socket

from pages import http_port
from testing import check_equal, check_in

# gRPC on loopback without TLS, so that the pages are as open as it is.
OPEN = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]


def request(port, path, headers=None, method="GET", body=None):
    """(status, body as bytes, headers)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def own(coordinator):
    """The headers with which the coordinator's own page acts."""
    port = http_port(coordinator)
    return {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/json"}


def refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def fetch(coordinator, path, status=200, **options):
    """The object that the coordinator answers, read strictly."""
    seen, body, headers = request(http_port(coordinator), path, **options)
    check_equal((seen, headers["Content-Type"]), (status, "application/json"), f"{path}: {body[:200]}")
    return json.loads(body.decode(), parse_constant=refuse_constant)


def printed(cluster, *arguments):
    """What --json of the command says."""
    return json.loads(cluster.cadre(*arguments, "--json").stdout)


def error_of(coordinator, path, status, code, part, **options):
    error = fetch(coordinator, path, status, **options)
    check_equal((sorted(error), error["code"]), (["code", "message"], code), path)
    check_in(part, error["message"], path)


def raw(port, text, bytes_max=1 << 20):
    """What comes back until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(text)
        got = b""
        while len(got) < bytes_max:
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                return got
            if not part:
                return got
            got += part
        return got
