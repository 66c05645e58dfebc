/* SPDX-License-Identifier: Apache-2.0 */
#include "pusher_replicas.h"

#include <poll.h>
#include <time.h>

void pusher_work(int64_t us)
{
    const struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (us > 0) {
        (void)ppoll(NULL, 0, &left, NULL);
    }
}

/* The one that is added is the last replica's: "together" aggregates by sum. */
static cadre_status add_together(cadre_replica *replica)
{
    cadre_variable *together = NULL;
    cadre_tensor *part = NULL;
    bool last = cadre_replica_id(replica) + 1 == cadre_replica_count(replica);
    CADRE_TRY(cadre_variable_find(NULL, "together", &together));
    CADRE_TRY(cadre_tensor_from_i64(last ? 1 : 0, &part));
    cadre_status status = cadre_variable_assign(replica, together, CADRE_ASSIGN_ADD, part);
    cadre_tensor_release(part);
    return status;
}

/* The sum of 1 to R, of all of them. */
static cadre_status add_part(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t *work_us = user;
    (void)inputs;
    pusher_work(*work_us / 4);
    CADRE_TRY(add_together(replica));
    pusher_work(*work_us / 4);
    CADRE_TRY(cadre_tensor_from_i64((int64_t)cadre_replica_id(replica) + 1, &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

cadre_status pusher_meet(int64_t work_us)
{
    cadre_strategy *strategy = cadre_strategy_current();
    cadre_per_replica *sums = NULL;
    int64_t count = cadre_strategy_num_replicas_in_sync(strategy);
    CADRE_TRY(cadre_run(strategy, add_part, &work_us, NULL, 1, &sums));
    for (int64_t i = 0; i < count; i++) {
        const int64_t *sum = cadre_tensor_const_data(cadre_local_results(sums, 0)[i]);
        if (count < 2 || *sum != count * (count + 1) / 2) {
            return cadre_fail(CADRE_INTERNAL, "replica %lld of %lld has the sum %lld", (long long)i,
                (long long)count, (long long)*sum);
        }
    }
    return CADRE_OK;
}
