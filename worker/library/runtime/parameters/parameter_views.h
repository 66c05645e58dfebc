/* SPDX-License-Identifier: Apache-2.0
 * What the shards' versions were when a parameter was read. A program is given one number, the
 * least of them; a push that is based on it asks each shard by its own: shards that are pushed to
 * row by row are many pushes apart. */
#ifndef CADRE_RUNTIME_PARAMETER_VIEWS_H
#define CADRE_RUNTIME_PARAMETER_VIEWS_H

#include <stdint.h>

/* Of a shard that was not read. */
#define VIEW_NONE UINT64_MAX

struct parameter_views;

struct parameter_views *parameter_views_new(uint64_t shards); /* NULL: no memory */
void parameter_views_free(struct parameter_views *views);     /* NULL is allowed */

/* Keeps them, as what the calling thread has read; returns the least. The newest ones of all
 * threads are kept. Any thread. */
uint64_t parameter_views_keep(struct parameter_views *views, const uint64_t *versions);

/* Those of the newest read that gave the number `least`, of the calling thread's if it can be; of
 * one that is not known any more all are `least`. */
void parameter_views_find(struct parameter_views *views, uint64_t least, uint64_t *ret_versions);

#endif
