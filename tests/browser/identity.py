# SPDX-License-Identifier: Apache-2.0
"""A certificate in the NSS database of a browser, and the authority that it trusts: as a user imports them."""
import json
import os
import shutil
import subprocess

from testing import HANG_S, Failure, skip


def called(*argv):
    done = subprocess.run(argv, capture_output=True, timeout=HANG_S, check=False)
    if done.returncode != 0:
        raise Failure(f"{argv[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")


class Identity:
    """`authority`: a folder with ca.pem. `own`: one with cert.pem and key.pem, which the browser shows the server at
    `origin` without asking; None: it has no certificate."""

    def __init__(self, origin, authority, own=None):
        self.origin = origin
        self.authority = authority
        self.own = own
        for name in ("certutil", "pk12util", "openssl"):
            if not shutil.which(name):
                skip(f"{name} is not installed (packages libnss3-tools and openssl)")

    def install(self, folder):
        """Into the folder that is both the browser's home and its profile, before it starts."""
        database = os.path.join(folder, ".pki", "nssdb")
        os.makedirs(database)
        database = f"sql:{database}"
        called("certutil", "-d", database, "-N", "--empty-password")
        called("certutil", "-d", database, "-A", "-n", "authority", "-t", "C,,", "-i",
               os.path.join(self.authority, "ca.pem"))
        if self.own is None:
            return
        bundle = os.path.join(folder, "own.p12")
        called("openssl", "pkcs12", "-export", "-in", os.path.join(self.own, "cert.pem"), "-inkey",
               os.path.join(self.own, "key.pem"), "-out", bundle, "-passout", "pass:", "-name", "own")
        called("pk12util", "-d", database, "-i", bundle, "-W", "")
        chosen = {f"{self.origin},*": {"setting": {"filters": [{}]}}}
        os.makedirs(os.path.join(folder, "Default"))
        with open(os.path.join(folder, "Default", "Preferences"), "w", encoding="utf-8") as file:
            json.dump({"profile": {"content_settings": {"exceptions": {"auto_select_certificate": chosen}}}}, file)
