/* SPDX-License-Identifier: Apache-2.0
 * One operation as requests to shards, sent in one client_call. Called by served_read.c,
 * served_push.c, served_values.c and served_stream.c. */
#include "worker/library/runtime/served/served_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/row_groups.h"
#include "worker/library/trace/trace.h"

struct row_range served_all(const cadre_variable *variable)
{
    return (struct row_range){.rows = variable->served->layout.rows};
}

uint64_t served_piece_rows(const cadre_variable *variable)
{
    uint64_t rows =
        variable->served->row_bytes == 0 ? 1 : SERVED_PIECE_BYTES / variable->served->row_bytes;
    return rows == 0 ? 1 : rows;
}

/* Of reads and pushes, on the lane of the replica that makes it. */
static void served_call_trace(struct trace_mark mark, const struct request *requests, size_t count)
{
    uint64_t bytes = 0;
    if (mark.begin_ns == 0 || count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bytes += requests[i].rows * requests[i].row_bytes;
    }
    enum request_kind kind = requests[0].kind;
    bool pulls = kind == REQUEST_PULL || kind == REQUEST_GATHER || kind == REQUEST_SLOT;
    if (pulls || kind == REQUEST_PUSH || kind == REQUEST_PUSH_PULL) {
        const cadre_replica *replica = context_replica();
        trace_put_collective(mark, pulls ? TRACE_PULL : TRACE_PUSH,
            replica != NULL ? cadre_replica_local_id(replica) : 0, 0, bytes, 0);
    }
}

cadre_status served_send(const cadre_variable *variable, struct request *requests, size_t count,
    struct cadre_error *error)
{
    struct trace_mark mark = trace_begin();
    struct ps_job_state *ps_job = variable->served->all->ps_job;
    bool sharded = count > 0 && isnan(requests[0].push.trust);
    cadre_status status =
        sharded
            ? client_push_shards(ps_job->client, requests, count, ps_job_done_watermark(), error)
            : client_call(ps_job->client, requests, count, ps_job_done_watermark(), error);
    served_call_trace(mark, requests, count);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "variable '%s'", variable->name);
}

static cadre_status get_requests(const cadre_variable *variable, uint64_t count,
    struct request **ret_requests, struct cadre_error *error)
{
    *ret_requests = calloc((size_t)count + 1, sizeof **ret_requests);
    return *ret_requests != NULL ? CADRE_OK
                                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "no memory for requests to %llu shards of variable '%s'",
                                       (unsigned long long)count, variable->name);
}

/* A request with the kind of `like`, whose rows begin at row `at` of the caller's memory. */
static struct request request_of(const cadre_variable *variable, const struct request *like,
    uint64_t shard, uint64_t rows, uint64_t at)
{
    CADRE_ASSERT(shard < variable->served->layout.shards);
    struct request request = *like;
    request.server = variable->served->shards[shard].server;
    request.shard = variable->served->shards[shard].number;
    request.row_bytes = variable->served->row_bytes;
    request.rows = rows;
    request.push.shard = request.shard;
    request.push.rows = rows;
    if (like->values != NULL) {
        request.values = (const char *)like->values + at * variable->served->row_bytes;
    }
    if (like->into != NULL) {
        request.into = (char *)like->into + at * variable->served->row_bytes;
    }
    return request;
}

static void set_base(struct request *request, const uint64_t *based_on, uint64_t shard)
{
    if (based_on != NULL) {
        request->push.based_on = based_on[shard] == UINT64_MAX ? PUSH_ANY_VERSION : based_on[shard];
    }
}

cadre_status served_call_range(const cadre_variable *variable, struct row_range range,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    uint64_t end = range.first + range.rows;
    CADRE_ASSERT(end <= variable->served->layout.rows);
    uint64_t begin_shard =
        range.rows == 0 ? 0 : partition_owner(variable->served->layout, range.first);
    uint64_t end_shard =
        range.rows == 0 ? 1 : partition_owner(variable->served->layout, end - 1) + 1;
    CADRE_ASSERT(begin_shard < end_shard);
    CADRE_ASSERT(end_shard <= variable->served->layout.shards);
    CADRE_TRY(get_requests(variable, end_shard - begin_shard, &requests, error));
    size_t count = 0;
    for (uint64_t shard = begin_shard; shard < end_shard; shard++) {
        uint64_t first = partition_first(variable->served->layout, shard);
        uint64_t last = first + partition_rows(variable->served->layout, shard);
        uint64_t from = first > range.first ? first : range.first;
        uint64_t to = last < end ? last : end;
        to = to < from ? from : to; /* no rows */
        requests[count] = request_of(variable, like, shard, to - from, from - range.first);
        requests[count].first = from - first;
        requests[count].push.first_row = from - first;
        set_base(&requests[count], based_on, shard);
        count++;
    }
    cadre_status status = served_send(variable, requests, count, error);
    for (size_t i = 0; versions != NULL && i < count; i++) {
        versions[begin_shard + i] = requests[i].ret_version;
    }
    return status;
}

cadre_status served_call_shards(const cadre_variable *variable, const struct request *like,
    struct request **ret_requests, struct cadre_error *error)
{
    const size_t shards = (size_t)variable->served->layout.shards;
    CADRE_TRY(get_requests(variable, shards, ret_requests, error));
    for (size_t i = 0; i < shards; i++) {
        (*ret_requests)[i] = request_of(variable, like, i, 0, 0);
    }
    return served_send(variable, *ret_requests, shards, error);
}

/* --- rows by number --- */

/* The caller's rows, in the order of the groups; into: memory for them. The caller frees
 * `ret_memory`. */
static cadre_status order_rows(const cadre_variable *variable, const struct row_groups *groups,
    struct request *like, char **ret_memory, struct cadre_error *error)
{
    CADRE_ASSERT(like->values == NULL || like->into == NULL);
    size_t bytes = groups->count * variable->served->row_bytes;
    if (groups->positions == NULL) {
        return CADRE_OK; /* they are in order: no copy */
    }
    *ret_memory = malloc(bytes + 1);
    if (*ret_memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu rows of variable '%s', %zu bytes", groups->count, variable->name,
            bytes);
    }
    if (like->values != NULL) {
        row_groups_gather(groups, variable->served->row_bytes, like->values, *ret_memory);
        like->values = *ret_memory;
    } else {
        like->into = *ret_memory;
    }
    return CADRE_OK;
}

static cadre_status call_groups(const cadre_variable *variable, const struct row_groups *groups,
    bool all, const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_ASSERT(groups->begins[variable->served->layout.shards] == groups->count);
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    size_t count = 0;
    uint64_t most = variable->served->layout.shards;
    most = all || most < groups->count ? most : groups->count;
    CADRE_TRY(get_requests(variable, most, &requests, error));
    for (uint64_t shard = 0; shard < variable->served->layout.shards; shard++) {
        size_t begin = groups->begins[shard];
        size_t rows = groups->begins[shard + 1] - begin;
        if (rows == 0 && !all) {
            continue;
        }
        struct request *request = &requests[count++];
        *request = request_of(variable, like, shard, rows, begin);
        request->ids = groups->ids + begin;
        request->push.sparse = true;
        request->push.ids = request->ids;
        set_base(request, based_on, shard);
    }
    CADRE_ASSERT(count <= most);
    cadre_status status = count == 0 ? CADRE_OK : served_send(variable, requests, count, error);
    count = 0;
    for (uint64_t shard = 0; versions != NULL && shard < variable->served->layout.shards; shard++) {
        if (all || groups->begins[shard + 1] > groups->begins[shard]) {
            versions[shard] = requests[count++].ret_version;
        }
    }
    return status;
}

cadre_status served_call_rows(const cadre_variable *variable, struct row_list rows,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *memory = NULL;
    CADRE_CLEANUP(row_groups_clear) struct row_groups groups = {0};
    struct request ordered = *like;
    CADRE_TRY(row_groups_make(
        variable->name, variable->served->layout, rows.ids, rows.count, &groups, error));
    CADRE_TRY(order_rows(variable, &groups, &ordered, &memory, error));
    CADRE_TRY(call_groups(variable, &groups, rows.all, &ordered, based_on, versions, error));
    if (memory != NULL && like->into != NULL) {
        row_groups_scatter(&groups, variable->served->row_bytes, memory, like->into);
    }
    return CADRE_OK;
}
