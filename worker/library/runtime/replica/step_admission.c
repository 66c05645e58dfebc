/* SPDX-License-Identifier: Apache-2.0
 * The calls of replica functions in a step: counted, noted, admitted, and failures kept.
 * collectives/, step/ and variables/ call it. */
#include "worker/library/runtime/replica/step_admission.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/collective_key.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/trace/trace.h"

void step_begin(cadre_strategy *strategy, uint64_t position, int64_t global_rows,
    uint32_t input_count, const char *const *input_names, const struct step_consumption *own)
{
    struct step *step = &strategy->step;
    step->position = position;
    CADRE_ASSERT(!atomic_load(&step->running));
    CADRE_ASSERT(atomic_load(&step->meeting) == 0);
    uint64_t begun = atomic_load_explicit(&step->begun, memory_order_relaxed);
    atomic_store_explicit(&step->begun, begun + 1, memory_order_relaxed);
    step->global_rows = global_rows;
    step->input_count = input_count;
    step->input_names = input_names;
    step->collectives_begun = 0;
    step->own = *own;
    step->consumption_known = false;
    step->equal = false;
    atomic_store(&step->admitted, false);
    atomic_store(&step->ended_collectives, UINT32_MAX);
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        cadre_replica *replica = &strategy->replicas[i];
        atomic_store(&replica->collectives, 0);
        CADRE_ASSERT(!replica->active);
        replica->all_know = false;
        replica->piggyback = false;
        replica->outputs_named = 0;
        replica->digest = 0;
        replica->collective_failed.code = CADRE_OK;
        replica->apply.count = 0;
        replica->apply.first = NULL;
    }
    atomic_store(&step->running, true);
}

void step_end(cadre_strategy *strategy)
{
    struct step *step = &strategy->step;
    CADRE_ASSERT(atomic_load(&step->running));
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        uint32_t begun = atomic_load(&strategy->replicas[i].collectives);
        step->collectives_begun = begun > step->collectives_begun ? begun : step->collectives_begun;
    }
    if (!step->consumption_known && strategy->roster.member_count == 1) {
        step->whole = step->own; /* there is no other task */
        step->consumption_known = true;
    }
    atomic_store(&step->running, false);
}

cadre_status step_require(
    const cadre_replica *replica, const char *function, struct cadre_error *error)
{
    if (replica == NULL && context_replica() != NULL) {
        return argument_require(replica, function, "replica", error);
    }
    if (replica == NULL || !replica->active) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called outside of a replica function; call it from the function given to "
            "cadre_run",
            function);
    }
    return CADRE_OK;
}

cadre_status step_require_own_thread(
    const cadre_replica *replica, const char *function, struct cadre_error *error)
{
    const cadre_replica *own = context_replica();
    if (own != NULL && replica != NULL && replica != own) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in the function of replica %u with another replica; give it the one "
            "that the function was given",
            function, own->id);
    }
    return step_require(replica == NULL ? NULL : own, function, error);
}

cadre_replica *step_current_replica(void)
{
    uint32_t local = 0;
    cadre_replica *replica = context_replica();
    if (replica == NULL && (context_update(&local) || context_merging())) {
        replica = &context_strategy()->replicas[local];
    }
    return replica;
}

void step_record_refusal(cadre_replica *replica, const struct cadre_error *error)
{
    if (replica != NULL && replica == step_current_replica() && replica->active &&
        replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
    }
}

/* --- the notes --- */

static void make_text(
    const cadre_replica *replica, const struct step_call *call, struct step_text *text)
{
    char root[48] = "";
    char count[64] = "";
    char shape[TENSOR_SHAPE_TEXT_BYTES] = "";
    if (call->root >= 0) {
        snprintf(root, sizeof root, " from replica %lld", (long long)call->root);
    }
    if (call->first != NULL && call->tensor_count > 1) {
        snprintf(count, sizeof count, "%zu tensors, the first ", call->tensor_count);
    }
    if (call->first != NULL) {
        tensor_shape_text(cadre_tensor_dtype(call->first), cadre_tensor_rank(call->first),
            cadre_tensor_dims(call->first), shape);
    }
    const char *device_text = call->on_device ? " on its GPU" : "";
    int length =
        snprintf(text->text, sizeof text->text, "replica %u calls %s%s%s%s%s%s", replica->id,
            call->function, root, call->first != NULL ? " with " : "", count, shape, device_text);
    size_t room = sizeof text->text - 1;
    text->length = length < 0 ? 0 : (size_t)length < room ? (size_t)length : room;
}

/* Appends a number; quicker than snprintf, whose time would be a large part of a small
 * collective's. */
static char *append_number(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

static char *step_admission_append(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

static void make_note(cadre_replica *replica, const struct step_call *call, uint32_t index,
    struct step_note *ret_note)
{
    CADRE_ASSERT(call->function != NULL);
    uint64_t position = replica->strategy->step.position;
    /* Where devices are connected, tensors on them can only be reduced with tensors on them. */
    bool apart = call->on_device && replica->strategy->connected;
    uint64_t own = apart ? collective_key(call->key, UINT64_MAX) : call->key;
    uint64_t key = collective_key(own, replica->id + (call->on_device ? (uint64_t)1 << 32 : 0)) | 1;
    struct step_text *text = &replica->texts[key / 2 % STEP_TEXTS];
    if (text->key != key) {
        make_text(replica, call, text);
        text->key = key;
    }
    memcpy(ret_note->text, text->text, text->length);
    char *at = step_admission_append(ret_note->text + text->length, " (collective ");
    at = append_number(at, (uint64_t)index + 1);
    at = step_admission_append(at, " of step ");
    at = append_number(at, position);
    *at++ = ')';
    CADRE_ASSERT(at < ret_note->text + sizeof ret_note->text);
    *at = '\0';
    ret_note->mesh = (struct mesh_note){.text = ret_note->text,
        .key = collective_key(collective_key(position, index), own),
        .timeout_us = call->timeout_us};
}

/* --- the counts --- */

static cadre_status step_admission_disagree(
    uint32_t more, uint32_t count, uint32_t less, uint32_t less_count, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the replicas disagree: replica %u makes at least %u collective calls in this step, "
        "replica %u makes %u; all must make the same ones",
        more, count, less, less_count);
}

/* A replica begins a collective while another one waits for it in a meeting. */
static cadre_status passed_by(
    const cadre_replica *replica, uint32_t waiting, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the replicas disagree: replica %u begins a collective while replica %u waits for it in "
        "cadre_merge_call; all replicas of a task must make the same calls in the same order",
        replica->id, waiting);
}

cadre_status step_collective_begin(cadre_replica *replica, const struct step_call *call,
    struct step_note *ret_note, struct cadre_error *error)
{
    struct step *step = &replica->strategy->step;
    uint32_t index = atomic_fetch_add(&replica->collectives, 1);
    CADRE_ASSERT(atomic_load(&step->running));
    make_note(replica, call, index, ret_note);
    if (atomic_load(&step->ended_collectives) > index) {
        return CADRE_OK;
    }
    pthread_mutex_lock(&step->lock);
    uint32_t ended_replica = step->ended_replica;
    uint32_t ended = atomic_load(&step->ended_collectives);
    pthread_mutex_unlock(&step->lock);
    cadre_status status =
        atomic_load(&step->meeting) > 0
            ? passed_by(replica, ended_replica, error)
            : step_admission_disagree(replica->id, index + 1, ended_replica, ended, error);
    step_record_refusal(replica, error);
    return status;
}

cadre_status step_admit(cadre_strategy *strategy, uint32_t local, struct cadre_error *error)
{
    struct step *step = &strategy->step;
    if (!atomic_load(&step->admitted)) {
        struct trace_mark mark = trace_begin();
        cadre_status status = task_admit(strategy->task, step->position, error);
        trace_end(mark, TRACE_RELEASE, local);
        CADRE_TRY(status);
        atomic_store(&step->admitted, true);
    }
    return CADRE_OK;
}

cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
        replica->all_know = status == CADRE_INVALID_ARGUMENT;
    }
    return status;
}

cadre_status step_replica_end(cadre_replica *replica, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct step *step = &strategy->step;
    uint32_t own = atomic_load(&replica->collectives);
    CADRE_ASSERT(replica->local < strategy->local_replicas);
    if (own < atomic_load(&step->ended_collectives)) { /* mostly true for the first one only */
        pthread_mutex_lock(&step->lock);
        if (own < atomic_load(&step->ended_collectives)) {
            step->ended_replica = replica->id;
            atomic_store(&step->ended_collectives, own);
        }
        pthread_mutex_unlock(&step->lock);
    }
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *other = &strategy->replicas[i];
        uint32_t theirs = atomic_load(&other->collectives);
        if (theirs > own) {
            return step_admission_disagree(other->id, theirs, replica->id, own, error);
        }
    }
    return CADRE_OK;
}
