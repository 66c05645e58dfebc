/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs/ID, /api/jobs/ID/shards. The object of a job with many tasks or files is made by a
 * thread: with 16,384 tasks that takes a tenth of a second. */
#include "common/json/json.h"
#include "common/view/view.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/pages/api_deferred.h"

#define SHOWN_AT_ONCE 64 /* tasks, and files of its datasets */

typedef json_t *(*json_of_fn)(const cadre_job *job);

struct job_answer {
    struct api_deferred base;
    struct wire_buffer packed;
    json_of_fn json_of;
};

cadre_status api_job_id(
    const struct api_request *api, struct job_id *ret_job, struct cadre_error *error)
{
    if (!http_number_parse(api->subject, INT64_MAX, &ret_job->n) || ret_job->n == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.60s is not the number of a job: /api/jobs lists them", api->subject);
    }
    return CADRE_OK;
}

static void job_answer_release(struct api_deferred *deferred)
{
    wire_buffer_free(&((struct job_answer *)deferred)->packed);
}

/* In a thread. */
static void make_object(struct api_deferred *deferred)
{
    const struct job_answer *answer = (struct job_answer *)deferred;
    struct job_info info;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    cadre_job *job = NULL;
    if (arena != NULL && wire_unpack_job_info(answer->packed.bytes, answer->packed.size, arena,
                             &info, &deferred->error) == CADRE_OK) {
        job = view_job_new(&info, arena);
    }
    if (job == NULL) {
        wire_arena_free(arena);
    }
    if (deferred->error.code == CADRE_OK) {
        api_deferred_take(deferred, job != NULL ? answer->json_of(job) : NULL);
    }
    cadre_result_release(job);
}

static void answer_deferred(
    const struct api_request *api, const struct job_info *info, json_of_fn json_of)
{
    struct job_answer *answer = api_deferred_new(api, info->id, sizeof *answer, job_answer_release);
    if (answer == NULL) {
        return;
    }
    answer->json_of = json_of;
    if (wire_pack_job_info(info, &answer->packed, &answer->base.error) != CADRE_OK) {
        api_deferred_answer(&answer->base);
        return;
    }
    answer->base.made_us = clock_monotonic_us() - api->began_us;
    api_deferred_work(&answer->base, make_object, api_deferred_answer);
}

static size_t count_shown(const struct job_info *info)
{
    size_t count = info->task_count;
    for (size_t i = 0; i < info->shards_count; i++) {
        count += info->shards[i].shown_count;
    }
    return count;
}

/* The job as one of the objects that common/json has of it. */
static void answer_job(const struct api_request *api, json_of_fn json_of)
{
    struct cadre_error error = {0};
    struct job_id id;
    struct job_info info;
    if (api_job_id(api, &id, &error) != CADRE_OK ||
        listing_job(api->daemon->engine, id, &info, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    if (count_shown(&info) > SHOWN_AT_ONCE) {
        answer_deferred(api, &info, json_of);
        return;
    }
    cadre_job *job = view_job_new(&info, NULL);
    api_answer(api, job != NULL ? json_of(job) : NULL);
    cadre_result_release(job);
}

void api_job(const struct api_request *api)
{
    answer_job(api, json_of_job);
}

void api_shards(const struct api_request *api)
{
    answer_job(api, json_of_shards);
}
