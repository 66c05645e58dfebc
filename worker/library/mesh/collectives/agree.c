/* SPDX-License-Identifier: Apache-2.0
 * Exchanging texts, and the sentence about the first two calls that differ. */
#include "worker/library/mesh/collectives/collective.h"

#include <stdio.h>
#include <string.h>

/* A slot's call as it was posted. Another process may have written anything there. */
static struct call_record record_of(const struct replica *replica, uint32_t slot)
{
    const struct group_post *post = mesh_posted(replica, slot);
    struct call_record record = {
        .replica = replica->host->globals[slot],
        .wrong = (post->flags & GROUP_PROBLEM) != 0,
        .shape = {.kind = post->kind,
            .op = post->op,
            .dtype = post->dtype,
            .root = post->root,
            .count = post->count,
            .bytes = post->bytes,
            .layout = post->layout,
            .key = post->key},
    };
    memcpy(record.text, replica->host->group.slots[slot].text, sizeof record.text);
    record.text[sizeof record.text - 1] = '\0';
    return record;
}

struct call_record mesh_agree_record(const struct replica *replica, const struct call *call)
{
    struct call_record record = {.replica = replica->host->globals[0], .shape = call->shape};
    snprintf(record.text, sizeof record.text, "%s", call->text != NULL ? call->text : "");
    return record;
}

cadre_status mesh_agree_fold(
    struct replica *replica, const struct call *call, struct agreement *ret_agreement)
{
    struct group *group = &replica->host->group;
    const char *text = call->wrong ? replica->text : call->text;
    snprintf(group->slots[replica->slot].text, GROUP_TEXT_BYTES, "%s", text != NULL ? text : "");
    CADRE_TRY(mesh_step(replica, call));
    *ret_agreement = (struct agreement){.first = record_of(replica, 0)};
    for (uint32_t slot = 1; slot < group->slot_count; slot++) {
        struct agreement other = {.first = record_of(replica, slot)};
        mesh_agreement_join(ret_agreement, &other);
    }
    return CADRE_OK;
}

cadre_status mesh_agree_explain(struct replica *replica, const struct call *call)
{
    struct agreement agreement;
    CADRE_TRY(mesh_agree_fold(replica, call, &agreement));
    mesh_agreement_explain(&agreement, replica->text, sizeof replica->text);
    return CADRE_INVALID_ARGUMENT;
}
