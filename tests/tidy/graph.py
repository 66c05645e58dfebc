# SPDX-License-Identifier: Apache-2.0
"""Circles of a directed graph: the strongly connected components with more than one node (Tarjan, 1972)."""


def circles(edges):
    """`edges`: node -> nodes it points at. The circles, each sorted, the largest first."""
    index, low, on_stack = {}, {}, set()
    stack, found = [], []

    def begin(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        return node, iter(sorted(edges.get(node, ())))

    for start in sorted(edges):
        if start in index:
            continue
        path = [begin(start)]
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(close_component(node, stack, on_stack))
            elif following not in index:
                path.append(begin(following))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return sorted((sorted(one) for one in found if len(one) > 1), key=lambda one: (-len(one), one))


def close_component(node, stack, on_stack):
    component = []
    while not component or component[-1] != node:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return component


def by_folder(edges):
    """The same graph of the folders: which folder points at which other one."""
    folders = {}
    for node, others in edges.items():
        own = folder_of(node)
        folders.setdefault(own, set()).update(folder_of(other) for other in others if folder_of(other) != own)
    return folders


def folder_of(path):
    return path.rsplit("/", 1)[0]
