/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/member_name.h"

#include "common/pure/assert.h"

static bool is_own(const struct member_name *name, uint64_t process)
{
    bool own = process == name->process;
    for (int i = 0; i < MEMBER_NAME_KNOWN; i++) {
        own = own || process == name->known[i];
    }
    return process != 0 && own;
}

enum member_name_verdict member_name_found(
    struct member_name *name, int64_t revision, uint64_t process, uint64_t now_us)
{
    CADRE_ASSERT(name->process != 0);
    name->revision = revision;
    name->found = process;
    if (revision == 0 || is_own(name, process)) {
        name->waits = false;
        return MEMBER_NAME_FREE;
    }
    if (!name->waits) {
        name->waits = true;
        name->seen_revision = revision;
        name->seen_us = now_us;
        return MEMBER_NAME_WAITS;
    }
    if (revision != name->seen_revision) {
        return MEMBER_NAME_TAKEN;
    }
    return now_us - name->seen_us > name->away_us ? MEMBER_NAME_FREE : MEMBER_NAME_WAITS;
}

void member_name_written(struct member_name *name, int64_t revision)
{
    CADRE_ASSERT(revision > 0);
    name->revision = revision;
    name->found = name->process;
    name->waits = false;
}
