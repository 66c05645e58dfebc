# SPDX-License-Identifier: Apache-2.0
"""What a disk may hold after a power cut: the records of a trace as a file system that keeps nothing which was not
synced, and everything in between. README.md says what may be lost."""
import itertools
import os
import struct
from dataclasses import dataclass, field

BLOCK = 512  # what a disk writes whole
HEAD = struct.Struct("<IIIIQQQ")
(CREATE, FOLDER, SYMLINK, LINK, RENAME, UNLINK, WRITE, SIZE, HOLE, SYNC, SYNC_ALL, OUTPUT, MARK, UNKNOWN,
 MODE) = range(1, 16)


@dataclass
class Record:
    kind: int
    pid: int
    inode: int
    a: int
    b: int
    path: str
    data: bytes


def read_trace(path):
    with open(path, "rb") as file:
        content = file.read()
    records = []
    at = 0
    while at + HEAD.size <= len(content):
        path_bytes, data_bytes, pid, kind, inode, a, b = HEAD.unpack_from(content, at)
        data_at = at + HEAD.size + path_bytes
        if data_at + data_bytes > len(content):
            break  # it is being written
        records.append(Record(kind, pid, inode, a, b, content[at + HEAD.size:data_at].decode(),
                              content[data_at:data_at + data_bytes]))
        at = data_at + data_bytes
    return records


def put_record(trace, kind, path="", data=b"", inode=0):
    """One of the test's own."""
    name = path.encode()
    fd = os.open(trace, os.O_WRONLY | os.O_APPEND)
    os.write(fd, HEAD.pack(len(name), len(data), os.getpid(), kind, inode, 0, 0) + name + data)
    os.close(fd)


# ---- what lies on the disk ----

@dataclass
class File:
    """`durable` is on the disk; each change of `pending` may be, block by block: (offset, content) or (size, None)."""
    mode: int
    durable: bytes = b""
    pending: list = field(default_factory=list)

    def __post_init__(self):
        self.whole = None  # with all that is pending; of so many changes
        self.whole_of = -1

    def sizes(self):
        """After no change, after the first, and so on."""
        sizes = [len(self.durable)]
        for offset, content in self.pending:
            sizes.append(offset if content is None else max(sizes[-1], offset + len(content)))
        return sizes

    def blocks(self):
        """Block -> the changes that are about it, in order."""
        sizes = self.sizes()
        blocks = {}
        for number, (offset, content) in enumerate(self.pending):
            begin = offset if content is not None else min(offset, sizes[number])
            end = offset + len(content) if content is not None else max(sizes[:number + 1])
            for block in range(begin // BLOCK, (end + BLOCK - 1) // BLOCK):
                blocks.setdefault(block, []).append(number)
        return blocks

    def apply(self, content, number, begin, end):
        """One change, as far as it is about these bytes."""
        offset, fresh = self.pending[number]
        if fresh is None:
            begin = max(begin, offset)
            if end > begin:
                content[begin:end] = bytes(end - begin)
            return
        begin, end = max(begin, offset), min(end, offset + len(fresh))
        if end > begin:
            content[begin:end] = fresh[begin - offset:end - offset]

    def content(self, versions, size):
        """`versions`: block -> how many of its changes are there; None: all of all. A block of which nothing came is
        zeros where the file has grown."""
        sizes = self.sizes()
        content = bytearray(self.durable).ljust(max(sizes), b"\0")
        if versions is None:
            for number in range(len(self.pending)):
                self.apply(content, number, 0, len(content))
        else:
            blocks = self.blocks()
            for block, count in versions.items():
                for number in blocks[block][:count]:
                    self.apply(content, number, block * BLOCK, min(len(content), (block + 1) * BLOCK))
        return bytes(content[:size])

    def newest(self):
        if self.whole_of != len(self.pending):
            self.whole = self.content(None, self.sizes()[-1]) if self.pending else self.durable
            self.whole_of = len(self.pending)
        return self.whole

    def sync(self):
        self.durable = self.newest()
        self.pending = []
        self.whole_of = -1


class Link:
    def __init__(self, says):
        self.says = says


class Folder:
    def __init__(self, mode=0o755):
        self.mode = mode
        self.now = {}
        self.durable = {}


class Change:
    """Of names, whole or not at all: a rename is two. cells: (folder, name, what it is then or None)."""

    def __init__(self, *cells):
        self.cells = cells

    def keys(self):
        return [(id(folder), name) for folder, name, _ in self.cells]


class Disk:
    """Takes records one after another. `ignored`: a function of a path; such syncs do nothing."""

    def __init__(self, ignored=lambda path: False):
        self.root = Folder()
        self.by_inode = {}
        self.pending = []  # changes of names
        self.ignored = ignored

    def find(self, path):
        """The folder and the last name; (None, name): that folder was not recorded."""
        *folders, name = path.split("/")
        at = self.root
        for part in folders:
            at = at.now.get(part) if isinstance(at, Folder) else None
        return (at if isinstance(at, Folder) else None), name

    def look(self, path):
        folder, name = self.find(path)
        return folder.now.get(name) if folder is not None else None

    def change(self, *cells):
        self.pending.append(Change(*cells))
        for folder, name, what in cells:
            if what is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = what

    def add(self, path, what):
        folder, name = self.find(path)
        if folder is not None:
            self.change((folder, name, what))

    def take(self, record):
        kind = record.kind
        if kind == UNKNOWN:
            raise ValueError(f"{record.path}: {record.data.decode()} cannot be replayed")
        if kind == CREATE:
            self.by_inode[record.inode] = File(record.a)
            self.add(record.path, self.by_inode[record.inode])
        elif kind == FOLDER:
            self.by_inode[record.inode] = Folder(record.a or 0o755)
            self.add(record.path, self.by_inode[record.inode])
        elif kind == SYMLINK:
            self.add(record.path, Link(record.data.decode()))
        elif kind in (RENAME, LINK):
            self.rename(record.data.decode(), record.path, kind == LINK)
        elif kind == UNLINK:
            folder, name = self.find(record.path)
            if folder is not None and name in folder.now:
                self.change((folder, name, None))
        elif kind in (WRITE, SIZE, HOLE, MODE):
            self.write(record)
        elif kind == SYNC_ALL:
            self.sync_all()
        elif kind == SYNC and not self.ignored(record.path):
            self.sync(self.root if record.path == "." else self.by_inode.get(record.inode))

    def rename(self, old, fresh, stays):
        old_folder, old_name = self.find(old)
        new_folder, new_name = self.find(fresh)
        what = old_folder.now.get(old_name) if old_folder is not None else None
        if what is None or new_folder is None:
            return
        there = (new_folder, new_name, what)
        self.change(*([there] if stays else [(old_folder, old_name, None), there]))

    def write(self, record):
        file = self.by_inode.get(record.inode)
        if file is None or (isinstance(file, Folder) and record.kind != MODE):
            return  # outside of what is replayed
        if record.kind == MODE:
            file.mode = record.a  # of what is lost with a power cut, this is no part
        elif record.kind == SIZE:
            file.pending.append((record.a, None))
        elif record.kind == HOLE:
            length = min(record.b, max(0, file.sizes()[-1] - record.a))
            file.pending.append((record.a, bytes(length)))
        else:
            file.pending.append((record.a, record.data))

    # ---- syncs ----

    def settle(self, wanted):
        """The changes that `wanted` says so of are on the disk, and so is what came before them at the same names."""
        keys = set()
        durable = set()
        for number in range(len(self.pending) - 1, -1, -1):
            change = self.pending[number]
            if wanted(change) or keys.intersection(change.keys()):
                keys.update(change.keys())
                durable.add(number)
        for number in sorted(durable):
            put_names(self.pending[number], lambda folder: folder.durable)
        self.pending = [change for number, change in enumerate(self.pending) if number not in durable]

    def sync(self, what):
        if isinstance(what, File):
            what.sync()
        elif what is not None:
            self.settle(lambda change: any(folder is what for folder, _, _ in change.cells))

    def sync_all(self):
        self.settle(lambda change: True)
        for file in self.by_inode.values():
            if isinstance(file, File):
                file.sync()

    # ---- what may be left ----

    def tree(self, names, content, below=""):
        """path -> what is there. names(number): whether that change of a name came to the disk; content(file)."""
        entries = {}
        blocked = set()
        for number, change in enumerate(self.pending):
            if blocked.intersection(change.keys()) or not names(number):
                blocked.update(change.keys())
                continue
            put_names(change, lambda folder: entries.setdefault(id(folder), dict(folder.durable)))
        made = {}
        self.walk(self.root, "", entries, content, made)
        return {path: what for path, what in made.items() if path.split("/")[0] == below or below == ""}

    def walk(self, folder, prefix, entries, content, made):
        for name, what in entries.get(id(folder), folder.durable).items():
            path = prefix + name
            if isinstance(what, Folder):
                made[path] = what.mode
                self.walk(what, path + "/", entries, content, made)
            elif isinstance(what, Link):
                made[path] = what.says
            else:
                made[path] = (content(what), what.mode)

    def dirty(self):
        return [file for file in self.by_inode.values() if isinstance(file, File) and file.pending]

    def states(self, below, random, draws, singles):
        """Trees below a folder, the least first. All there are, when these are few; else those of which one can say
        what they lack, and some that are drawn."""
        few = self.few_states(6 + 2 * singles + draws)
        if few is not None:
            for names, content in few:
                yield self.tree(names, content, below)
            return
        dirty = self.dirty()
        for names in (False, True):
            for content in (least, grown, File.newest):
                yield self.tree(lambda number, names=names: names, content, below)
        numbers = list(range(len(self.pending)))
        for lost in random.sample(numbers, min(singles, len(numbers))):
            yield self.tree(lambda number, lost=lost: number != lost, File.newest, below)
        for lost in random.sample(dirty, min(singles, len(dirty))):
            yield self.tree(lambda number: True,
                            lambda file, lost=lost: grown(file) if file is lost else file.newest(), below)
        for _ in range(draws):
            kept = [random.random() < 0.5 for _ in self.pending]
            drawn = {id(file): draw(file, random) for file in dirty}
            yield self.tree(kept.__getitem__, lambda file, drawn=drawn: drawn.get(id(file), file.durable), below)

    def few_states(self, most):
        """Each combination, as the two functions that tree() takes; None: they are more than `most`."""
        dirty = self.dirty()
        if sum(len(file.pending) for file in dirty) + len(self.pending) > 8:
            return None
        cells = [[False, True] for _ in self.pending]
        for file in dirty:
            cells.append(sorted(set(file.sizes())))
            cells += [range(len(changes) + 1) for changes in file.blocks().values()]
        count = 1
        for cell in cells:
            count *= len(cell)
            if count > most:
                return None
        return [self.combination(dirty, choice) for choice in itertools.product(*cells)]

    def combination(self, dirty, choice):
        names = list(choice[:len(self.pending)])
        rest = iter(choice[len(self.pending):])
        contents = {}
        for file in dirty:
            size = next(rest)
            contents[id(file)] = file.content({block: next(rest) for block in file.blocks()}, size)
        return names.__getitem__, lambda file: contents.get(id(file), file.durable)


def put_names(change, entries_of):
    for folder, name, what in change.cells:
        if what is None:
            entries_of(folder).pop(name, None)
        else:
            entries_of(folder)[name] = what


def least(file):
    return file.durable


def grown(file):
    """Its newest size, and none of what was written."""
    return file.content({}, file.sizes()[-1]) if file.pending else file.durable


def draw(file, random):
    versions = {block: random.randint(0, len(changes)) for block, changes in file.blocks().items()}
    return file.content(versions, random.choice(file.sizes()))


def put_on_disk(tree, folder):
    """Makes it real; `folder` is there and empty."""
    for path, what in tree.items():
        place = os.path.join(folder, path)
        if isinstance(what, int):
            os.mkdir(place)
            os.chmod(place, what)
        elif isinstance(what, str):
            os.symlink(what, place)
        else:
            with open(place, "wb") as file:
                file.write(what[0])
            os.chmod(place, what[1])
