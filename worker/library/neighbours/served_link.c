/* SPDX-License-Identifier: Apache-2.0
 * See served_link.h. */
#include "worker/library/neighbours/served_link.h"

#include <string.h>

#include "common/base/clock.h"
#include "worker/library/checksum/crc32c.h"

/* A peer that has begun a question sends the rest of it, and takes the answer, without a pause of
 * so long. */
#define PATIENCE_US (10 * CADRE_US_PER_S)

static bool is_patient(void *unused, uint64_t silent_us)
{
    (void)unused;
    return silent_us < PATIENCE_US;
}

static const struct link_wait patience = {.goes_on = is_patient};

static void set_state(
    struct served_link *served, const struct served_terms *terms, enum served_state state)
{
    pthread_mutex_lock(terms->lock);
    served->state = state;
    served->since_us = clock_monotonic_us();
    pthread_mutex_unlock(terms->lock);
}

static bool served_link_send(struct served_link *served, const struct served_terms *terms,
    const struct frame *frame, void *bytes)
{
    struct cadre_error unsaid = {0};
    struct iovec piece = {.iov_base = bytes, .iov_len = (size_t)frame->bytes};
    set_state(served, terms, SERVED_SENDING);
    return link_send_while(served->link, frame, &piece, frame->bytes > 0 ? 1 : 0, &patience,
               &unsaid) == CADRE_OK;
}

static bool refuse(
    struct served_link *served, const struct served_terms *terms, uint64_t id, cadre_status code)
{
    const struct frame frame = {.kind = NEIGHBOUR_REFUSED, .code = (uint32_t)code, .id = id};
    return served_link_send(served, terms, &frame, NULL);
}

/* All pieces, or those before what could not be read, and then a refusal. */
static bool send_pieces(struct served_link *served, const struct served_terms *terms,
    struct object *object, const struct neighbour_ask *ask, uint64_t id)
{
    struct cadre_error unsaid = {0};
    uint64_t end = ask->offset + ask->count;
    object_ask(object, ask->offset, ask->count); /* its blocks at the same time */
    for (uint64_t at = ask->offset; at < end;) {
        struct frame frame = {
            .kind = NEIGHBOUR_PIECE, .id = id, .bytes = neighbour_piece_bytes(ask, at)};
        set_state(served, terms, SERVED_READING);
        cadre_status status = object_read(object, at, terms->piece, (size_t)frame.bytes, &unsaid);
        if (status != CADRE_OK) {
            return refuse(served, terms, id, status);
        }
        frame.args[0] = at;
        frame.args[1] = crc32c(0, terms->piece, (size_t)frame.bytes);
        if (!served_link_send(served, terms, &frame, terms->piece)) {
            return false;
        }
        at += frame.bytes;
    }
    return true;
}

static bool answer(struct served_link *served, const struct served_terms *terms,
    const struct neighbour_ask *ask, uint64_t id)
{
    struct cadre_error unsaid = {0};
    struct object *object = NULL;
    if (!terms->answers(terms->user, link_peer(served->link), ask)) {
        return refuse(served, terms, id, CADRE_FAILED_PRECONDITION);
    }
    set_state(served, terms, SERVED_READING);
    cadre_status status = neighbour_objects_take(terms->objects, ask->path, &object, &unsaid);
    if (status != CADRE_OK) {
        return refuse(served, terms, id, status);
    }
    bool same =
        object_bytes(object) == ask->size && strcmp(object_version(object), ask->version) == 0;
    bool goes_on = same ? send_pieces(served, terms, object, ask, id)
                        : refuse(served, terms, id, CADRE_FAILED_PRECONDITION);
    neighbour_objects_give(terms->objects, object, same);
    return goes_on;
}

static bool receive(
    struct served_link *served, const struct frame *frame, struct neighbour_ask *ret_ask)
{
    struct cadre_error unsaid = {0};
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    return neighbour_ask_expects(frame) &&
           link_receive_bytes_while(served->link, name, (size_t)frame->bytes, &patience, &unsaid) ==
               CADRE_OK &&
           neighbour_ask_read(frame, name, ret_ask);
}

bool served_link_serve(struct served_link *served, const struct served_terms *terms)
{
    struct cadre_error unsaid = {0};
    uint64_t patience_us = PATIENCE_US;
    for (;;) {
        struct frame frame;
        struct neighbour_ask ask;
        cadre_status status = link_receive(served->link, patience_us, &frame, &unsaid);
        if (status == CADRE_DEADLINE_EXCEEDED && patience_us == 0) {
            return true;
        }
        if (status != CADRE_OK || !receive(served, &frame, &ask) ||
            !answer(served, terms, &ask, frame.id)) {
            return false;
        }
        patience_us = 0;
    }
}

static bool never(void *unused, uint64_t silent_us)
{
    (void)unused;
    (void)silent_us;
    return false;
}

void served_link_send_wait(struct served_link *served)
{
    static const struct link_wait at_once = {.goes_on = never};
    const struct frame frame = {.kind = NEIGHBOUR_WAIT};
    struct cadre_error unsaid = {0};
    if (link_send_while(served->link, &frame, NULL, 0, &at_once, &unsaid) != CADRE_OK) {
        link_shutdown(served->link);
    }
}
