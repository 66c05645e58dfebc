/* SPDX-License-Identifier: Apache-2.0
 * Which references of a tensor belong to the library: those of the values that the program gets, of
 * what replica functions returned, and of views. The program cannot release these: a release by a
 * program that holds none reports that, does nothing else, and leaves the reason in
 * cadre_error_message. All other references are the program's, or lent for a moment. Any thread. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_REFERENCES_H
#define CADRE_WORKER_DEVICE_TENSOR_REFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/device/tensor.h"

/* One reference more, the library's, which tensor_drop releases. NULL is passed through. */
cadre_tensor *tensor_keep(cadre_tensor *tensor);

/* Makes one of the program's references the library's. False: there was none that is not the
 * library's already, so that one was added; it is for tensor_drop as well. True of NULL. */
bool tensor_take(cadre_tensor *tensor);

/* Releases a reference of the library. NULL is allowed. */
void tensor_drop(cadre_tensor *tensor);

/* Sets the function that reports a refused release, from then on, on any thread; NULL: none. */
void tensor_set_refusal_handler(void (*handler)(const struct cadre_error *error));

#define TENSOR_RETURN_SLOTS_MAX 64

/* The slots in which a function of the program returns tensors. While it runs, a release on its
 * thread of the last reference of a tensor in one of them waits for the end of the function. */
struct tensor_return_slots {
    cadre_tensor *const *slots;
    uint32_t count; /* at most TENSOR_RETURN_SLOTS_MAX */
    bool any;       /* of `released` */
    cadre_tensor
        *released[TENSOR_RETURN_SLOTS_MAX]; /* while they were in that slot; set if `any` */
    struct tensor_return_slots *outer;
};

/* Right before the call, on its thread. */
void tensor_return_slots_enter(
    struct tensor_return_slots *entered, cadre_tensor *const *slots, uint32_t count);
/* Right after the call. Returns the first slot whose tensor the function released and left there,
 * or `count`; the one reference of that tensor is still held. */
uint32_t tensor_return_slots_leave(struct tensor_return_slots *entered);

#endif
