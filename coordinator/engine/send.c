/* SPDX-License-Identifier: Apache-2.0
 * The engine as a sender: its sink, and the keys of generations. */
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"
#include "coordinator/engine/messages.h"

static void put_le(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Every generation has a key of its own, derived from the store's secret, so that a restarted
 * coordinator derives it again and no record holds it. */
static void derive_key(const struct engine *engine, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    uint8_t text[8 + 3 * 8] = {'c', 'a', 'd', 'r', 'e', 'k', 'e', 'y'};
    put_le(text + 8, job.n, 8);
    put_le(text + 16, generation.number, 8);
    put_le(text + 24, generation.nonce, 8);
    unsigned size = LIMIT_JOB_KEY_BYTES;
    const unsigned char *made =
        HMAC(EVP_sha256(), engine->secret, STORE_SECRET_BYTES, text, sizeof text, ret_key, &size);
    CADRE_ASSERT(made != NULL && size == LIMIT_JOB_KEY_BYTES);
}

static void send_down(void *user, struct link_id link, const struct agent_down *down)
{
    const struct engine *engine = user;
    engine->sink.down(engine->user, link, down);
}

static const struct job_spec *spec_of(void *user, struct job_id job)
{
    const struct engine *engine = user;
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL ? &entry->spec : NULL;
}

static void key_of(void *user, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    derive_key(user, job, generation, ret_key);
}

static struct members_sent *members_of(void *user, struct job_id job)
{
    const struct engine *engine = user;
    struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL ? &entry->members_sent : NULL;
}

static void note_start(void *user, struct job_id job, uint32_t slot)
{
    engine_note_task(user, job, slot);
}

void engine_send(struct engine *engine, const struct core_action *action)
{
    const struct engine_sink *sink = &engine->sink;
    const struct sender sender = {.core = engine->core,
        .lease_us = engine->options.core.lease_us,
        .grace_us = engine->options.core.grace_us,
        .term = engine->term,
        .user = engine,
        .down = send_down,
        .spec = spec_of,
        .key = key_of,
        .members = members_of,
        .starts = note_start,
        .whole_max = engine->options.whole_max};
    struct cadre_error error;
    CADRE_ASSERT(action->type != CORE_ACTION_RECORD);
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        sink->answer(engine->user, action->answer.call, action->answer.code, action->answer.job,
            action->answer.queued_before, action->answer.text);
        break;
    case CORE_ACTION_REFUSE:
        sink->refuse(engine->user, action->refuse.link, action->refuse.code, action->refuse.text);
        break;
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
        engine_note_changed(engine, action->job);
        break;
    default:
        if (messages_dispatch(&sender, action, &error) != CADRE_OK) {
            engine_break(engine, &error);
        }
        break;
    }
}
