/* SPDX-License-Identifier: Apache-2.0
 * The stub's proofs. */
#include <string.h>

#include "stub.h"

#include "common/pure/digest.h"

/* The consumption of ids 0 to `samples` - 1; with `twice` one is consumed again instead of the
 * last. */
static struct consumption consumption_of(
    uint64_t steps, uint64_t samples, bool twice, uint64_t epoch)
{
    struct digest_key key = digest_key_make("train", strlen("train"), epoch);
    struct digest consumed = {{0, 0}};
    for (uint64_t id = 0; id < samples; id++) {
        digest_add(&consumed, &key, twice && id == samples - 1 ? 0 : id);
    }
    return (struct consumption){.steps = steps,
        .samples = samples,
        .consumed = {consumed.lane[0], consumed.lane[1]},
        .expected = {consumed.lane[0], consumed.lane[1]},
        .provable = true};
}

static struct verify_epoch make_epoch(
    uint64_t epoch, uint64_t steps, struct consumption consumption)
{
    return (struct verify_epoch){.stream = 1,
        .name = "train",
        .shares = true,
        .source_samples = 1000,
        .cursor =
            {.stream = 1, .epoch = epoch, .first = 10 * epoch, .begin = 10 * epoch, .steps = steps},
        .consumption = consumption};
}

static size_t epochs_of(uint64_t job, struct verify_epoch epochs[STUB_EPOCHS_MAX])
{
    epochs[0] = make_epoch(0, 10, consumption_of(10, 1000, false, 0));
    epochs[1] = make_epoch(1, 10, consumption_of(10, 1000, false, 1));
    epochs[2] = make_epoch(2, 10, consumption_of(10, 1000, false, 2));
    switch (job) {
    case JOB_TWICE: /* sample 0 twice, sample 999 never */
        epochs[1].consumption = consumption_of(10, 1000, true, 1);
        epochs[1].consumption.expected[0] = consumption_of(10, 1000, false, 1).expected[0];
        return 3;
    case JOB_OTHER_EPOCH: /* all ids, but under the key of another epoch */
        epochs[1].consumption = consumption_of(10, 1000, false, 7);
        epochs[1].consumption.provable = false;
        return 3;
    case JOB_PARTLY:
        epochs[0].consumption = consumption_of(10, 960, false, 0); /* the remainder is dropped */
        epochs[1].consumption = consumption_of(4, 400, false, 1);
        epochs[2].consumption =
            consumption_of(10, 1000, true, 2); /* a definition with a repetition */
        return 3;
    case JOB_UNKNOWN:
        epochs[0].shares = false;
        epochs[1].consumption = consumption_of(10, 900, false, 1);
        epochs[1].consumption.provable = false;
        epochs[2] = (struct verify_epoch){.name = "", .consumption = {.steps = 10}};
        epochs[3] = make_epoch(4, 10, (struct consumption){.provable = true});
        return 4;
    case JOB_FILES:
        for (uint64_t i = 0; i < 4; i++) {
            epochs[i] = make_epoch(i, 10, consumption_of(10, 900, i == 3, i));
            epochs[i].source_samples = 0;
            epochs[i].consumption.files = i == 1   ? CONSUMED_FILES_DROPPED
                                          : i == 2 ? CONSUMED_FILES_LEFT
                                                   : CONSUMED_FILES_ALL;
        }
        epochs[3].consumption.expected[0] = consumption_of(10, 900, false, 3).expected[0];
        return 4;
    case JOB_LARGE:
        for (size_t i = 0; i < 3; i++) {
            epochs[i].source_samples = epochs[i].consumption.samples = 50000000;
        }
        return 3;
    case JOB_NOTHING:
        return 0;
    default:
        return 3;
    }
}

/* ---- page by page ---- */

#define PAGE         3
#define PAGED_EPOCHS 9 /* of "train", and the current one; one more with each page */

/* Adds the epoch when it is on the page; which is always so of one that is `newest`. */
static void add_paged(const struct verify_request *request, struct verify_epoch epoch, bool newest,
    struct verify_response *response, struct verify_epoch epochs[STUB_EPOCHS_MAX])
{
    const struct verify_from *from = &request->from;
    bool first = from->stream == 0;
    bool after = epoch.stream > from->stream ||
                 (epoch.stream == from->stream && epoch.cursor.epoch >= from->epoch);
    if (after && !response->more && response->epoch_count == PAGE) {
        response->more = true;
        response->next.generation = 5;
        response->next.stream = epoch.stream;
        response->next.epoch = epoch.cursor.epoch;
    }
    if (after && (!response->more || (first && newest))) {
        epochs[response->epoch_count++] = epoch;
    }
}

/* States after 10, 20, ... steps, two to a page; the first page also has the newest. */
#define STATES 7
static void add_states(const struct verify_request *request, unsigned pages,
    struct verify_response *response, struct verified *states)
{
    uint64_t from = request->from.position;
    bool full = false;
    for (uint64_t i = 1; i < STATES + pages; i++) {
        const struct verified state = {.position = 10 * i, .digest = i};
        bool newest = i == STATES + pages - 1;
        if (state.position < from) {
            continue;
        }
        if (!full && response->verified_count == 2) {
            full = response->more = true;
            response->next.position = state.position;
        }
        if (!full || (from == 0 && newest)) {
            states[response->verified_count++] = state;
        }
    }
    response->next.position = full ? response->next.position : 10 * (STATES + pages);
    response->verified = states;
}

/* A job that goes on while it is asked for: each page after the first finds one more epoch, and
 * that which was the newest whole. */
static void paged(struct stub *stub, const struct verify_request *request,
    struct verify_response *response, struct verify_epoch epochs[STUB_EPOCHS_MAX],
    struct verify_generation generations[3], struct verified states[3])
{
    bool first = request->from.stream == 0;
    unsigned pages = ++stub->audit_pages;
    response->job.state = JOB_RUNNING;
    response->job.generation = 4;
    response->committed = 104;
    for (uint64_t epoch = 0; epoch < PAGED_EPOCHS + pages; epoch++) {
        bool newest = epoch == PAGED_EPOCHS + pages - 1;
        struct consumption consumption =
            newest ? consumption_of(4, 400, false, epoch) : consumption_of(10, 1000, false, epoch);
        add_paged(request, make_epoch(epoch, 10, consumption), newest, response, epochs);
    }
    struct verify_epoch other = make_epoch(0, 10, consumption_of(10, 1000, false, 0));
    other.stream = other.cursor.stream = 2;
    other.name = "other";
    other.shares = false;
    add_paged(request, other, true, response, epochs);
    add_states(request, pages, response, states);
    if (!first) {
        bool again =
            request->id.n == JOB_PAGED_NEVER || (request->id.n == JOB_PAGED_AGAIN && pages == 3);
        generations[0] = (struct verify_generation){
            .generation = {5, 15}, .resume = 90, .members = 4, .restarted = again};
        response->generation_count = 1;
    }
}

/* ---- the proof of each job; test_client_verify.c has what follows from it ---- */

static void on_verify(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct verify_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_verify_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    const struct job_id id = request.id;
    if (!stub_has_job(call, id)) {
        return;
    }
    struct verify_generation generations[3] = {
        {.generation = {1, 11}, .members = 4, .planned_us = 100},
        {.generation = {2, 12}, .resume = 12, .members = 3},
        {.generation = {4, 14}, .resume = 25, .members = 4},
    };
    struct verify_epoch epochs[STUB_EPOCHS_MAX];
    struct verified states[3] = {{.position = 10, .digest = 1}, {.position = 30, .digest = 3}};
    struct verify_response response = {.job = stub_job(id.n, JOB_SUCCEEDED),
        .committed = 30,
        .generations = generations,
        .generation_count = 3,
        .epochs = epochs};
    response.job.task_count = 0;
    if (id.n == JOB_PAGED || id.n == JOB_PAGED_AGAIN || id.n == JOB_PAGED_NEVER) {
        paged(stub, &request, &response, epochs, generations, states);
    } else {
        response.verified = states;
        response.verified_count = id.n == JOB_NOTHING ? 0 : 2;
        response.epoch_count = epochs_of(id.n, epochs);
    }
    if (id.n == JOB_REWOUND) {
        generations[2].resume = 5;
    } else if (id.n == JOB_UNDONE) {
        generations[2].resume = generations[1].resume - 1;
    } else if (id.n == JOB_RESTARTED) {
        generations[2].resume = 5;
        generations[2].restarted = true;
    } else if (id.n == JOB_SHORT) {
        response.committed = 20;
    } else if (id.n == JOB_MORE) {
        response.more = true;
    } else if (id.n == JOB_SURPLUS) {
        response.committed = 29;
    }
    STUB_SEND(stub, call, verify_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops stub_verify_ops = {.on_message = on_verify};
