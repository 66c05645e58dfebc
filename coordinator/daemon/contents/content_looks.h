/* SPDX-License-Identifier: Apache-2.0
 * Whether contents are in the object store of --contents, asked for each by its name: of one that
 * a list alone showed, or did not show, because lists may be old. In a thread. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_LOOKS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_LOOKS_H

#include "common/base/sha256.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/objects/objects.h"

/* Several at a time. UNAVAILABLE: the store is away, and nothing is known. */
cadre_status content_looks(
    struct objects *objects, struct content_look *looks, size_t count, struct cadre_error *error);

#endif
