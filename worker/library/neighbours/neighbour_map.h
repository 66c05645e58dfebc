/* SPDX-License-Identifier: Apache-2.0
 * Which task of a job asks the store for which bytes: the member with the highest weight, and the
 * weight is a hash of the member, the object and the segment of it (rendezvous hashing). All tasks
 * that know the same members find the same one, without a message. When a member comes or goes,
 * nothing moves but what it gets or had: one part in as many as there are members.
 *
 * Numbers alone: no I/O, no clock, no memory.
 *
 * Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous" (1996). */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_MAP_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_MAP_H

#include <stdint.h>

/* The number that stands for an object, from its path. */
uint64_t neighbour_object(const char *path);

/* The index of the member, of `count` (>= 1), whose part segment `segment` of the object is. `ids`
 * of members are unique, in any order, and the same for as long as they are members. */
uint32_t neighbour_owner(const uint64_t ids[], uint32_t count, uint64_t object, uint64_t segment);

#endif
