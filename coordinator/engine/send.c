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

/* A message of an action, and the entry of the shared log that it waits for. */
struct sending {
    struct engine *engine;
    uint64_t entry;
};

static void send_down(void *user, struct link_id link, const struct agent_down *down)
{
    const struct sending *sending = user;
    if (sending->entry != 0) {
        engine_log_delay_down(sending->engine, sending->entry, link, down);
    } else {
        sending->engine->sink.down(sending->engine->user, link, down);
    }
}

static const struct job_spec *spec_of(void *user, struct job_id job)
{
    const struct sending *sending = user;
    const struct directory_entry *entry = directory_find(&sending->engine->directory, job);
    return entry != NULL ? &entry->spec : NULL;
}

static void key_of(void *user, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    derive_key(((const struct sending *)user)->engine, job, generation, ret_key);
}

static struct members_sent *members_of(void *user, struct job_id job)
{
    const struct sending *sending = user;
    struct directory_entry *entry = directory_find(&sending->engine->directory, job);
    return entry != NULL ? &entry->members_sent : NULL;
}

static void note_start(void *user, struct job_id job, uint32_t slot)
{
    engine_note_task(((const struct sending *)user)->engine, job, slot);
}

static void send_answer(struct engine *engine, const struct core_action *action, uint64_t entry)
{
    if (entry == 0) {
        engine->sink.answer(engine->user, action->answer.call, action->answer.code,
            action->answer.job, action->answer.queued_before, action->answer.text);
        return;
    }
    const struct delayed_item item = {.kind = DELAYED_ANSWER,
        .entry = entry,
        .call = action->answer.call,
        .job = action->answer.job,
        .code = action->answer.code,
        .queued_before = action->answer.queued_before};
    engine_log_delay(engine, &item, action->answer.text, strlen(action->answer.text) + 1);
}

static void send_refusal(struct engine *engine, const struct core_action *action, uint64_t entry)
{
    if (entry == 0) {
        engine->sink.refuse(
            engine->user, action->refuse.link, action->refuse.code, action->refuse.text);
        return;
    }
    const struct delayed_item item = {.kind = DELAYED_REFUSE,
        .entry = entry,
        .link = action->refuse.link,
        .code = action->refuse.code};
    engine_log_delay(engine, &item, action->refuse.text, strlen(action->refuse.text) + 1);
}

void engine_send(struct engine *engine, const struct core_action *action)
{
    struct sending sending = {.engine = engine, .entry = engine_log_awaited(engine, action)};
    const struct sender sender = {.core = engine->core,
        .lease_us = engine->options.core.lease_us,
        .grace_us = engine->options.core.grace_us,
        .term = engine->term,
        .user = &sending,
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
        send_answer(engine, action, sending.entry);
        break;
    case CORE_ACTION_REFUSE:
        send_refusal(engine, action, sending.entry);
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
