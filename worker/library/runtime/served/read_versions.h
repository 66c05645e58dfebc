/* SPDX-License-Identifier: Apache-2.0
 * What the shards' versions were when a variable was read last: by a closure, or outside of
 * closures by a thread. A push with a bound of staleness asks each shard by its own: shards that
 * are pushed to row by row are many pushes apart. */
#ifndef CADRE_RUNTIME_READ_VERSIONS_H
#define CADRE_RUNTIME_READ_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a shard that was not read. */
#define READ_VERSION_NONE UINT64_MAX

struct read_versions;

struct read_versions *read_versions_new(uint64_t shards); /* NULL: no memory */
void read_versions_free(struct read_versions *views);     /* NULL is allowed */

/* Keeps those that are not READ_VERSION_NONE, beside what `closure` has read of other shards;
 * closure 0: the calling thread. A thread's next closure begins with none. Any thread. */
void read_versions_record(struct read_versions *views, uint64_t closure, const uint64_t *versions);

/* Those of its last reads. False: it has read nothing, or so long ago that it is not known. */
bool read_versions_find(struct read_versions *views, uint64_t closure, uint64_t *ret_versions);

#endif
