/* SPDX-License-Identifier: Apache-2.0
 * Reads the three keys, decides, writes; without an answer, or if a key has changed meanwhile, it
 * reads again, and finds what it wrote by its nonce and term. */
#include "coordinator/replication/reseed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "coordinator/replication/hashes.h"
#include "coordinator/replication/read.h"

#define BYTES_MAX ((size_t)1024 * 1024)
/* A failed attempt is repeated after this part of `attempt_us`. */
#define PAUSE_PART 4

#define COMPARISONS 3
#define OPERATIONS  8

struct reseed {
    struct reseed_options options;
    struct wire_arena *arena;
    uv_timer_t timer;
    uint64_t until_us;       /* by clock_monotonic_us() */
    struct log_nonce nonce;  /* of the keys that it writes */
    uint64_t term;           /* likewise; 0: nothing was sent */
    struct log_hash cluster; /* hash(0) */
    struct read_keys keys;   /* as read last */
    uint64_t etcd_id;
    int64_t revisions[COMPARISONS]; /* of cluster, leader, head; 0: it is not there */
    unsigned users;                 /* the open one, and its calls */
    bool is_done, closed;
    char failure[CADRE_ERROR_TEXT_BYTES]; /* the newest */
};

cadre_status reseed_import_position(struct log_nonce cluster_id, uint64_t term,
    struct leadership_position *ret_position, struct cadre_error *error)
{
    *ret_position = (struct leadership_position){.index = 1, .term = term};
    return hash_cluster(cluster_id, &ret_position->hash, error);
}

static void unref(struct reseed *reseed)
{
    CADRE_ASSERT(reseed->users > 0);
    if (--reseed->users == 0) {
        wire_arena_free(reseed->arena);
        free(reseed);
    }
}

/* ---- the end ---- */

static void finish(struct reseed *reseed, cadre_status status, const char *text)
{
    struct replica_known known = {.cluster_id = reseed->options.cluster_id,
        .etcd_id = reseed->etcd_id,
        .term = reseed->term,
        .hash = reseed->cluster};
    memcpy(known.secret, reseed->options.secret, sizeof known.secret);
    if (!reseed->is_done) {
        reseed->is_done = true;
        uv_timer_stop(&reseed->timer);
        reseed->options.done(reseed->options.user, status, text, &known);
    }
}

static void finish_written(struct reseed *reseed)
{
    char text[CADRE_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "etcd's log begins behind entry %" PRIu64 " in term %" PRIu64,
        reseed->options.snapshot.at.index, reseed->term);
    finish(reseed, CADRE_OK, text);
}

static void on_timer(uv_timer_t *timer);

static void again(struct reseed *reseed, const char *failure)
{
    size_t length = strlen(failure);
    length = length < sizeof reseed->failure ? length : sizeof reseed->failure - 1;
    memcpy(reseed->failure, failure, length);
    reseed->failure[length] = '\0';
    uint64_t pause_us = reseed->options.attempt_us / PAUSE_PART;
    uv_update_time(reseed->timer.loop);
    uv_timer_start(&reseed->timer, on_timer, pause_us / CADRE_US_PER_MS + 1, 0);
}

/* ---- what is found ---- */

static bool is_written(const struct reseed *reseed)
{
    const struct read_keys *keys = &reseed->keys;
    const struct log_cluster *cluster = &keys->cluster.cluster;
    return reseed->term > 0 && log_nonce_equal(cluster->id, reseed->options.cluster_id) &&
           cluster->reseeded_term == reseed->term && keys->has_leader &&
           (log_nonce_equal(keys->leader.value.leader.nonce, reseed->nonce) ||
               keys->leader.value.leader.term > reseed->term);
}

/* OK: what is there may be replaced. */
static cadre_status check_found(const struct reseed *reseed, struct cadre_error *error)
{
    const struct read_keys *keys = &reseed->keys;
    const struct leadership_position *at = &reseed->options.snapshot.at;
    bool whole = keys->cluster_bytes.size > 0 && keys->has_leader && keys->has_head;
    if (keys->has_cluster && reseed->options.imports) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "etcd holds a ledger beneath the prefix of --ha: name a prefix without one to import "
            "into, or start the coordinator without the import");
    }
    if (keys->cluster_bytes.size > 0 &&
        !log_nonce_equal(keys->cluster.cluster.id, reseed->options.cluster_id)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "etcd holds the ledger of another cluster than this coordinator's: correct the prefix "
            "in --ha");
    }
    if (whole && keys->head.index > at->index) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "etcd's log ends at entry %" PRIu64 " of term %" PRIu64
            ", this ledger at entry %" PRIu64 " of term %" PRIu64
            ": start the coordinator with the highest entry with --reseed, or "
            "this one without it",
            keys->head.index, keys->head.term, at->index, at->term);
    }
    if (whole && keys->head.index == at->index && log_hash_equal(&keys->head.hash, &at->hash)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "etcd's log ends at entry %" PRIu64 " as this ledger does: start the coordinator "
            "without --reseed, and with --accept-restored if etcd was restored from a backup",
            at->index);
    }
    return CADRE_OK;
}

static uint64_t term_to_write(const struct reseed *reseed)
{
    const struct read_keys *keys = &reseed->keys;
    uint64_t term = reseed->options.term;
    if (reseed->options.imports) {
        return term;
    }
    if (keys->has_leader && keys->leader.value.leader.term > term) {
        term = keys->leader.value.leader.term;
    }
    if (keys->has_head && keys->head.term > term) {
        term = keys->head.term;
    }
    return term + RESEED_TERMS;
}

/* ---- what is written ---- */

/* The transaction and the memory that it points to. */
struct writing {
    struct etcd_transaction etcd;
    struct etcd_comparison comparisons[COMPARISONS];
    struct etcd_operation operations[OPERATIONS];
    struct log_key snapshot, next;
};

static const char *const found_keys[COMPARISONS] = {KEY_CLUSTER, KEY_LEADER, KEY_HEAD};

static void add_delete(struct writing *writing, const char *from, const char *end)
{
    writing->operations[writing->etcd.then_count++] =
        (struct etcd_operation){.kind = ETCD_DELETE, .key = from, .end = end};
}

static void add_put(struct writing *writing, const char *key, struct etcd_bytes value)
{
    writing->operations[writing->etcd.then_count++] =
        (struct etcd_operation){.kind = ETCD_PUT, .key = key, .value = value};
}

/* False: there is no memory. */
static bool build(struct reseed *reseed, struct writing *writing)
{
    const struct reseed_options *options = &reseed->options;
    const struct leadership_position *at = &options->snapshot.at;
    struct cluster_value cluster = {.cluster = {.id = options->cluster_id,
                                        .etcd_id = reseed->etcd_id,
                                        .format = options->format,
                                        .reseeded_term = reseed->term}};
    const struct leader_value leader = {
        .leader = {.term = reseed->term, .nonce = reseed->nonce, .left = true},
        .since_us = clock_wall_us()};
    const struct log_head head = {.term = reseed->term,
        .nonce = reseed->nonce,
        .index = at->index,
        .hash = at->hash,
        .first = at->index + 1};
    memcpy(cluster.secret, options->secret, sizeof cluster.secret);
    writing->etcd = (struct etcd_transaction){.comparisons = writing->comparisons,
        .comparison_count = COMPARISONS,
        .then = writing->operations};
    for (size_t i = 0; i < COMPARISONS; i++) {
        writing->comparisons[i] = (struct etcd_comparison){
            .key = found_keys[i], .what = ETCD_MOD_REVISION, .number = reseed->revisions[i]};
    }
    writing->snapshot = key_snapshot(at->index);
    writing->next = key_snapshot(at->index + 1);
    add_delete(writing, KEY_ENTRIES, KEY_ENTRIES_END);
    add_delete(writing, KEY_PIECES, KEY_PIECES_END);
    add_delete(writing, KEY_SNAPSHOTS, writing->snapshot.text);
    add_delete(writing, writing->next.text, KEY_SNAPSHOTS_END);
    add_put(writing, KEY_CLUSTER, value_pack_cluster(&cluster, reseed->arena));
    add_put(writing, KEY_LEADER, value_pack_leader(&leader, reseed->arena));
    add_put(writing, KEY_HEAD, value_pack_head(&head, reseed->arena));
    add_put(
        writing, writing->snapshot.text, value_pack_snapshot(&options->snapshot, reseed->arena));
    CADRE_ASSERT(writing->etcd.then_count == OPERATIONS);
    for (size_t i = OPERATIONS - 4; i < OPERATIONS; i++) {
        if (writing->operations[i].value.data == NULL) {
            return false;
        }
    }
    return true;
}

/* ---- requests ---- */

static cadre_status transact(struct reseed *reseed, const struct etcd_transaction *transaction,
    void (*handler)(const struct etcd_answer *answer, void *user), struct cadre_error *error)
{
    const struct etcd_then then = {.deadline_us = clock_monotonic_us() + reseed->options.attempt_us,
        .handler = handler,
        .user = reseed};
    CADRE_TRY(etcd_transact(reseed->options.etcd, transaction, &then, error));
    reseed->users++;
    return CADRE_OK;
}

static void on_written(const struct etcd_answer *answer, void *user)
{
    struct reseed *reseed = user;
    if (reseed->closed || reseed->is_done) {
        unref(reseed);
        return;
    }
    if (answer->status == CADRE_OK && answer->succeeded) {
        finish_written(reseed);
    } else {
        again(reseed,
            answer->status != CADRE_OK ? answer->text : "another coordinator writes to etcd's log");
    }
    unref(reseed);
}

static void write_log(struct reseed *reseed)
{
    struct writing writing;
    struct cadre_error error = {0};
    reseed->term = term_to_write(reseed);
    if (!build(reseed, &writing)) {
        again(reseed, "no memory for a new log");
    } else if (transact(reseed, &writing.etcd, on_written, &error) != CADRE_OK) {
        again(reseed, error.text);
    }
}

static void take_found(struct reseed *reseed, const struct etcd_answer *answer)
{
    struct cadre_error error = {0};
    wire_arena_reset(reseed->arena);
    CADRE_ASSERT(answer->result_count == COMPARISONS);
    if (!read_take_keys(answer->results, reseed->arena, &reseed->keys)) {
        again(reseed, "no memory for what etcd has of the ledger");
        return;
    }
    reseed->etcd_id = answer->cluster_id;
    for (size_t i = 0; i < COMPARISONS; i++) {
        const struct etcd_result *result = &answer->results[i];
        reseed->revisions[i] = result->pair_count > 0 ? result->pairs[0].mod_revision : 0;
    }
    if (is_written(reseed)) {
        finish_written(reseed);
    } else if (check_found(reseed, &error) != CADRE_OK) {
        finish(reseed, error.code, error.text);
    } else {
        write_log(reseed);
    }
}

static void on_read(const struct etcd_answer *answer, void *user)
{
    struct reseed *reseed = user;
    if (!reseed->closed && !reseed->is_done) {
        if (answer->status == CADRE_OK) {
            take_found(reseed, answer);
        } else {
            again(reseed, answer->text);
        }
    }
    unref(reseed);
}

static void on_timer(uv_timer_t *timer)
{
    struct reseed *reseed = timer->data;
    struct read_request request;
    struct cadre_error error = {0};
    if (clock_monotonic_us() >= reseed->until_us) {
        cadre_error_set(&error, CADRE_DEADLINE_EXCEEDED,
            "etcd has not answered within %" PRIu64 " ms, try again: %s",
            reseed->options.patience_us / CADRE_US_PER_MS, reseed->failure);
        finish(reseed, error.code, error.text);
        return;
    }
    read_build(&request, 0, 0);
    if (transact(reseed, &request.etcd, on_read, &error) != CADRE_OK) {
        again(reseed, error.text);
    }
}

/* ---- begin and end ---- */

static cadre_status prepare(struct reseed *reseed, struct cadre_error *error)
{
    if (getrandom(&reseed->nonce, sizeof reseed->nonce, 0) != (ssize_t)sizeof reseed->nonce) {
        return cadre_error_set(error, CADRE_INTERNAL, "getrandom gives no random numbers");
    }
    return hash_cluster(reseed->options.cluster_id, &reseed->cluster, error);
}

cadre_status reseed_open(struct rpc_loop *loop, const struct reseed_options *options,
    struct reseed **ret_reseed, struct cadre_error *error)
{
    *ret_reseed = NULL;
    CADRE_ASSERT(options->snapshot.at.index > 0 && options->format > 0);
    CADRE_ASSERT(options->term > 0 || !options->imports);
    struct reseed *reseed = fault_point("replication.memory") ? NULL : calloc(1, sizeof *reseed);
    struct wire_arena *arena = reseed != NULL ? wire_arena_new(BYTES_MAX) : NULL;
    if (arena == NULL) {
        free(reseed);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a new log");
    }
    *reseed = (struct reseed){.options = *options, .arena = arena, .users = 1};
    reseed->until_us = clock_monotonic_us() + options->patience_us;
    uv_timer_init(rpc_loop_uv(loop), &reseed->timer);
    reseed->timer.data = reseed;
    cadre_status status = prepare(reseed, error);
    if (status != CADRE_OK) {
        reseed_close(reseed);
        return status;
    }
    uv_timer_start(&reseed->timer, on_timer, 0, 0);
    *ret_reseed = reseed;
    return CADRE_OK;
}

static void timer_closed(uv_handle_t *handle)
{
    unref(handle->data);
}

void reseed_close(struct reseed *reseed)
{
    if (reseed != NULL) {
        CADRE_ASSERT(!reseed->closed);
        reseed->closed = true;
        uv_close((uv_handle_t *)&reseed->timer, timer_closed);
    }
}
