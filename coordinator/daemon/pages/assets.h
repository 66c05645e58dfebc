/* SPDX-License-Identifier: Apache-2.0
 * The files of assets/, which the build puts into the program (embed.cmake). */
#ifndef CADRE_COORDINATOR_PAGES_ASSETS_H
#define CADRE_COORDINATOR_PAGES_ASSETS_H

#include <stddef.h>

struct asset {
    const char *name; /* "index.html" */
    const char *type; /* Content-Type */
    const char *etag; /* of its content, with quotes */
    const char *bytes;
    size_t size;
};

extern const struct asset assets[];
extern const size_t asset_count;

#endif
