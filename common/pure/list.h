/* SPDX-License-Identifier: Apache-2.0
 * Doubly linked lists of small numbers. The nodes are one array beside the objects; an object is in
 * at most one of the lists that share an array of nodes. */
#ifndef CADRE_PURE_LIST_H
#define CADRE_PURE_LIST_H

#include <stdint.h>

#include "common/pure/assert.h"

#define LIST_NONE UINT32_MAX

struct list_node {
    uint32_t prev;
    uint32_t next;
};

struct list {
    struct list_node *nodes;
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

static inline void list_init(struct list *list, struct list_node *nodes)
{
    *list = (struct list){.nodes = nodes, .first = LIST_NONE, .last = LIST_NONE};
}

/* Before `at`, which is in the list; LIST_NONE: at the end. */
static inline void list_insert(struct list *list, uint32_t at, uint32_t item)
{
    uint32_t prev = at == LIST_NONE ? list->last : list->nodes[at].prev;
    list->nodes[item] = (struct list_node){.prev = prev, .next = at};
    if (prev == LIST_NONE) {
        list->first = item;
    } else {
        list->nodes[prev].next = item;
    }
    if (at == LIST_NONE) {
        list->last = item;
    } else {
        list->nodes[at].prev = item;
    }
    list->count++;
}

static inline void list_append(struct list *list, uint32_t item)
{
    list_insert(list, LIST_NONE, item);
}

static inline void list_remove(struct list *list, uint32_t item)
{
    struct list_node node = list->nodes[item];
    CADRE_ASSERT(list->count > 0);
    if (node.prev == LIST_NONE) {
        CADRE_ASSERT(list->first == item);
        list->first = node.next;
    } else {
        list->nodes[node.prev].next = node.next;
    }
    if (node.next == LIST_NONE) {
        CADRE_ASSERT(list->last == item);
        list->last = node.prev;
    } else {
        list->nodes[node.next].prev = node.prev;
    }
    list->count--;
}

/* Takes the first one out; LIST_NONE when the list is empty. */
static inline uint32_t list_take(struct list *list)
{
    uint32_t item = list->first;
    if (item != LIST_NONE) {
        list_remove(list, item);
    }
    return item;
}

#endif
