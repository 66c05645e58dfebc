/* SPDX-License-Identifier: Apache-2.0
 * client_push_shards: three exchanges. A client that makes the push again begins with the first
 * one.
 *
 *     norms of all shards ──▶ ratio ──▶ the first shard keeps it, or has one ──▶ all keep that
 *
 * A client that dies in between has changed the first shard, and maybe others, with a ratio that
 * the first shard has kept: a client that makes the push again receives that ratio, whatever the
 * norms are by now. Two clients that make the push at the same time agree on the ratio in the same
 * way. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/request.h"

static double ratio_of(const uint8_t *answers, size_t count)
{
    struct optimizer_norms all = {{0}, {0}};
    for (size_t i = 0; i < count; i++) {
        struct optimizer_norms part;
        norms_read(answers + i * NORMS_BYTES, &part);
        optimizer_norms_join(&all, &part);
    }
    return store_trust(&all);
}

static cadre_status find_ratio(struct client *client, const struct request *pushes, size_t count,
    uint64_t done_watermark, double *ret_ratio, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = calloc(count, sizeof *requests);
    CADRE_FREE_AT_EXIT uint8_t *answers = calloc(count, NORMS_BYTES);
    if (requests == NULL || answers == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the norms of %zu shards", count);
    }
    for (size_t i = 0; i < count; i++) {
        requests[i] = pushes[i];
        requests[i].kind = REQUEST_NORMS;
        requests[i].push.trust = 0;
        requests[i].into = answers + i * NORMS_BYTES;
    }
    CADRE_TRY(client_call(client, requests, count, done_watermark, error));
    *ret_ratio = ratio_of(answers, count);
    return CADRE_OK;
}

static cadre_status push_at_once(struct client *client, struct request *pushes, size_t count,
    uint64_t done_watermark, struct cadre_error *error)
{
    double ratio = 0;
    CADRE_TRY(find_ratio(client, pushes, count, done_watermark, &ratio, error));
    pushes[0].push.trust = ratio;
    CADRE_TRY(client_call(client, pushes, 1, done_watermark, error));
    ratio = pushes[0].ret_trust > 0 ? pushes[0].ret_trust : ratio;
    for (size_t i = 1; i < count; i++) {
        pushes[i].push.trust = ratio;
    }
    return count == 1 ? CADRE_OK
                      : client_call(client, pushes + 1, count - 1, done_watermark, error);
}

/* ---- synchronous ---- */

/* True: all shards have all contributions of the step, and one of them has not applied it. */
static bool is_to_be_settled(const struct request *requests, size_t count)
{
    bool waits = false;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].ret_steps == STEP_INCOMPLETE) {
            return false; /* the client with the last contribution finds the step complete */
        }
        waits = waits || requests[i].ret_steps == STEP_WAITS;
    }
    return waits;
}

static cadre_status tell_ratio(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, double ratio, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        requests[i].kind = REQUEST_SETTLE;
        requests[i].into = NULL;
        requests[i].trust = ratio;
    }
    CADRE_TRY(client_call(client, requests, 1, done_watermark, error));
    for (size_t i = 1; i < count && requests[0].ret_trust > 0; i++) {
        requests[i].trust = requests[0].ret_trust;
    }
    return count == 1 ? CADRE_OK
                      : client_call(client, requests + 1, count - 1, done_watermark, error);
}

static cadre_status settle_step(struct client *client, const struct request *pushes, size_t count,
    uint64_t done_watermark, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = calloc(count, sizeof *requests);
    CADRE_FREE_AT_EXIT uint8_t *answers = calloc(count, NORMS_BYTES);
    if (requests == NULL || answers == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the norms of %zu shards", count);
    }
    for (size_t i = 0; i < count; i++) {
        requests[i] = (struct request){.kind = REQUEST_STEP_NORMS,
            .server = pushes[i].server,
            .shard = pushes[i].shard,
            .min_steps = pushes[i].push.step,
            .into = answers + i * NORMS_BYTES};
    }
    CADRE_TRY(client_call(client, requests, count, done_watermark, error));
    return is_to_be_settled(requests, count) ? tell_ratio(client, requests, count, done_watermark,
                                                   ratio_of(answers, count), error)
                                             : CADRE_OK;
}

cadre_status client_push_shards(struct client *client, struct request *pushes, size_t count,
    uint64_t done_watermark, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    if (pushes[0].push.contributions == 0) {
        return push_at_once(client, pushes, count, done_watermark, error);
    }
    CADRE_TRY(client_call(client, pushes, count, done_watermark, error));
    return settle_step(client, pushes, count, done_watermark, error);
}
