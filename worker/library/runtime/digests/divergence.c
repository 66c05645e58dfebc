/* SPDX-License-Identifier: Apache-2.0
 * Whose state is not that of most, and in which tensor: collectives on all replicas, then a
 * sentence. digests.c calls it when digests differ. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/replica/collective_key.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

#define KEY_FIND (UINT64_MAX - 5) /* of the collectives here */

cadre_status divergence_fail(cadre_strategy *strategy, const char *text, struct cadre_error *error)
{
    uint64_t position = strategy_position(strategy);
    if (!strategy->environment->by_hand) {
        return cadre_error_set(error, CADRE_ABORTED,
            "the replicas' states differ after %" PRIu64 " steps: %s", position, text);
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "the replicas' states differ after %" PRIu64 " steps: %s; look for an uninitialised value, "
        "a sum over local rows, a clock, rand() or a thread in what writes it, and go on from an "
        "older checkpoint (CADRE_RESTORE)",
        position, text);
}

/* --- whose --- */

/* What a replica sends of its state. */
struct held {
    uint64_t digest;
    uint64_t changed; /* 1: its state was another one where it paused; else 0 */
};

/* What all sent, and the right one of them: that of most, or that of the replicas that have not
 * changed, because others may have received theirs from one that has. */
struct holdings {
    const struct held *held;
    uint32_t count;
    bool changed;      /* one has */
    uint64_t majority; /* 0: there is none */
};

static bool is_wrong(const struct holdings *holdings, uint32_t i)
{
    CADRE_ASSERT(i < holdings->count);
    return holdings->changed ? holdings->held[i].changed != 0
                             : holdings->held[i].digest != holdings->majority;
}

/* The digest that more than half of the replicas hold; 0: there is none. */
static uint64_t majority_of(const struct held *held, uint32_t count)
{
    uint64_t candidate = 0;
    uint32_t votes = 0;
    uint32_t holders = 0;
    for (uint32_t i = 0; i < count; i++) {
        candidate = votes == 0 ? held[i].digest : candidate;
        votes = held[i].digest == candidate ? votes + 1 : votes - 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        holders += held[i].digest == candidate ? 1 : 0;
    }
    return holders > count / 2 ? candidate : 0;
}

static struct holdings holdings_of(const struct held *held, uint32_t count)
{
    struct holdings holdings = {.held = held, .count = count, .majority = majority_of(held, count)};
    for (uint32_t i = 0; i < count; i++) {
        holdings.changed |= held[i].changed != 0;
    }
    return holdings;
}

static uint32_t slot_of(const cadre_strategy *strategy, uint32_t replica)
{
    uint32_t rank = replica / strategy->local_replicas;
    CADRE_ASSERT(rank < strategy->roster.member_count);
    return strategy->roster.slots != NULL ? strategy->roster.slots[rank]
                                          : strategy->environment->slot;
}

/* The tasks, each once, of replicas whose state is not the right one. */
static void list_culprits(
    const cadre_strategy *strategy, const struct holdings *holdings, struct divergence *divergence)
{
    uint32_t last = UINT32_MAX;
    divergence->culprit_count = 0;
    for (uint32_t i = 0; i < holdings->count; i++) {
        uint32_t rank = i / strategy->local_replicas;
        if (!is_wrong(holdings, i) || rank == last ||
            divergence->culprit_count == DIVERGENCE_CULPRITS_MAX) {
            continue;
        }
        last = rank;
        divergence->culprits[divergence->culprit_count++] = slot_of(strategy, i);
    }
}

/* --- the sentence --- */

/* "replica 3", and where there are several tasks " (task 1)". */
#define REPLICA_TEXT_BYTES 48
static const char *replica_text(
    const cadre_strategy *strategy, uint32_t replica, char text[REPLICA_TEXT_BYTES])
{
    if (strategy->roster.member_count > 1) {
        snprintf(
            text, REPLICA_TEXT_BYTES, "replica %u (task %u)", replica, slot_of(strategy, replica));
    } else {
        snprintf(text, REPLICA_TEXT_BYTES, "replica %u", replica);
    }
    return text;
}

/* The first replica whose state is not that of replica 0; there is one. */
static uint32_t first_other(const struct holdings *holdings)
{
    uint32_t i = 0;
    while (i + 1 < holdings->count && holdings->held[i].digest == holdings->held[0].digest) {
        i++;
    }
    return i;
}

static void describe_culprits(const cadre_strategy *strategy, const struct holdings *holdings,
    const char *what, char text[LIMIT_TEXT_BYTES])
{
    char room[REPLICA_TEXT_BYTES];
    char others[64] = "";
    uint32_t first = UINT32_MAX;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < holdings->count; i++) {
        first = first == UINT32_MAX && is_wrong(holdings, i) ? i : first;
        wrong += is_wrong(holdings, i) ? 1 : 0;
    }
    CADRE_ASSERT(wrong > 0 && (wrong < holdings->count || holdings->changed));
    if (wrong > 1) {
        snprintf(others, sizeof others, " and %u other%s", wrong - 1, wrong > 2 ? "s" : "");
    }
    const char *which = replica_text(strategy, first, room);
    const char *verb = wrong > 1 ? "do" : "does";
    if (holdings->changed) {
        snprintf(text, LIMIT_TEXT_BYTES,
            "%s%s %s not hold in %s what %s held before that step when "
            "the job regrouped",
            which, others, verb, what, wrong > 1 ? "they" : "it");
    } else {
        snprintf(text, LIMIT_TEXT_BYTES, "%s%s %s not hold in %s what the other %u hold", which,
            others, verb, what, holdings->count - wrong);
    }
}

static void describe_no_majority(const cadre_strategy *strategy, const struct holdings *holdings,
    const char *what, char text[LIMIT_TEXT_BYTES])
{
    char first[REPLICA_TEXT_BYTES];
    char other[REPLICA_TEXT_BYTES];
    snprintf(text, LIMIT_TEXT_BYTES,
        "%s and %s do not hold the same in %s, and no state is that of most replicas",
        replica_text(strategy, 0, first), replica_text(strategy, first_other(holdings), other),
        what);
}

/* --- the search --- */

/* The first tensor whose hash is not the same on all; UINT32_MAX: none of them. */
static cadre_status find_tensor(cadre_replica *replica, const struct state_hashes *hashes,
    const struct mesh_note *note, uint32_t *ret_tensor, struct cadre_error *error)
{
    struct mesh *mesh = replica->strategy->mesh;
    uint32_t count = hashes->count;
    *ret_tensor = UINT32_MAX;
    /* The least of each, and of its complement, which is that of the greatest. */
    CADRE_FREE_AT_EXIT uint64_t *ends = calloc(2 * (size_t)count + 1, sizeof *ends);
    if (ends == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the hashes of %u tensors", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        ends[i] = hashes->values[i];
        ends[count + i] = ~hashes->values[i];
    }
    const struct mesh_buffer buffer = {
        .data = ends, .bytes = 2 * (size_t)count * sizeof *ends, .dtype = MESH_I64};
    CADRE_TRY(mesh->ops->all_reduce(mesh, replica->local, MESH_MIN, &buffer, 1, note, error));
    for (uint32_t i = 0; i < count && *ret_tensor == UINT32_MAX; i++) {
        *ret_tensor = ends[i] != ~ends[count + i] ? i : UINT32_MAX;
    }
    return CADRE_OK;
}

/* The digests of all replicas; *ret_held[replica_count] is the caller's to free. */
static cadre_status digests_divergence_gather(cadre_replica *replica, const struct held *own,
    const struct mesh_note *note, struct held **ret_held, struct cadre_error *error)
{
    const cadre_strategy *strategy = replica->strategy;
    uint32_t count = strategy->replica_count;
    CADRE_FREE_AT_EXIT size_t *sizes = calloc(count, sizeof *sizes);
    *ret_held = calloc(count, sizeof **ret_held);
    if (sizes == NULL || *ret_held == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the digests of %u replicas", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = sizeof *own;
    }
    return strategy->mesh->ops->all_gather(
        strategy->mesh, replica->local, own, sizeof *own, sizes, *ret_held, note, error);
}

static void digests_divergence_describe(const cadre_strategy *strategy, const struct held *held,
    uint32_t tensor, struct divergence *ret_divergence, char text[LIMIT_TEXT_BYTES])
{
    char room[STATE_TENSOR_TEXT_BYTES];
    const char *what =
        tensor == UINT32_MAX ? "their variables" : state_tensor_text(strategy, tensor, room);
    const struct holdings holdings = holdings_of(held, strategy->replica_count);
    const struct verified *verified = &strategy->step.verified;
    *ret_divergence = (struct divergence){.position = strategy_position(strategy),
        .verified = verified->digest != 0 ? verified->position : strategy->roster.resume};
    if (holdings.majority != 0 || holdings.changed) {
        list_culprits(strategy, &holdings, ret_divergence);
        describe_culprits(strategy, &holdings, what, text);
    } else {
        describe_no_majority(strategy, &holdings, what, text);
    }
}

cadre_status divergence_find(cadre_replica *replica, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct digests_part *part = strategy->digests;
    const struct state_hashes *hashes = &part->hashes[replica->local];
    uint64_t digest = state_digest(hashes);
    const struct held own = {
        .digest = digest, .changed = pause_digest_differs(strategy, digest) ? 1 : 0};
    CADRE_FREE_AT_EXIT struct held *held = NULL;
    uint32_t tensor = UINT32_MAX;
    struct divergence divergence;
    char text[LIMIT_TEXT_BYTES];
    const struct mesh_note note = {.key = collective_key(KEY_FIND, strategy_position(strategy)),
        .text = "a replica looks for the difference in its state"};
    CADRE_TRY(digests_divergence_gather(replica, &own, &note, &held, error));
    CADRE_TRY(find_tensor(replica, hashes, &note, &tensor, error));
    digests_divergence_describe(strategy, held, tensor, &divergence, text);
    if (replica->local == 0) {
        part->divergence = divergence;
        snprintf(part->text, sizeof part->text, "%s", text);
        part->found = true;
    }
    /* The first to leave here ends the mesh, so all meet once more, with the result. */
    struct cadre_error ended;
    (void)strategy->mesh->ops->barrier(strategy->mesh, replica->local, &note, &ended);
    return divergence_fail(strategy, text, error);
}
