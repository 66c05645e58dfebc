/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

void exchange_begin(struct exchange *exchange, cadre_replica *replica, size_t bucket_bytes)
{
    exchange->replica = replica;
    exchange->bucket_bytes = bucket_bytes;
    exchange->count = 0;
    exchange->begun = 0;
    exchange->bytes = 0;
    exchange->started_count = 0;
}

void exchange_add(struct exchange *exchange, cadre_tensor *tensor)
{
    exchange->tensors[exchange->count++] = tensor;
    exchange->bytes += cadre_tensor_bytes(tensor);
}

cadre_status exchange_go(struct exchange *exchange)
{
    if (exchange->bytes < exchange->bucket_bytes || cadre_replica_count(exchange->replica) == 1) {
        return CADRE_OK;
    }
    CADRE_TRY(
        cadre_all_reduce_start(exchange->replica, CADRE_SUM, exchange->tensors + exchange->begun,
            exchange->count - exchange->begun, NULL, &exchange->started[exchange->started_count]));
    exchange->started_count++;
    exchange->begun = exchange->count;
    exchange->bytes = 0;
    return CADRE_OK;
}

cadre_status exchange_end(struct exchange *exchange)
{
    cadre_status status = CADRE_OK;
    if (exchange->begun < exchange->count) { /* waits for those that were started, too */
        status = cadre_all_reduce(exchange->replica, CADRE_SUM, exchange->tensors + exchange->begun,
            exchange->count - exchange->begun, NULL);
    }
    for (size_t i = 0; i < exchange->started_count; i++) {
        cadre_status ended = cadre_collective_wait(exchange->started[i]);
        status = status == CADRE_OK ? ended : status;
    }
    return status;
}
