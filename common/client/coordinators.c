/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_coordinators: the coordinators of the cluster, and which one leads. */
#include "cadre/client_coordinators.h"

#include "common/client/query.h"
#include "common/client/state.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

static cadre_status read_coordinators(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct list_coordinators_response response;
    CADRE_TRY(wire_unpack_list_coordinators_response(data, length, arena, &response, error));
    *ret_result = view_coordinators_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_coordinators(
    cadre_client *client, cadre_coordinator_list **ret_coordinators, const cadre_then *then)
{
    struct query *query = query_new(client, read_coordinators, (void **)ret_coordinators, then);
    struct cadre_error error = {0};
    return query != NULL ? query_launch(query, METHOD_COORDINATORS_LIST, CADRE_OK, &error, then)
                         : operation_new_status(client, then);
}
