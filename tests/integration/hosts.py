# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: network namespaces on one switch. A daemon that runs on a host has its own loopback and one
cable, which can be pulled: then no message arrives, as when a machine dies.

    switch namespace:  bridge ── veth ── host 0: 127.77.0.1
                          └───── veth ── host 1: 127.77.1.1

Daemons without TLS listen on loopback addresses only, so the hosts' addresses are such, routed over the cables."""
import os
import subprocess

from testing import skip


class Hosts:
    """with Hosts(3) as hosts: Daemon.argv = hosts.on(1, argv) ..."""

    def __init__(self, count):
        self.count = count
        self.prefix = f"cadre{os.getpid()}"
        self.switch = f"{self.prefix}-switch"
        self.made = []

    def name(self, host):
        return f"{self.prefix}-h{host}"

    @staticmethod
    def address(host):
        return f"127.77.{host}.1"

    def on(self, host, argv):
        """The command line that runs `argv` on a host."""
        return ["ip", "netns", "exec", self.name(host), *argv]

    def cut(self, host):
        self.ip("-n", self.switch, "link", "set", f"port{host}", "down")

    def heal(self, host):
        self.ip("-n", self.switch, "link", "set", f"port{host}", "up")

    def mute(self, host, others):
        """What the host says does not come to the others; what they say comes to it."""
        for other in others:
            self.ip("-n", self.name(host), "route", "add", "blackhole", f"{self.address(other)}/32")

    def unmute(self, host, others):
        for other in others:
            self.ip("-n", self.name(host), "route", "del", "blackhole", f"{self.address(other)}/32")

    @staticmethod
    def ip(*arguments, check=True):
        return subprocess.run(["ip", *arguments], check=check, capture_output=True)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        self.ip("-n", name, "link", "set", "lo", "up")

    def settings(self, name, device):
        for key in ("all", device):
            for what, value in (("route_localnet", 1), ("rp_filter", 0)):
                path = f"/proc/sys/net/ipv4/conf/{key}/{what}"
                self.ip("netns", "exec", name, "sh", "-c", f"echo {value} >{path}")

    def plug(self, host):
        name = self.name(host)
        self.add(name)
        self.ip("-n", name, "link", "add", "cable", "type", "veth", "peer", "name", f"port{host}", "netns",
                self.switch)
        self.settings(name, "cable")
        self.ip("-n", name, "link", "set", "cable", "up")
        self.ip("-n", name, "route", "del", "local", "127.0.0.0/8", "dev", "lo", "table", "local")
        self.ip("-n", name, "addr", "add", f"{self.address(host)}/16", "dev", "cable")
        self.ip("-n", self.switch, "link", "set", f"port{host}", "master", "bridge")
        self.heal(host)

    def __enter__(self):
        try:
            self.add(self.switch)
            self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
            self.ip("-n", self.switch, "link", "set", "bridge", "up")
            for host in range(self.count):
                self.plug(host)
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            said = getattr(error, "stderr", b"") or b""
            skip(f"no network namespaces can be made here: {error} {said.decode(errors='replace').strip()}")
        return self

    def remove(self):
        for name in reversed(self.made):
            self.ip("netns", "del", name, check=False)
        self.made = []

    def __exit__(self, kind, error, trace):
        self.remove()
