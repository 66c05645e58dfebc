/* SPDX-License-Identifier: Apache-2.0
 * A ring of tickets. */
#include "coordinator/replication/tickets.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

static struct kept_ticket *slot_of(const struct tickets *tickets, uint64_t ticket)
{
    return &tickets->ring[ticket % tickets->max];
}

cadre_status tickets_open(struct tickets *tickets, uint32_t max, struct cadre_error *error)
{
    CADRE_ASSERT(max > 0);
    *tickets = (struct tickets){.max = max, .first = 1, .end = 1};
    tickets->ring = fault_point("replication.memory") ? NULL : calloc(max, sizeof *tickets->ring);
    return tickets->ring != NULL ? CADRE_OK
                                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "no memory for %u tickets of the log", max);
}

void tickets_close(struct tickets *tickets)
{
    if (tickets->ring != NULL) {
        tickets_drop(tickets, tickets->end - 1);
    }
    free(tickets->ring);
    tickets->ring = NULL;
}

cadre_status tickets_keep(struct tickets *tickets, const struct kept_ticket *ticket,
    uint64_t *ret_ticket, struct cadre_error *error)
{
    void *bytes = NULL;
    if (tickets->end - tickets->first == tickets->max) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%u entries wait for etcd, and more may not", tickets->max);
    }
    if (ticket->size > 0) {
        bytes = fault_point("replication.memory") ? NULL : malloc(ticket->size);
        if (bytes == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for an entry of %zu bytes", ticket->size);
        }
        memcpy(bytes, ticket->bytes, ticket->size);
    }
    *ret_ticket = tickets->end++;
    struct kept_ticket *kept = slot_of(tickets, *ret_ticket);
    *kept = *ticket;
    kept->bytes = bytes;
    return CADRE_OK;
}

const struct kept_ticket *tickets_at(const struct tickets *tickets, uint64_t ticket)
{
    CADRE_ASSERT(ticket >= tickets->first && ticket < tickets->end);
    return slot_of(tickets, ticket);
}

void tickets_drop(struct tickets *tickets, uint64_t ticket)
{
    for (; tickets->first <= ticket; tickets->first++) {
        CADRE_ASSERT(tickets->first < tickets->end);
        free(slot_of(tickets, tickets->first)->bytes);
        slot_of(tickets, tickets->first)->bytes = NULL;
    }
}
