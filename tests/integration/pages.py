# SPDX-License-Identifier: Apache-2.0
"""The pages of a daemon's --http 127.0.0.1:0."""
import http.client
import re

from testing import wait_for


def http_port(daemon):
    found = wait_for(f"{daemon.name} tells its port",
                     lambda: re.findall(r"http: listening address=\S+ port=(\d+)", daemon.log()))
    return int(found[-1])


def ask(daemon, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", http_port(daemon), timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()
