/* SPDX-License-Identifier: Apache-2.0
 * The shards' versions at the last read of a variable: by a closure, or outside of closures by a
 * thread. A push with a bound of staleness compares each shard with its own version, because shards
 * that are pushed to row by row are many pushes apart. */
#ifndef CADRE_RUNTIME_READ_VERSIONS_H
#define CADRE_RUNTIME_READ_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a shard that was not read. */
#define READ_VERSION_NONE UINT64_MAX

struct read_versions;

/* NULL: no memory. */
struct read_versions *read_versions_new(uint64_t shards);
/* NULL is allowed. */
void read_versions_free(struct read_versions *views);

/* Keeps those that are not READ_VERSION_NONE, beside what `closure` has read of other shards;
 * closure 0: the calling thread. A thread's next closure begins with none. Any thread. */
void read_versions_record(struct read_versions *views, uint64_t closure, const uint64_t *versions);

/* The versions of its last reads. False: it has read nothing, or its view was reused. */
bool read_versions_find(struct read_versions *views, uint64_t closure, uint64_t *ret_versions);

#endif
