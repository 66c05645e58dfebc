/* SPDX-License-Identifier: Apache-2.0
 * What the shards' versions were when a variable was read last: by a closure, or outside of
 * closures by a thread. A push with a bound of staleness asks each shard by its own: shards that
 * are pushed to row by row are many pushes apart. */
#ifndef CADRE_RUNTIME_SERVED_VIEWS_H
#define CADRE_RUNTIME_SERVED_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a shard that was not read. */
#define VIEW_NONE UINT64_MAX

struct served_views;

struct served_views *served_views_new(uint64_t shards); /* NULL: no memory */
void served_views_free(struct served_views *views);     /* NULL is allowed */

/* Keeps those that are not VIEW_NONE, beside what `closure` has read of other shards; closure 0:
 * the calling thread. A thread's next closure begins with none. Any thread. */
void served_views_keep(struct served_views *views, uint64_t closure, const uint64_t *versions);

/* Those of its last reads. False: it has read nothing, or so long ago that it is not known. */
bool served_views_find(struct served_views *views, uint64_t closure, uint64_t *ret_versions);

#endif
