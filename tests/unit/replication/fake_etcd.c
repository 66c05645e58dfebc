/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "tests/lib/speed.h"

#define PATIENCE_US (60 * CADRE_US_PER_S)

struct etcd_watch {
    struct etcd *etcd;
    char key[ETCD_KEY_BYTES];
    etcd_watch_fn *handler;
    void *user;
    bool notified, posted, closed;
};

/* A transaction, copied, and its answer. */
struct fake_request {
    struct etcd *etcd;
    struct etcd_transaction transaction;
    struct etcd_then then;
    struct etcd_answer answer;
    char *memory[4 * ETCD_OPERATIONS_MAX + 64];
    size_t memory_count;
};

/* ---- the table ---- */

static size_t position_of(const struct etcd *etcd, const char *key)
{
    size_t at = 0;
    while (at < etcd->pair_count && strcmp(etcd->pairs[at].key, key) < 0) {
        at++;
    }
    return at;
}

static struct fake_pair *find_pair(const struct etcd *etcd, const char *key)
{
    size_t at = position_of(etcd, key);
    bool there = at < etcd->pair_count && strcmp(etcd->pairs[at].key, key) == 0;
    return there ? (struct fake_pair *)(uintptr_t)&etcd->pairs[at] : NULL;
}

const struct fake_pair *fake_find(const struct etcd *etcd, const char *key)
{
    return find_pair(etcd, key);
}

static void delete_pair(struct etcd *etcd, struct fake_pair *pair)
{
    size_t at = (size_t)(pair - etcd->pairs);
    free(pair->value);
    etcd->pair_count--;
    memmove(pair, pair + 1, (etcd->pair_count - at) * sizeof *pair);
}

static void put_pair(struct etcd *etcd, const char *key, const void *value, size_t size)
{
    struct fake_pair *pair = find_pair(etcd, key);
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, value, size);
    if (pair == NULL) {
        size_t at = position_of(etcd, key);
        assert_true(etcd->pair_count < FAKE_PAIRS_MAX);
        pair = &etcd->pairs[at];
        memmove(pair + 1, pair, (etcd->pair_count++ - at) * sizeof *pair);
        *pair = (struct fake_pair){.create_revision = etcd->revision};
        snprintf(pair->key, sizeof pair->key, "%s", key);
    }
    free(pair->value);
    pair->value = copy;
    pair->size = size;
    pair->mod_revision = etcd->revision;
    pair->version++;
}

/* ---- watches ---- */

static void notify_now(void *user)
{
    struct etcd_watch *watch = user;
    watch->posted = false;
    if (watch->closed) {
        free(watch);
    } else {
        watch->handler(CADRE_OK, "", watch->user);
    }
}

static void post_watch(struct etcd_watch *watch)
{
    if (!watch->posted) {
        watch->posted = true;
        rpc_loop_post(watch->etcd->loop, notify_now, watch);
    }
}

static void notify(struct etcd *etcd, const char *key)
{
    for (size_t i = 0; i < FAKE_WATCHES_MAX; i++) {
        if (etcd->watches[i] != NULL && strcmp(etcd->watches[i]->key, key) == 0) {
            post_watch(etcd->watches[i]);
        }
    }
}

cadre_status etcd_watch_open(struct etcd *etcd, const char *key, etcd_watch_fn *handler, void *user,
    struct etcd_watch **ret_watch, struct cadre_error *error)
{
    (void)error;
    struct etcd_watch *watch = calloc(1, sizeof *watch);
    assert_non_null(watch);
    *watch = (struct etcd_watch){.etcd = etcd, .handler = handler, .user = user};
    snprintf(watch->key, sizeof watch->key, "%s", key);
    size_t free_slot = 0;
    while (etcd->watches[free_slot] != NULL) {
        free_slot++;
        assert_true(free_slot < FAKE_WATCHES_MAX);
    }
    etcd->watches[free_slot] = watch;
    post_watch(watch);
    *ret_watch = watch;
    return CADRE_OK;
}

void etcd_watch_close(struct etcd_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (size_t i = 0; i < FAKE_WATCHES_MAX; i++) {
        if (watch->etcd->watches[i] == watch) {
            watch->etcd->watches[i] = NULL;
        }
    }
    watch->closed = true;
    if (!watch->posted) {
        free(watch);
    }
}

void fake_put(struct etcd *etcd, const char *key, const void *value, size_t size)
{
    etcd->revision++;
    if (size > 0) {
        put_pair(etcd, key, value, size);
    } else if (find_pair(etcd, key) != NULL) {
        delete_pair(etcd, find_pair(etcd, key));
    }
    notify(etcd, key);
}

void fake_touch(struct etcd *etcd, const char *key)
{
    const struct fake_pair *pair = fake_find(etcd, key);
    assert_non_null(pair);
    etcd->revision++;
    put_pair(etcd, key, pair->value, pair->size);
    notify(etcd, key);
}

/* ---- transactions ---- */

static void *keep(struct fake_request *request, const void *from, size_t size)
{
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    if (size > 0) {
        memcpy(copy, from, size);
    }
    assert_true(request->memory_count < CADRE_COUNT_OF(request->memory));
    request->memory[request->memory_count++] = copy;
    return copy;
}

static const char *keep_text(struct fake_request *request, const char *text)
{
    return text == NULL ? NULL : keep(request, text, strlen(text) + 1);
}

static const struct etcd_operation *keep_operations(
    struct fake_request *request, const struct etcd_operation *from, size_t count)
{
    struct etcd_operation *copy = keep(request, from, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i].key = keep_text(request, from[i].key);
        copy[i].end = keep_text(request, from[i].end);
        copy[i].value.data = keep(request, from[i].value.data, from[i].value.size);
    }
    return copy;
}

static struct fake_request *copy_request(
    struct etcd *etcd, const struct etcd_transaction *transaction, const struct etcd_then *then)
{
    struct fake_request *request = calloc(1, sizeof *request);
    assert_non_null(request);
    request->etcd = etcd;
    request->transaction = *transaction;
    request->then = *then;
    size_t count = transaction->comparison_count;
    struct etcd_comparison *comparisons =
        keep(request, transaction->comparisons, count * sizeof *comparisons);
    for (size_t i = 0; i < count; i++) {
        comparisons[i].key = keep_text(request, comparisons[i].key);
        comparisons[i].value.data =
            keep(request, comparisons[i].value.data, comparisons[i].value.size);
    }
    request->transaction.comparisons = comparisons;
    request->transaction.then =
        keep_operations(request, transaction->then, transaction->then_count);
    request->transaction.otherwise =
        keep_operations(request, transaction->otherwise, transaction->otherwise_count);
    return request;
}

static void free_request(struct fake_request *request)
{
    for (size_t i = 0; i < request->memory_count; i++) {
        free(request->memory[i]);
    }
    free(request);
}

static bool holds(const struct etcd *etcd, const struct etcd_comparison *comparison)
{
    const struct fake_pair *pair = fake_find(etcd, comparison->key);
    switch (comparison->what) {
    case ETCD_VERSION:
        return (pair != NULL ? pair->version : 0) == comparison->number;
    case ETCD_CREATE_REVISION:
        return (pair != NULL ? pair->create_revision : 0) == comparison->number;
    case ETCD_MOD_REVISION:
        return (pair != NULL ? pair->mod_revision : 0) == comparison->number;
    case ETCD_VALUE:
        break;
    }
    return pair != NULL && pair->size == comparison->value.size &&
           memcmp(pair->value, comparison->value.data, pair->size) == 0;
}

static bool is_within(const struct fake_pair *pair, const struct etcd_operation *operation)
{
    if (operation->end == NULL) {
        return strcmp(pair->key, operation->key) == 0;
    }
    return strcmp(pair->key, operation->key) >= 0 && strcmp(pair->key, operation->end) < 0;
}

static void get_pairs(struct fake_request *request, const struct etcd_operation *operation,
    struct etcd_result *result)
{
    const struct etcd *etcd = request->etcd;
    struct etcd_pair *pairs = keep(request, NULL, 0);
    size_t count = 0;
    for (size_t i = 0; i < etcd->pair_count; i++) {
        const struct fake_pair *from = &etcd->pairs[i];
        if (!is_within(from, operation)) {
            continue;
        }
        if (operation->limit > 0 && count == operation->limit) {
            result->more = true;
            break;
        }
        pairs = realloc(pairs, (count + 1) * sizeof *pairs);
        assert_non_null(pairs);
        request->memory[request->memory_count - 1] = (char *)pairs;
        pairs[count++] = (struct etcd_pair){.key = from->key,
            .value = {.data = from->value, .size = from->size},
            .create_revision = from->create_revision,
            .mod_revision = from->mod_revision,
            .version = from->version};
    }
    result->pairs = pairs;
    result->pair_count = count;
}

/* The answer's pairs are to be those of this moment. */
static void copy_pairs(struct fake_request *request, struct etcd_result *result)
{
    struct etcd_pair *pairs = (struct etcd_pair *)(uintptr_t)result->pairs;
    for (size_t i = 0; i < result->pair_count; i++) {
        size_t size = pairs[i].value.size;
        uint8_t *copy = malloc(size + ETCD_KEY_BYTES);
        assert_non_null(copy);
        memcpy(copy, pairs[i].value.data, size);
        snprintf((char *)copy + size, ETCD_KEY_BYTES, "%s", pairs[i].key);
        pairs[i].value.data = copy;
        pairs[i].key = (const char *)copy + size;
        assert_true(request->memory_count < CADRE_COUNT_OF(request->memory));
        request->memory[request->memory_count++] = (char *)copy;
    }
}

static void check_no_key_twice(const struct etcd_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            bool puts_both = operations[i].kind == ETCD_PUT && operations[j].kind == ETCD_PUT;
            assert_false(puts_both && strcmp(operations[i].key, operations[j].key) == 0);
        }
    }
}

static void apply_operation(struct fake_request *request, const struct etcd_operation *operation,
    struct etcd_result *result)
{
    struct etcd *etcd = request->etcd;
    switch (operation->kind) {
    case ETCD_GET:
        get_pairs(request, operation, result);
        copy_pairs(request, result);
        break;
    case ETCD_PUT:
        put_pair(etcd, operation->key, operation->value.data, operation->value.size);
        notify(etcd, operation->key);
        break;
    case ETCD_DELETE:
        for (size_t i = etcd->pair_count; i-- > 0;) {
            if (is_within(&etcd->pairs[i], operation)) {
                delete_pair(etcd, &etcd->pairs[i]);
                result->deleted++;
            }
        }
        break;
    }
}

/* Compares and applies, and fills in the answer. */
static void apply_request(struct fake_request *request)
{
    const struct etcd_transaction *transaction = &request->transaction;
    struct etcd *etcd = request->etcd;
    bool succeeded = true;
    for (size_t i = 0; i < transaction->comparison_count; i++) {
        succeeded = succeeded && holds(etcd, &transaction->comparisons[i]);
    }
    const struct etcd_operation *operations =
        succeeded ? transaction->then : transaction->otherwise;
    size_t count = succeeded ? transaction->then_count : transaction->otherwise_count;
    struct etcd_result *results = calloc(count + 1, sizeof *results);
    assert_non_null(results);
    request->memory[request->memory_count++] = (char *)results;
    check_no_key_twice(operations, count);
    bool writes = false;
    for (size_t i = 0; i < count; i++) {
        writes = writes || operations[i].kind != ETCD_GET;
    }
    etcd->revision += writes ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        apply_operation(request, &operations[i], &results[i]);
    }
    request->answer = (struct etcd_answer){.status = CADRE_OK,
        .text = "",
        .endpoint = "fake",
        .cluster_id = etcd->cluster_id,
        .revision = etcd->revision,
        .succeeded = succeeded,
        .results = results,
        .result_count = count};
}

static void answer_request(void *user)
{
    struct fake_request *request = user;
    request->then.handler(&request->answer, request->then.user);
    free_request(request);
}

static void apply_late(struct etcd *etcd)
{
    struct fake_request *late = etcd->late;
    etcd->late = NULL;
    if (late != NULL) {
        apply_request(late);
        free_request(late);
    }
}

static uint64_t digest_bytes(uint64_t digest, struct etcd_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        digest = (digest ^ ((const uint8_t *)bytes.data)[i]) * UINT64_C(0x100000001b3);
    }
    return digest ^ bytes.size;
}

static uint64_t digest_text(uint64_t digest, const char *text)
{
    return digest_bytes(digest, (struct etcd_bytes){.data = text, .size = strlen(text)});
}

static uint64_t digest_transaction(const struct etcd_transaction *transaction)
{
    uint64_t digest = 7;
    for (size_t i = 0; i < transaction->comparison_count; i++) {
        const struct etcd_comparison *comparison = &transaction->comparisons[i];
        digest = digest_text(digest, comparison->key) ^ (uint64_t)comparison->number;
        digest = digest_bytes(digest, comparison->value);
    }
    for (size_t i = 0; i < transaction->then_count; i++) {
        digest = digest_text(digest, transaction->then[i].key);
        digest = digest_bytes(digest, transaction->then[i].value);
    }
    return digest;
}

uint64_t fake_digest(const struct etcd *etcd)
{
    uint64_t digest = 7;
    for (size_t i = 0; i < etcd->pair_count; i++) {
        const struct fake_pair *pair = &etcd->pairs[i];
        digest = digest_text(digest, pair->key) ^ (uint64_t)pair->mod_revision;
        digest = digest_bytes(digest, (struct etcd_bytes){.data = pair->value, .size = pair->size});
    }
    return digest;
}

static enum fake_fault take_fault(struct etcd *etcd)
{
    enum fake_fault fault = etcd->next;
    etcd->next = FAKE_WELL;
    etcd->calls++;
    bool fails = etcd->fail_at != 0 && etcd->calls >= etcd->fail_at &&
                 (etcd->calls == etcd->fail_at || etcd->calls <= etcd->fail_to);
    return fails ? etcd->fail_at_how : fault;
}

static void fail_request(struct fake_request *request, enum fake_fault fault)
{
    request->answer = (struct etcd_answer){.status = CADRE_DEADLINE_EXCEEDED,
        .text = "etcd at fake, transaction: no answer",
        .endpoint = "fake",
        .outcome_unknown = true};
    if (fault == FAKE_NO_SPACE) {
        request->answer.status = CADRE_RESOURCE_EXHAUSTED;
        request->answer.text = "etcd at fake, transaction: its database is full";
        request->answer.outcome_unknown = false;
        request->answer.no_space = true;
    }
}

cadre_status etcd_transact(struct etcd *etcd, const struct etcd_transaction *transaction,
    const struct etcd_then *then, struct cadre_error *error)
{
    enum fake_fault fault = take_fault(etcd);
    assert_true(transaction->then_count <= ETCD_OPERATIONS_MAX);
    etcd->sent_digest = digest_transaction(transaction);
    apply_late(etcd);
    if (fault == FAKE_REFUSED) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a request");
    }
    struct fake_request *request = copy_request(etcd, transaction, then);
    if (fault == FAKE_WELL || fault == FAKE_LOST_ANSWER) {
        apply_request(request);
    }
    if (fault == FAKE_LATE) {
        etcd->late = copy_request(etcd, transaction, then);
    }
    if (fault != FAKE_WELL) {
        fail_request(request, fault);
    }
    rpc_loop_post(etcd->loop, answer_request, request);
    return CADRE_OK;
}

/* ---- begin and end ---- */

struct etcd *fake_open(struct rpc_loop *loop)
{
    struct etcd *etcd = calloc(1, sizeof *etcd);
    assert_non_null(etcd);
    etcd->loop = loop;
    etcd->cluster_id = FAKE_CLUSTER_ID;
    etcd->revision = 1;
    return etcd;
}

void fake_close(struct etcd *etcd)
{
    while (etcd->pair_count > 0) {
        delete_pair(etcd, &etcd->pairs[etcd->pair_count - 1]);
    }
    if (etcd->late != NULL) {
        free_request(etcd->late);
    }
    free(etcd);
}

struct etcd *fake_backup(const struct etcd *etcd)
{
    struct etcd *backup = fake_open(etcd->loop);
    backup->revision = etcd->revision;
    for (size_t i = 0; i < etcd->pair_count; i++) {
        put_pair(backup, etcd->pairs[i].key, etcd->pairs[i].value, etcd->pairs[i].size);
        backup->pairs[i].mod_revision = etcd->pairs[i].mod_revision;
    }
    return backup;
}

void fake_restore(struct etcd *etcd, struct etcd *backup)
{
    while (etcd->pair_count > 0) {
        delete_pair(etcd, &etcd->pairs[etcd->pair_count - 1]);
    }
    memcpy(etcd->pairs, backup->pairs, sizeof etcd->pairs);
    etcd->pair_count = backup->pair_count;
    etcd->revision = backup->revision;
    etcd->cluster_id++;
    backup->pair_count = 0;
    fake_close(backup);
}

struct checking {
    bool (*check)(void *user);
    void *user;
    bool done;
};

static void check_now(void *user)
{
    struct checking *checking = user;
    checking->done = checking->check(checking->user);
}

void fake_run_until(struct rpc_loop *loop, bool (*check)(void *user), void *user)
{
    struct checking checking = {.check = check, .user = user, .done = check(user)};
    rpc_loop_on_turn_end(loop, check_now, &checking);
    uint64_t deadline_us = clock_monotonic_us() + speed_scaled_us(PATIENCE_US);
    assert_int_equal(rpc_loop_run_until(loop, &checking.done, deadline_us), CADRE_OK);
    rpc_loop_on_turn_end(loop, NULL, NULL);
}
