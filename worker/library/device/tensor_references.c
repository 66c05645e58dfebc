/* SPDX-License-Identifier: Apache-2.0
 * Both counts of a tensor are one word, so that they change together. cadre_tensor_retain and
 * _release are here; the runtime keeps references for the library through tensor_references.h. */
#include "worker/library/device/tensor_references.h"

#include <stdatomic.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor_memory.h"
#include "worker/library/device/tensor_struct.h"

#define ONE  ((uint64_t)1)
#define KEPT ((uint64_t)1 << 32)

static _Thread_local struct tensor_return_slots *innermost;

static void (*_Atomic reported_by)(const struct cadre_error *error);

void tensor_set_refusal_handler(void (*handler)(const struct cadre_error *error))
{
    atomic_store(&reported_by, handler);
}

static uint32_t all_of(uint64_t references)
{
    return (uint32_t)references;
}

static uint32_t image_of(uint64_t references)
{
    return (uint32_t)(references >> 32);
}

cadre_tensor *cadre_tensor_retain(cadre_tensor *tensor)
{
    if (tensor != NULL) {
        uint64_t before = atomic_fetch_add_explicit(&tensor->references, ONE, memory_order_relaxed);
        CADRE_ASSERT(all_of(before) > 0);
    }
    return tensor;
}

cadre_tensor *tensor_keep(cadre_tensor *tensor)
{
    if (tensor != NULL) {
        atomic_fetch_add_explicit(&tensor->references, ONE + KEPT, memory_order_relaxed);
    }
    return tensor;
}

bool tensor_take(cadre_tensor *tensor)
{
    if (tensor == NULL) {
        return true;
    }
    uint64_t before = atomic_load_explicit(&tensor->references, memory_order_relaxed);
    bool given = false;
    do {
        given = all_of(before) > image_of(before);
    } while (!atomic_compare_exchange_weak_explicit(&tensor->references, &before,
        before + KEPT + (given ? 0 : ONE), memory_order_relaxed, memory_order_relaxed));
    return given;
}

/* --- the end --- */

static void tensor_references_end(cadre_tensor *tensor)
{
    cadre_tensor *holds = tensor->holds;
    if (tensor->device != NULL) {
        tensor_give_on_device(tensor);
    }
    struct tensor_over over = {.release = NULL};
    if (tensor->elements == TENSOR_ELEMENTS_LENT) {
        memcpy(&over, tensor, sizeof over);
    }
    tensor_memory_give((enum tensor_memory_kind)tensor->kind, tensor, tensor->block_bytes);
    if (over.release != NULL) {
        over.release(over.tensor.data, over.user);
    }
    tensor_drop(holds); /* a view holds no view */
}

void tensor_drop(cadre_tensor *tensor)
{
    if (tensor != NULL) {
        uint64_t before =
            atomic_fetch_sub_explicit(&tensor->references, ONE + KEPT, memory_order_acq_rel);
        CADRE_ASSERT(all_of(before) > 0 && image_of(before) > 0);
        if (all_of(before) == 1) {
            tensor_references_end(tensor);
        }
    }
}

static void tensor_references_refuse(const cadre_tensor *tensor)
{
    struct cadre_error error = {0};
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
        "cadre_tensor_release was called with a tensor, %s, of which the program holds no "
        "reference: an input, an output that cadre_run took, one of cadre_local_results, or one "
        "that was released already; release only what was made or retained",
        tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape));
    void (*handler)(const struct cadre_error *) = atomic_load(&reported_by);
    if (handler != NULL) {
        handler(&error);
    }
    cadre_error_publish(&error);
}

/* --- return slots --- */

static uint32_t slot_of(const struct tensor_return_slots *in, const cadre_tensor *tensor)
{
    uint32_t at = 0;
    while (at < in->count && in->slots[at] != tensor) {
        at++;
    }
    return at;
}

static void note_released(struct tensor_return_slots *in, uint32_t at, cadre_tensor *tensor)
{
    if (!in->any) {
        in->any = true;
        memset(in->released, 0, sizeof in->released);
    }
    cadre_tensor *older = in->released[at];
    in->released[at] = tensor;
    if (older != NULL && older != tensor && slot_of(in, older) == in->count) {
        cadre_tensor_release(older);
    }
}

/* Whether the last reference of `tensor` waits, because it is in a return slot. */
static bool tensor_references_waits(cadre_tensor *tensor)
{
    for (struct tensor_return_slots *in = innermost; in != NULL; in = in->outer) {
        uint32_t at = slot_of(in, tensor);
        if (at < in->count) {
            note_released(in, at, tensor);
            return true;
        }
    }
    return false;
}

void tensor_return_slots_enter(
    struct tensor_return_slots *entered, cadre_tensor *const *slots, uint32_t count)
{
    CADRE_ASSERT(count <= TENSOR_RETURN_SLOTS_MAX);
    entered->slots = slots;
    entered->count = count;
    entered->any = false;
    entered->outer = innermost;
    innermost = entered;
}

uint32_t tensor_return_slots_leave(struct tensor_return_slots *entered)
{
    CADRE_ASSERT(innermost == entered);
    innermost = entered->outer;
    uint32_t first = entered->count;
    for (uint32_t i = 0; entered->any && i < entered->count; i++) {
        cadre_tensor *tensor = entered->released[i];
        uint32_t at = tensor == NULL ? entered->count : slot_of(entered, tensor);
        if (at < entered->count) {
            first = at < first ? at : first;
        } else {
            cadre_tensor_release(tensor);
        }
    }
    return first;
}

void cadre_tensor_release(cadre_tensor *tensor)
{
    if (tensor == NULL) {
        return;
    }
    uint64_t before = atomic_load_explicit(&tensor->references, memory_order_acquire);
    do {
        if (all_of(before) <= image_of(before)) {
            tensor_references_refuse(tensor);
            return;
        }
        if (all_of(before) == 1 && tensor_references_waits(tensor)) {
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &tensor->references, &before, before - ONE, memory_order_acq_rel, memory_order_acquire));
    if (all_of(before) == 1) {
        tensor_references_end(tensor);
    }
}
