/* SPDX-License-Identifier: Apache-2.0
 * One call for one operation: the shards that take part, and the request to each. */
#ifndef CADRE_RUNTIME_SERVED_CALL_H
#define CADRE_RUNTIME_SERVED_CALL_H

#include "worker/library/runtime/served/served.h"

/* Rows [first, first + rows) of the variable; an empty range goes to its first shard. */
struct row_range {
    uint64_t first;
    uint64_t rows;
};
/* All rows. */
struct row_range served_all(const cadre_variable *variable);

/* `like` has what all requests have in common: kind, push, slot, min_steps; its values and into are
 * those of the whole range, or NULL. The shards' versions are written to `versions` ([shards], or
 * NULL); `based_on` ([shards], or NULL) are those of the pushes. */
cadre_status served_call_range(const cadre_variable *variable, struct row_range range,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error);

/* Rows by number, in any order: values and into have `count` rows in the order of `ids`.
 * OUT_OF_RANGE names the row. `all`: shards without any of them get a request too. */
struct row_list {
    const int64_t *ids;
    size_t count;
    bool all;
};
/* As served_call_range, for rows by number. */
cadre_status served_call_rows(const cadre_variable *variable, struct row_list rows,
    const struct request *like, const uint64_t *based_on, uint64_t *versions,
    struct cadre_error *error);

/* One request to each shard, for none of its rows, as `like`; the answers are in *ret_requests,
 * [shards], which the caller frees, also on error. */
cadre_status served_call_shards(const cadre_variable *variable, const struct request *like,
    struct request **ret_requests, struct cadre_error *error);

/* Sends them: errors name the variable. A push of one variable whose trust is NaN is one of LAMB
 * over shards (client_push_shards). */
cadre_status served_send(const cadre_variable *variable, struct request *requests, size_t count,
    struct cadre_error *error);

/* How many rows are held at a time. */
uint64_t served_piece_rows(const cadre_variable *variable);

#endif
