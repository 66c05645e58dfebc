# SPDX-License-Identifier: Apache-2.0
"""An authority of its own, and folders with certificates of it, made by `cadre pki`."""
import os
import subprocess

from cluster import clean_environment, program
from testing import HANG_S, check_equal


class Pki:
    def __init__(self, folder, name="pki"):
        self.folder = folder
        self.authority = os.path.join(folder, name)
        self.cadre("init", self.authority)

    @staticmethod
    def cadre(*arguments, status=0):
        done = subprocess.run([program("cadre"), "pki", *arguments], capture_output=True, timeout=HANG_S, check=False,
                              env=clean_environment(), text=True)
        check_equal(done.returncode, status, f"cadre pki {' '.join(arguments)}: {done.stderr}")
        return done.stdout + done.stderr

    def issue(self, role, name, *options, into=None):
        out = into or os.path.join(self.folder, f"tls-{os.path.basename(self.authority)}-{role}-{name}")
        self.cadre("issue", self.authority, role, name, "-o", out, *options)
        return out
