/* SPDX-License-Identifier: Apache-2.0
 * The invariants over the whole world. Those of the log itself are in store.c.
 */
#include "world.h"

#include "common/pure/assert.h"

/* Each SQLite file is a prefix of the log; after a restore, one that has more
 * is set aside, unless the leader's transaction in flight wrote the same
 * entries again. */
void check_copy(struct world *world, uint32_t n, uint32_t lineage)
{
    struct node *node = &world->nodes[n];
    uint64_t index = node->copy.index;
    struct log_hash hash = store_hash_at(&world->store, index);
    if (node->held != index) {
        world_break(world, "ONE_LINE", "the copy of c%u at entry %llu holds the records of %llu", n,
            (unsigned long long)index, (unsigned long long)node->held);
        return;
    }
    if (index <= world->store.head.index && log_hash_equal(&hash, &node->copy.hash)) {
        node->forked = false;
        return;
    }
    if (lineage < world->lineage && index > world->backup_index) {
        node->forked = true;
        return;
    }
    world_break(world, "ONE_LINE", "the copy of c%u at entry %llu is no prefix of the log%s", n,
        (unsigned long long)index, node->forked ? ", which was cut by a restore" : "");
}

/* Two that lead never send in turns, whatever was paused; `late`: the pause was
 * behind the look. */
void check_sending(struct world *world, uint32_t n, uint64_t term, bool late)
{
    if (late || !world->scenario.clocks_in_bound || world->restored) {
        return;
    }
    if (term < world->term_sent) {
        world_break(world, "BOTH", "c%u sends in term %llu, term %llu has sent before", n,
            (unsigned long long)term, (unsigned long long)world->term_sent);
    }
    world->term_sent = term;
}

static void check_trim(struct world *world, const struct log_transaction *transaction)
{
    uint32_t holders = 0;
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        const struct node *node = &world->nodes[n];
        for (uint32_t i = 0; i < node->snapshot_count; i++) {
            holders += node->snapshots[i] == world->store.snapshot_index ? 1 : 0;
        }
    }
    world->trims++;
    if (holders < 2 || world->store.snapshot_index < transaction->trim_to) {
        world_break(world, "TRIM",
            "entries up to %llu are deleted, the snapshot at %llu is on %u disks",
            (unsigned long long)transaction->trim_to,
            (unsigned long long)world->store.snapshot_index, holders);
    }
}

void check_transaction(struct world *world, const struct message *message)
{
    const struct log_transaction *transaction = &message->transaction;
    if (world->store.broken != NULL) {
        world_break(world, world->store.broken, "%s", world->store.why);
        return;
    }
    if (transaction->kind == LOG_TRIM) {
        check_trim(world, transaction);
    }
    for (uint32_t i = 0; i < message->payload.count && transaction->kind == LOG_APPEND; i++) {
        const struct content *content = &message->payload.contents[i];
        uint64_t index = transaction->first_index + i;
        world->appended++;
        if (content->kind != CONTENT_JOB) {
            continue;
        }
        uint64_t known = world->request_index[content->request];
        if (known != 0 && known != index) {
            world_break(world, "TWICE", "request %llu is in entries %llu and %llu",
                (unsigned long long)content->request, (unsigned long long)known,
                (unsigned long long)index);
        }
        world->request_index[content->request] = index;
    }
}

/* Only an etcd that was put back, or a version that is too old, is a reason. */
void check_refused(struct world *world, uint32_t n, const char *text)
{
    const struct node *node = &world->nodes[n];
    bool too_old = node->format_max < world->store.cluster.format;
    if (!world->restored && !too_old) {
        world_break(world, "REFUSED", "c%u: %s", n, text);
    }
}

static void check_node_at_end(struct world *world, uint32_t n, uint32_t *leaders)
{
    const struct node *node = &world->nodes[n];
    if (!node->exists || node->removed) {
        return;
    }
    if (!node->runs) {
        world_break(world, "PROGRESS", "c%u does not run", n);
        return;
    }
    *leaders += node_may_send(world, node) ? 1 : 0;
    if (node->copy.index != world->store.head.index || node->refused) {
        world_break(world, "PROGRESS", "c%u is at entry %llu, the log at %llu", n,
            (unsigned long long)node->copy.index, (unsigned long long)world->store.head.index);
    }
}

void check_end(struct world *world)
{
    uint32_t leaders = 0;
    if (world->broken != NULL || world->store.full) {
        return;
    }
    for (uint64_t r = 1; r <= world->request_count; r++) {
        if (world->request_answered[r] && world->request_index[r] == 0) {
            world_break(world, "LOST", "request %llu was answered, and is not in the log",
                (unsigned long long)r);
        }
    }
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        check_node_at_end(world, n, &leaders);
    }
    if (leaders != 1) {
        world_break(world, "PROGRESS", "%u coordinators lead", leaders);
    }
    for (uint32_t c = 0; c < world->scenario.clients; c++) {
        if (world->clients[c].request != 0) {
            world_break(world, "PROGRESS", "client %u has no answer to request %llu", c,
                (unsigned long long)world->clients[c].request);
        }
    }
}
