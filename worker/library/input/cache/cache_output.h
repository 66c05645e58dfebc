/* SPDX-License-Identifier: Apache-2.0
 * The data file of a cache while it is written: a header with a stamp, then elements with their ids
 * as iterator_state.h writes them. */
#ifndef CADRE_WORKER_INPUT_CACHE_CACHE_OUTPUT_H
#define CADRE_WORKER_INPUT_CACHE_CACHE_OUTPUT_H

#include "worker/library/input/cache/cache_index.h"
#include "worker/library/input/node/iterator_state.h"

#define CACHE_HEADER_BYTES 32

/* Zeroed with fd -1: none. */
struct cache_output {
    const char *path; /* borrowed */
    int fd;           /* for reading too */
    uint64_t written; /* in the file */
    size_t buffered;
    char *buffer;
    struct iterator_state_writer scratch;
};

/* What a data file of this stamp begins with. */
void cache_header_make(uint64_t stamp, char ret_header[CACHE_HEADER_BYTES]);

/* An empty file at `path`, whatever was there, with a stamp of its own. RESOURCE_EXHAUSTED: memory
 * or disk. On failure there is none. */
cadre_status cache_output_open(
    struct cache_output *output, const char *path, uint64_t *ret_stamp, struct cadre_error *error);

/* Adds an element; it can be read from the file after a flush. */
cadre_status cache_output_add(struct cache_output *output, const cadre_element *element,
    const struct id_list *ids, struct cache_entry *ret_entry, struct cadre_error *error);

cadre_status cache_output_flush(struct cache_output *output, struct cadre_error *error);

/* Flushes, sees to it that it outlives a loss of power, and gives it another name. */
cadre_status cache_output_publish(
    struct cache_output *output, const char *path, struct cadre_error *error);

/* Gives up the memory. The file is removed unless it was published; the descriptor stays open and
 * is the caller's. */
void cache_output_end(struct cache_output *output);

#endif
