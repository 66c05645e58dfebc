/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_servers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/lib/test.h"
#include "worker/library/ps/request.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/arithmetic/numbers.h"

#define SHARDS_MAX 512
#define NOTES_MAX  128

struct fake_shard {
    struct store_spec spec;
    char *rows;
    struct optimizer_rule rule;
    char *slots[OPTIMIZER_SLOTS];
    uint64_t updates;
    uint64_t version;
    uint64_t steps;
};

struct fake_note_text {
    char name[STORE_NAME_BYTES];
    char *bytes;
    size_t size;
};

static struct {
    pthread_mutex_t lock;
    cadre_strategy *strategy;
    struct ps_job_state ps_job;
    struct directory_self self;
    struct fake_shard shards[FAKE_SERVERS_MAX][SHARDS_MAX];
    uint32_t shard_count[FAKE_SERVERS_MAX];
    struct fake_note_text notes[NOTES_MAX];
    uint32_t note_count;
    struct fake_counts counts;
    uint64_t closure;
    uint64_t open_keys;
    struct push last_push;
    const void *last_memory;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the ps job --- */

void fake_attach(cadre_strategy *strategy, uint32_t servers, const cadre_partitioner *partitioner)
{
    struct cadre_error error = {0};
    assert_true(servers <= FAKE_SERVERS_MAX);
    fake.self = (struct directory_self){.ps_job = {.workers = 1, .servers = servers}};
    fake.ps_job = (struct ps_job_state){.role = ROLE_CHIEF};
    if (partitioner != NULL) {
        fake.ps_job.options.partitioner = *partitioner;
    }
    fake.counts = (struct fake_counts){0};
    fake.strategy = strategy;
    strategy->kind = STRATEGY_PARAMETER_SERVER;
    assert_ok(served_begin(&fake.ps_job, &error), &error);
}

void fake_release(cadre_strategy *strategy)
{
    assert_int_equal(fake.open_keys, 0);
    cadre_strategy_release(strategy);
    served_end(&fake.ps_job);
    for (uint32_t server = 0; server < FAKE_SERVERS_MAX; server++) {
        for (uint32_t i = 0; i < fake.shard_count[server]; i++) {
            struct fake_shard *shard = &fake.shards[server][i];
            free(shard->rows);
            for (uint32_t slot = 0; slot < OPTIMIZER_SLOTS; slot++) {
                free(shard->slots[slot]);
            }
        }
        fake.shard_count[server] = 0;
    }
    for (uint32_t i = 0; i < fake.note_count; i++) {
        free(fake.notes[i].bytes);
        fake.notes[i].bytes = NULL;
    }
    fake.note_count = 0;
}

void fake_become(enum role role)
{
    struct cadre_error error = {0};
    fake.strategy->state_part->streamed = NULL;
    served_end(&fake.ps_job);
    fake.ps_job.role = role;
    assert_ok(served_begin(&fake.ps_job, &error), &error);
}

struct fake_counts fake_counts(void)
{
    return fake.counts;
}

const struct push *fake_last_push(void)
{
    return &fake.last_push;
}

const void *fake_last_memory(void)
{
    return fake.last_memory;
}

static struct fake_shard *shard_of(uint32_t server, uint32_t shard)
{
    assert_true(server < fake.self.ps_job.servers);
    assert_true(shard < fake.shard_count[server]);
    return &fake.shards[server][shard];
}

void *fake_rows(uint32_t server, uint32_t shard)
{
    return shard_of(server, shard)->rows;
}

double *fake_slot(uint32_t server, uint32_t shard, uint32_t slot)
{
    return (double *)(void *)shard_of(server, shard)->slots[slot];
}

uint64_t *fake_updates(uint32_t server, uint32_t shard)
{
    return &shard_of(server, shard)->updates;
}

uint64_t *fake_steps(uint32_t server, uint32_t shard)
{
    return &shard_of(server, shard)->steps;
}

uint64_t *fake_version(uint32_t server, uint32_t shard)
{
    return &shard_of(server, shard)->version;
}

cadre_status __wrap_ps_job_push_key(
    uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error)
{
    if (fake.ps_job.role == ROLE_EVALUATOR) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "an evaluator pushes nothing; it reads");
    }
    pthread_mutex_lock(&fake.lock);
    *ret_closure = ++fake.closure;
    *ret_ordinal = 0;
    fake.open_keys++;
    fake.counts.keys++;
    pthread_mutex_unlock(&fake.lock);
    return CADRE_OK;
}

void __wrap_ps_job_push_done(uint64_t closure)
{
    pthread_mutex_lock(&fake.lock);
    assert_true(closure <= fake.closure && fake.open_keys > 0);
    fake.open_keys--;
    pthread_mutex_unlock(&fake.lock);
}

uint64_t __wrap_ps_job_done_watermark(void)
{
    return 1;
}

const struct directory_self *__wrap_directory_self(const struct directory *directory)
{
    (void)directory;
    return &fake.self;
}

/* --- servers --- */

static cadre_status create(struct request *request, struct cadre_error *error)
{
    const struct store_spec *spec = request->spec;
    uint32_t *count = &fake.shard_count[request->server];
    for (uint32_t i = 0; i < *count; i++) {
        struct fake_shard *shard = &fake.shards[request->server][i];
        if (strcmp(shard->spec.name, spec->name) == 0 && shard->spec.shard == spec->shard) {
            request->ret_shard = i;
            return shard->spec.rows == spec->rows ? CADRE_OK
                                                  : cadre_error_set(error, CADRE_ALREADY_EXISTS,
                                                        "%s has another shape", spec->name);
        }
    }
    assert_true(*count < SHARDS_MAX);
    size_t bytes = (size_t)(spec->rows * spec->row_elements) * cadre_dtype_bytes(spec->dtype);
    struct fake_shard *shard = &fake.shards[request->server][*count];
    *shard = (struct fake_shard){.spec = *spec, .rows = calloc(1, bytes + 1)};
    request->ret_shard = (*count)++;
    return CADRE_OK;
}

void fake_note(const char *name, const void *bytes, size_t size)
{
    struct fake_note_text *note = &fake.notes[fake.note_count];
    for (uint32_t i = 0; i < fake.note_count; i++) {
        note = strcmp(fake.notes[i].name, name) == 0 ? &fake.notes[i] : note;
    }
    assert_true(fake.note_count < NOTES_MAX);
    fake.note_count += note == &fake.notes[fake.note_count] ? 1 : 0;
    free(note->bytes);
    snprintf(note->name, sizeof note->name, "%s", name);
    note->bytes = malloc(size + 1);
    memcpy(note->bytes, bytes, size);
    note->size = size;
}

static cadre_status noted(struct request *request, struct cadre_error *error)
{
    for (uint32_t i = 0; i < fake.note_count; i++) {
        const struct fake_note_text *note = &fake.notes[i];
        if (strcmp(note->name, request->name) == 0) {
            request->ret_text = malloc(note->size + 1);
            memcpy(request->ret_text, note->bytes, note->size);
            request->ret_text_bytes = note->size;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND, "nothing is noted as %s", request->name);
}

static void noted_names(struct request *request)
{
    request->ret_text = calloc(NOTES_MAX, STORE_NAME_BYTES);
    for (uint32_t i = 0; i < fake.note_count; i++) {
        size_t length = strlen(fake.notes[i].name) + 1;
        memcpy(request->ret_text + request->ret_text_bytes, fake.notes[i].name, length);
        request->ret_text_bytes += length;
    }
}

static size_t row_bytes_of(const struct fake_shard *shard)
{
    return (size_t)shard->spec.row_elements * cadre_dtype_bytes(shard->spec.dtype);
}

static void change(
    struct fake_shard *shard, char *to, const char *from, const struct push *push, uint64_t rows)
{
    int64_t count = (int64_t)(rows * shard->spec.row_elements);
    double rate = isnan(push->rate) ? shard->rule.rate : push->rate;
    rate *= push->trust > 0 ? push->trust : 1;
    if (push->kind == PUSH_ASSIGN) {
        memcpy(to, from, (size_t)rows * row_bytes_of(shard));
    } else if (push->kind != PUSH_UPDATE) {
        numbers_add(to, from, count, shard->spec.dtype, push->kind == PUSH_SUB);
    } else if (shard->spec.dtype == CADRE_F32) {
        for (int64_t i = 0; i < count; i++) {
            ((float *)(void *)to)[i] -= (float)rate * ((const float *)(const void *)from)[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            ((double *)(void *)to)[i] -= rate * ((const double *)(const void *)from)[i];
        }
    }
}

static cadre_status apply(
    struct fake_shard *shard, const struct request *request, struct cadre_error *error)
{
    const struct push *push = &request->push;
    size_t row_bytes = row_bytes_of(shard);
    assert_int_equal(push->shard, request->shard);
    assert_int_equal(push->rows, request->rows);
    assert_true(push->closure > 0 || push->kind == PUSH_ASSIGN);
    if (push->kind == PUSH_UPDATE && shard->rule.kind == OPTIMIZER_NONE) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "`%s` has no optimizer", shard->spec.name);
    }
    fake.last_push = *push;
    if (push->based_on != PUSH_ANY_VERSION && shard->version > push->based_on &&
        shard->version - push->based_on > push->staleness) {
        return cadre_error_set(error, CADRE_ABORTED, "the push is stale");
    }
    for (uint64_t i = 0; push->sparse && i < push->rows; i++) {
        assert_true(push->ids[i] >= 0 && (uint64_t)push->ids[i] < shard->spec.rows);
        change(shard, shard->rows + (size_t)push->ids[i] * row_bytes,
            (const char *)request->values + i * row_bytes, push, 1);
    }
    if (!push->sparse) {
        assert_true(push->first_row + push->rows <= shard->spec.rows);
        change(shard, shard->rows + push->first_row * row_bytes, request->values, push, push->rows);
    }
    shard->version += push->closure > 0 ? 1 : 0; /* what fills it does not count */
    shard->updates += push->kind == PUSH_UPDATE ? 1 : 0;
    return CADRE_OK;
}

static void copy_range(char *memory, struct request *request, bool in)
{
    size_t bytes = (size_t)(request->rows * request->row_bytes);
    if (bytes == 0) {
        return;
    }
    char *at = memory + request->first * request->row_bytes;
    if (in) {
        memcpy(at, request->values, bytes);
    } else {
        memcpy(request->into, at, bytes);
    }
}

static void train(struct fake_shard *shard, const struct optimizer_rule *rule)
{
    size_t bytes = (size_t)shard->spec.rows * row_bytes_of(shard);
    for (uint32_t slot = 0; slot < optimizer_slots(rule); slot++) {
        shard->slots[slot] = shard->slots[slot] != NULL ? shard->slots[slot] : calloc(1, bytes + 1);
    }
    shard->rule = *rule;
}

/* As if what an update changes by were the gradient. */
static cadre_status find_norms(
    const struct fake_shard *shard, const struct request *request, struct cadre_error *error)
{
    struct optimizer_norms norms = {{0}, {0}};
    const float *values = (const float *)(const void *)shard->rows;
    const float *gradient = request->values;
    if (shard->rule.kind != OPTIMIZER_LAMB) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "`%s` has no optimizer", shard->spec.name);
    }
    assert_int_equal(shard->spec.dtype, CADRE_F32);
    for (uint64_t i = 0; i < request->push.rows * shard->spec.row_elements; i++) {
        uint64_t row = request->push.sparse
                           ? (uint64_t)request->push.ids[i / shard->spec.row_elements]
                           : request->push.first_row + i / shard->spec.row_elements;
        double value =
            (double)values[row * shard->spec.row_elements + i % shard->spec.row_elements];
        norms.values[0] += value * value;
        norms.changes[0] += (double)gradient[i] * (double)gradient[i];
    }
    norms_write(&norms, request->into);
    return CADRE_OK;
}

static cadre_status answer_shard(struct request *request, struct cadre_error *error)
{
    struct fake_shard *shard = shard_of(request->server, request->shard);
    size_t bytes = (size_t)(request->rows * request->row_bytes);
    assert_true(request->kind == REQUEST_BEGIN_STEP || request->kind == REQUEST_TRAIN ||
                request->kind == REQUEST_RULE || request->kind == REQUEST_STEP_NORMS ||
                request->row_bytes == row_bytes_of(shard));
    assert_true(request->kind == REQUEST_GATHER || request->push.sparse ||
                request->first + request->rows <= shard->spec.rows);
    fake.counts.largest = bytes > fake.counts.largest ? bytes : fake.counts.largest;
    request->ret_version = shard->version;
    switch (request->kind) {
    case REQUEST_PULL:
        assert_true(shard->steps >= request->min_steps);
        request->ret_steps = shard->steps;
        copy_range(shard->rows, request, false);
        return CADRE_OK;
    case REQUEST_GATHER:
        for (uint64_t i = 0; i < request->rows; i++) {
            assert_true(request->ids[i] >= 0 && (uint64_t)request->ids[i] < shard->spec.rows);
            memcpy((char *)request->into + i * request->row_bytes,
                shard->rows + (size_t)request->ids[i] * request->row_bytes, request->row_bytes);
        }
        return CADRE_OK;
    case REQUEST_SLOT:
        assert_true(request->rows == 0 || request->slot < optimizer_slots(&shard->rule));
        copy_range(shard->slots[request->slot], request, false);
        request->updates = shard->updates;
        return CADRE_OK;
    case REQUEST_SET_SLOT:
        assert_true(request->rows == 0 || request->slot < optimizer_slots(&shard->rule));
        copy_range(shard->slots[request->slot], request, true);
        shard->updates = request->updates;
        return CADRE_OK;
    case REQUEST_TRAIN:
        train(shard, request->rule);
        return CADRE_OK;
    case REQUEST_RULE:
        rule_write(&shard->rule, request->into);
        return CADRE_OK;
    case REQUEST_STEP_NORMS:
        request->ret_steps = STEP_INCOMPLETE;
        return CADRE_OK;
    case REQUEST_NORMS:
        return find_norms(shard, request, error);
    case REQUEST_BEGIN_STEP:
        shard->steps = request->min_steps;
        return CADRE_OK;
    case REQUEST_PUSH:
        return apply(shard, request, error);
    default:
        assert_int_equal(request->kind, REQUEST_PUSH_PULL);
        CADRE_TRY(apply(shard, request, error));
        copy_range(shard->rows, request, false);
        return CADRE_OK;
    }
}

static cadre_status answer(struct request *request, struct cadre_error *error)
{
    assert_true(request->server < fake.self.ps_job.servers);
    switch (request->kind) {
    case REQUEST_CREATE:
        return create(request, error);
    case REQUEST_NOTE:
        fake_note(request->name, request->values, (size_t)request->rows);
        return CADRE_OK;
    case REQUEST_FIND_NOTE:
        return noted(request, error);
    case REQUEST_NOTE_NAMES:
        noted_names(request);
        return CADRE_OK;
    default:
        return answer_shard(request, error);
    }
}

cadre_status __wrap_client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, struct cadre_error *error)
{
    (void)client;
    assert_int_equal(done_watermark, 1);
    assert_true(count > 0);
    bool fails = fault_point("client.call");
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&fake.lock);
    fake.counts.calls++;
    fake.counts.requests += count;
    fake.last_memory = requests[0].into != NULL ? requests[0].into : requests[0].values;
    for (size_t i = 0; i < count; i++) {
        struct cadre_error own = {0};
        bool lost = fails && i == count - 1; /* the others were answered */
        requests[i].code = lost ? cadre_error_set(&own, CADRE_UNAVAILABLE, "ps 1 is lost")
                                : answer(&requests[i], &own);
        if (status == CADRE_OK && requests[i].code != CADRE_OK) {
            status = requests[i].code;
            *error = own;
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}
