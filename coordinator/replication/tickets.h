/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a leader's tickets, from replica_append() until they are in the log. Tickets are
 * numbered from 1, without a gap. */
#ifndef CADRE_COORDINATOR_REPLICATION_TICKETS_H
#define CADRE_COORDINATOR_REPLICATION_TICKETS_H

#include "common/etcd/etcd.h"
#include "coordinator/leadership/leadership.h"

struct kept_ticket {
    enum leadership_ticket_kind kind;
    uint32_t format; /* that its entry brings into force; 0: none */
    size_t size;
    void *bytes; /* NULL: of a LEADERSHIP_CONFIRM */
};

struct tickets {
    struct kept_ticket *ring;
    uint32_t max;
    uint64_t first; /* the oldest that is kept */
    uint64_t end;   /* the next new one */
};

/* RESOURCE_EXHAUSTED: no memory. Close accepts a zeroed one. */
cadre_status tickets_open(struct tickets *tickets, uint32_t max, struct cadre_error *error);
void tickets_close(struct tickets *tickets);

/* Copies the bytes and gives them the next number. RESOURCE_EXHAUSTED: as many as may be are kept,
 * or there is no memory. */
cadre_status tickets_keep(struct tickets *tickets, const struct kept_ticket *ticket,
    uint64_t *ret_ticket, struct cadre_error *error);
/* One that is kept. */
const struct kept_ticket *tickets_at(const struct tickets *tickets, uint64_t ticket);
/* Drops all up to this one. */
void tickets_drop(struct tickets *tickets, uint64_t ticket);

#endif
