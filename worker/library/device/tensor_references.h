/* SPDX-License-Identifier: Apache-2.0
 * Whose the references of a tensor are. Some are the library's own: those of the values that the
 * program sees, of what replica functions returned, and of views. The program cannot give these
 * back: a release by one that holds none does nothing but tell it, and leave the reason in
 * cadre_error_message. All other references are the program's, or lent for a moment. Any thread. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_REFERENCES_H
#define CADRE_WORKER_DEVICE_TENSOR_REFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/device/tensor.h"

/* One reference more, the library's, which tensor_drop gives back. NULL is passed through. */
cadre_tensor *tensor_keep(cadre_tensor *tensor);

/* A reference that somebody gave becomes the library's. False: there was none that is not the
 * library's already, so that one was added; it is for tensor_drop as well. True of NULL. */
bool tensor_take(cadre_tensor *tensor);

/* Gives back a reference of the library. NULL is allowed. */
void tensor_drop(cadre_tensor *tensor);

/* Who tells people of a release that was refused, from then on, on any thread; nobody before. */
void tensor_set_refusal_handler(void (*handler)(const struct cadre_error *error));

#define TENSOR_RETURN_SLOTS_MAX 64

/* The places in which a function of the program returns tensors. While it runs, a release on its
 * thread of the last reference of a tensor in one of them waits for the end of the function. */
struct tensor_return_slots {
    cadre_tensor *const *slots;
    uint32_t count; /* at most TENSOR_RETURN_SLOTS_MAX */
    bool any;       /* of `released` */
    cadre_tensor
        *released[TENSOR_RETURN_SLOTS_MAX]; /* while they were in that place; set if `any` */
    struct tensor_return_slots *outer;
};

/* Right before and after the call, on its thread. `leave` gives the first place whose tensor the
 * function released and left there, or `count`; the one reference of that tensor is there still. */
void tensor_return_slots_enter(
    struct tensor_return_slots *entered, cadre_tensor *const *slots, uint32_t count);
uint32_t tensor_return_slots_leave(struct tensor_return_slots *entered);

#endif
