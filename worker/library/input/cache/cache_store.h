/* SPDX-License-Identifier: Apache-2.0
 * Where a cache keeps its elements: in memory (cache_memory.c) or in files (cache_files.c). Filled
 * in order by one writer, as a whole or not at all; or by index, each element when it is first
 * read. Any thread may call; a writer belongs to one. */
#ifndef CADRE_WORKER_INPUT_CACHE_CACHE_STORE_H
#define CADRE_WORKER_INPUT_CACHE_CACHE_STORE_H

#include "worker/library/input/node/node.h"

struct cache_store;
struct cache_writer;

struct cache_store_ops {
    /* No iterator reads or writes any more. */
    void (*destroy)(struct cache_store *store);

    /* Whether all elements are there, and how many. */
    cadre_status (*look)(struct cache_store *store, bool *ret_complete, uint64_t *ret_count,
        struct cadre_error *error);

    /* Element `index`, where it is there: the caller's references; appends its ids. */
    cadre_status (*find)(struct cache_store *store, uint64_t index, bool *ret_found,
        cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

    /* By index: keeps element `index` of `count`, unless it is there or a writer is at work. */
    cadre_status (*put)(struct cache_store *store, uint64_t index, uint64_t count,
        const cadre_element *element, const struct id_list *ids, struct cadre_error *error);

    /* In order. *ret_writer is NULL when the store is complete, or another process or iterator
     * writes it: then it is not to be filled. */
    cadre_status (*begin)(
        struct cache_store *store, struct cache_writer **ret_writer, struct cadre_error *error);
    cadre_status (*add)(struct cache_writer *writer, const cadre_element *element,
        const struct id_list *ids, struct cadre_error *error);

    /* Both end the writer. commit: what was added is all there is. abandon: nothing is kept. */
    cadre_status (*commit)(struct cache_writer *writer, struct cadre_error *error);
    void (*abandon)(struct cache_writer *writer);
};

/* What each store begins with. */
struct cache_store {
    const struct cache_store_ops *ops;
};

struct cache_store *cache_memory_new(void);

/* Files that begin with `path`, which is copied, with the elements of `input`, which outlives the
 * store. Looks at nothing yet. NULL without memory. */
struct cache_store *cache_files_new(const char *path, cadre_dataset *input);

#endif
