/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/parameter_call.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/parameters/row_groups.h"

struct row_range parameter_all(const cadre_parameter *parameter)
{
    return (struct row_range){.rows = parameter->layout.rows};
}

uint64_t parameter_piece_rows(const cadre_parameter *parameter)
{
    uint64_t rows = parameter->row_bytes == 0 ? 1 : PARAMETER_PIECE_BYTES / parameter->row_bytes;
    return rows == 0 ? 1 : rows;
}

cadre_status parameter_send(const cadre_parameter *parameter, struct request *requests,
    size_t count, struct cadre_error *error)
{
    struct crew_state *crew = parameter->parameters->crew;
    cadre_status status = client_call(crew->client, requests, count, crew_done_below(), error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "parameter '%s'", parameter->name);
}

static cadre_status get_requests(const cadre_parameter *parameter, uint64_t count,
    struct request **ret_requests, struct cadre_error *error)
{
    *ret_requests = calloc((size_t)count + 1, sizeof **ret_requests);
    return *ret_requests != NULL ? CADRE_OK
                                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "no memory for requests to %llu shards of parameter '%s'",
                                       (unsigned long long)count, parameter->name);
}

/* A part of what `like` asks for, whose rows lie from row `at` on in the caller's memory. */
static struct request request_of(const cadre_parameter *parameter, const struct request *like,
    uint64_t shard, uint64_t rows, uint64_t at)
{
    CADRE_ASSERT(shard < parameter->layout.shards);
    struct request request = *like;
    request.server = parameter->shards[shard].server;
    request.shard = parameter->shards[shard].number;
    request.row_bytes = parameter->row_bytes;
    request.rows = rows;
    request.push.shard = request.shard;
    request.push.rows = rows;
    if (like->values != NULL) {
        request.values = (const char *)like->values + at * parameter->row_bytes;
    }
    if (like->into != NULL) {
        request.into = (char *)like->into + at * parameter->row_bytes;
    }
    return request;
}

static void set_base(struct request *request, const uint64_t *based_on, uint64_t shard)
{
    if (based_on != NULL) {
        request->push.based_on = based_on[shard] == UINT64_MAX ? PUSH_ANY_VERSION : based_on[shard];
    }
}

cadre_status parameter_call_range(cadre_parameter *parameter, struct row_range range,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    uint64_t end = range.first + range.rows;
    CADRE_ASSERT(end <= parameter->layout.rows);
    uint64_t begin_shard = range.rows == 0 ? 0 : partition_owner(parameter->layout, range.first);
    uint64_t end_shard = range.rows == 0 ? 1 : partition_owner(parameter->layout, end - 1) + 1;
    CADRE_ASSERT(begin_shard < end_shard);
    CADRE_ASSERT(end_shard <= parameter->layout.shards);
    CADRE_TRY(get_requests(parameter, end_shard - begin_shard, &requests, error));
    size_t count = 0;
    for (uint64_t shard = begin_shard; shard < end_shard; shard++) {
        uint64_t first = partition_first(parameter->layout, shard);
        uint64_t last = first + partition_rows(parameter->layout, shard);
        uint64_t from = first > range.first ? first : range.first;
        uint64_t to = last < end ? last : end;
        to = to < from ? from : to; /* of nothing */
        requests[count] = request_of(parameter, like, shard, to - from, from - range.first);
        requests[count].first = from - first;
        requests[count].push.first_row = from - first;
        set_base(&requests[count], based_on, shard);
        count++;
    }
    cadre_status status = parameter_send(parameter, requests, count, error);
    for (size_t i = 0; versions != NULL && i < count; i++) {
        versions[begin_shard + i] = requests[i].ret_version;
    }
    return status;
}

/* --- rows by number --- */

/* The caller's rows, in the order of the groups; into: memory for them. `ret_memory` is to be
 * freed. */
static cadre_status order_rows(const cadre_parameter *parameter, const struct row_groups *groups,
    struct request *like, char **ret_memory, struct cadre_error *error)
{
    CADRE_ASSERT(like->values == NULL || like->into == NULL);
    size_t bytes = groups->count * parameter->row_bytes;
    if (groups->positions == NULL) {
        return CADRE_OK; /* they are: straight from where the caller has them */
    }
    *ret_memory = malloc(bytes + 1);
    if (*ret_memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu rows of parameter '%s', %zu bytes", groups->count, parameter->name,
            bytes);
    }
    if (like->values != NULL) {
        row_groups_collect(groups, parameter->row_bytes, like->values, *ret_memory);
        like->values = *ret_memory;
    } else {
        like->into = *ret_memory;
    }
    return CADRE_OK;
}

static cadre_status call_groups(cadre_parameter *parameter, const struct row_groups *groups,
    bool all, const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_ASSERT(groups->begins[parameter->layout.shards] == groups->count);
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    size_t count = 0;
    uint64_t most = parameter->layout.shards;
    most = all || most < groups->count ? most : groups->count;
    CADRE_TRY(get_requests(parameter, most, &requests, error));
    for (uint64_t shard = 0; shard < parameter->layout.shards; shard++) {
        size_t begin = groups->begins[shard];
        size_t rows = groups->begins[shard + 1] - begin;
        if (rows == 0 && !all) {
            continue;
        }
        struct request *request = &requests[count++];
        *request = request_of(parameter, like, shard, rows, begin);
        request->ids = groups->ids + begin;
        request->push.sparse = true;
        request->push.ids = request->ids;
        set_base(request, based_on, shard);
    }
    CADRE_ASSERT(count <= most);
    cadre_status status = count == 0 ? CADRE_OK : parameter_send(parameter, requests, count, error);
    count = 0;
    for (uint64_t shard = 0; versions != NULL && shard < parameter->layout.shards; shard++) {
        if (all || groups->begins[shard + 1] > groups->begins[shard]) {
            versions[shard] = requests[count++].ret_version;
        }
    }
    return status;
}

cadre_status parameter_call_rows(cadre_parameter *parameter, struct row_list rows,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *memory = NULL;
    CADRE_CLEANUP(row_groups_clear) struct row_groups groups = {0};
    struct request ordered = *like;
    CADRE_TRY(
        row_groups_make(parameter->name, parameter->layout, rows.ids, rows.count, &groups, error));
    CADRE_TRY(order_rows(parameter, &groups, &ordered, &memory, error));
    CADRE_TRY(call_groups(parameter, &groups, rows.all, &ordered, based_on, versions, error));
    if (memory != NULL && like->into != NULL) {
        row_groups_spread(&groups, parameter->row_bytes, memory, like->into);
    }
    return CADRE_OK;
}
