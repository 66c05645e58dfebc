/* SPDX-License-Identifier: Apache-2.0
 * Requests on their way to the store and back, and what happens to them there. The store itself is
 * that of the simulator of leadership (leadership/store.c). */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "replicas.h"

#define NO_ANSWER 1 /* of ON_LOG_ANSWER */
#define NO_SPACE  2

uint32_t request_new(struct sim *sim, uint32_t r, uint64_t number, bool is_read)
{
    struct replicas *all = sim->replicas;
    uint32_t at = 0;
    while (at < all->request_count && all->requests[at].used) {
        at++;
    }
    if (at == all->request_count) {
        all->requests = grown(
            all->requests, &all->request_capacity, ++all->request_count, sizeof(*all->requests));
    }
    struct request *request = &all->requests[at];
    request->used = true;
    request->is_read = is_read;
    request->replica = r;
    request->incarnation = all->replicas[r].incarnation;
    request->number = number;
    request->checks = STORE_CHECKS_ALL;
    request->payload.count = 0;
    return at;
}

uint64_t request_delay_us(struct sim *sim)
{
    uint64_t typical_us = sim->scenario.log_delay_us;
    uint64_t delay_us = typical_us / 2 + draw(sim, 0, typical_us);
    return one_in(sim, sim->scenario.log_slow_in) ? draw(sim, 0, sim->scenario.log_lease_us)
                                                  : delay_us;
}

void request_send(struct sim *sim, uint32_t request)
{
    struct request *its = &sim->replicas->requests[request];
    bool cut = sim->now_us < replica_of(sim, its->replica)->cut_up_us;
    if (cut || one_in(sim, sim->scenario.log_loses_in)) {
        its->used = false;
        return;
    }
    schedule(sim, request_delay_us(sim), ON_LOG_REQUEST, request, 0, 0);
}

static void answer(struct sim *sim, uint32_t request, uint64_t without)
{
    struct request *its = &sim->replicas->requests[request];
    bool cut = sim->now_us < replica_of(sim, its->replica)->cut_down_us;
    if (cut || one_in(sim, sim->scenario.log_loses_in)) {
        its->used = false;
        return;
    }
    schedule(sim, request_delay_us(sim), ON_LOG_ANSWER, request, 0, without);
}

static void notify(struct sim *sim)
{
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = replica_of(sim, r);
        if (replica->runs && sim->now_us >= replica->cut_down_us && r % 4 != 3) {
            schedule(sim, sim->scenario.log_delay_us / 2 + 1, ON_REPLICA_CHANGED, r,
                replica->incarnation, 0);
        }
    }
}

static void note_applied(struct sim *sim, uint32_t request)
{
    struct request *its = &sim->replicas->requests[request];
    struct replica *replica = replica_of(sim, its->replica);
    if (replica->incarnation == its->incarnation) {
        replica->guarded_at = sim->events;
    }
    if (sim->replicas->store.broken != NULL) {
        broken(sim, sim->replicas->store.broken, "%s", sim->replicas->store.why);
    }
    trace(sim, "etcd: transaction %d of c%u applies, term %llu, head %llu",
        (int)its->transaction.kind, its->replica, (unsigned long long)its->transaction.head.term,
        (unsigned long long)sim->replicas->store.head.index);
    if (its->transaction.kind == LOG_APPEND && sim->broken == NULL) {
        ledger_appended(sim, its);
    }
    if (sim->replicas->store.leader.term > sim->replicas->term_newest) {
        sim->replicas->term_newest = sim->replicas->store.leader.term;
    }
    if (its->transaction.kind == LOG_SNAPSHOT) {
        sim->replicas->folder.named = its->snapshot;
    }
    check_reachable(sim);
    backup_look(sim);
    notify(sim);
}

/* No quorum: the request is lost, or waits until there is one, or the member answers that. */
static void refuse(struct sim *sim, uint32_t request)
{
    uint64_t kind = draw(sim, 0, 2);
    if (kind == 0) {
        sim->replicas->requests[request].used = false;
    } else if (kind == 1) {
        answer(sim, request, NO_ANSWER);
    } else {
        schedule(sim, sim->scenario.log_lease_us / 3 + 1, ON_LOG_REQUEST, request, 0, 0);
    }
}

static void make_room(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    uint32_t needed = (uint32_t)all->store.head.index + LOG_APPEND_ENTRIES_MAX + 1;
    uint32_t before = all->entries_capacity;
    all->store.entries =
        grown(all->store.entries, &all->entries_capacity, needed, sizeof(*all->store.entries));
    for (uint32_t i = before; i < all->entries_capacity; i++) {
        all->store.entries[i] = (struct stored_entry){0};
    }
    all->store.entries_max = all->entries_capacity;
}

void request_arrives(struct sim *sim, uint32_t request, bool put)
{
    struct replicas *all = sim->replicas;
    struct request *its = &all->requests[request];
    make_room(sim);
    if (put) {
        store_write(&all->store, &its->transaction, &its->payload);
        its->answer = (struct leadership_answer){.applied = true, .revision = all->store.revision};
    } else if (sim->now_us < all->no_quorum_us) {
        refuse(sim, request);
        return;
    } else if (its->is_read) {
        store_read(&all->store, &its->after, its->entries_max, its->entries, &its->read);
        answer(sim, request, 0);
        return;
    } else if (sim->now_us < all->no_space_us) {
        answer(sim, request, NO_SPACE);
        return;
    } else {
        bool append = its->transaction.kind == LOG_APPEND;
        if (append && store_guard_holds(&all->store, &its->transaction, its->checks) &&
            mutant_goes_on(sim, MUTANT_LOOK_THEN_PUT)) {
            schedule(sim, request_delay_us(sim), ON_LOG_REQUEST, request, 1, 0);
            return;
        }
        store_transact(&all->store, &its->transaction, &its->payload, its->checks, &its->answer);
    }
    if (its->answer.applied) {
        note_applied(sim, request);
    }
    answer(sim, request, 0);
}
