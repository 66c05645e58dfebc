# SPDX-License-Identifier: Apache-2.0
"""`cadre submit --file` of folders and patterns: what tasks find in their working folder, and what is refused."""
import os

from cluster import Cluster, script
from testing import check, check_equal, check_in, run

LISTS = script('find . -type f ! -name list -exec grep -H "" {} + | sort')


def make(cluster):
    """A folder with the program and its data, in which the commands are run."""
    folder = os.path.join(cluster.folder, "app")
    for name in ("data/a.bin", "data/b.bin", "data/deep/.hidden", "data/deep/c.bin", "conf/small.json",
                 "conf/large.json"):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"of {name}\n")
    os.symlink("../../conf/small.json", f"{folder}/data/deep/link.json")
    with open(f"{folder}/list", "wb") as file:
        file.write(LISTS)
    os.chmod(f"{folder}/list", 0o755)
    return folder


def test_folders_and_patterns():
    with Cluster() as cluster:
        folder = make(cluster)

        def submit(*files, status=0):
            options = [word for file in files for word in ("--file", file)]
            return cluster.cadre("submit", *options, "./list", cwd=folder, status=status)

        data = ["./data/a.bin:of data/a.bin", "./data/b.bin:of data/b.bin", "./data/deep/.hidden:of data/deep/.hidden",
                "./data/deep/c.bin:of data/deep/c.bin", "./data/deep/link.json:of conf/small.json"]
        check_equal(submit("data").stdout.decode().splitlines(), data, "a folder")
        check_equal(submit("conf/*.json", "data/deep:more").stdout.decode().splitlines(),
                    ["./large.json:of conf/large.json", "./more/.hidden:of data/deep/.hidden",
                     "./more/c.bin:of data/deep/c.bin", "./more/link.json:of conf/small.json",
                     "./small.json:of conf/small.json"], "a pattern, and a folder with a name")
        check_in("did you mean conf?", submit("cnof", status=1).stderr.decode(), "a misspelled folder")
        said = submit("data/*.npy", status=1).stderr.decode()
        check_equal(said, "cadre submit: --file: no file matches data/*.npy\n", "a pattern without a match")
        said = submit("data/a.bin", "data/b.bin:a.bin", status=2).stderr.decode()
        check("data/a.bin" in said and "data/b.bin" in said, f"both files of one name are named: {said}")
        check_in("would both be a.bin in the working folder", said, "the sentence")


if __name__ == "__main__":
    run(globals())
