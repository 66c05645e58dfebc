/* SPDX-License-Identifier: Apache-2.0
 * Operations of one request and one answer. */
#ifndef CADRE_CLIENT_QUERY_H
#define CADRE_CLIENT_QUERY_H

#include "cadre/client.h"
#include "common/wire/wire.h"

struct query;

/* Makes the result from the bytes of an answer, in `arena`, which belongs to the result on
 * success. */
typedef cadre_status query_read_fn(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error);

/* NULL: no memory; operation_new_status() is to be returned then. */
struct query *query_new(
    cadre_client *client, query_read_fn *read, void **ret_result, const cadre_then *then);

/* Sends the request that was packed with the status `packed` and the error; the operation ends with
 * that, if it is not OK. Returns what the call of the client returns. */
cadre_status query_launch(struct query *query, const char *path, cadre_status packed,
    struct cadre_error *error, const cadre_then *then);

/* RESOURCE_EXHAUSTED: no memory for the answer. */
cadre_status query_no_memory(struct cadre_error *error);

#endif
