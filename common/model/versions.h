/* SPDX-License-Identifier: Apache-2.0
 * The versions of a protocol that one end can serve, and the one that two ends use. */
#ifndef CADRE_MODEL_VERSIONS_H
#define CADRE_MODEL_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Both included. */
struct version_range {
    uint32_t oldest;
    uint32_t newest;
};

/* Whether it has this version. */
static inline bool version_range_has(struct version_range range, uint32_t version)
{
    return version >= range.oldest && version <= range.newest;
}

/* The newest version that both have. False: there is none. */
static inline bool version_range_common(
    struct version_range a, struct version_range b, uint32_t *ret_version)
{
    *ret_version = a.newest < b.newest ? a.newest : b.newest;
    return version_range_has(a, *ret_version) && version_range_has(b, *ret_version);
}

#endif
