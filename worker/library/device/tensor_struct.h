/* SPDX-License-Identifier: Apache-2.0
 * The struct of a tensor, for the files that make them. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_STRUCT_H
#define CADRE_WORKER_DEVICE_TENSOR_STRUCT_H

#include <stdatomic.h>
#include <stdint.h>

#include "worker/library/device/tensor.h"

struct device;

/* Which memory has the elements. */
enum tensor_elements {
    TENSOR_ELEMENTS_OWN = 0, /* behind the header, or in memory of a device allocated for this
                              * tensor */
    TENSOR_ELEMENTS_VIEWED,  /* in those of `holds` */
    TENSOR_ELEMENTS_LENT     /* in memory of the program: the header is a struct tensor_over */
};

struct cadre_tensor {
    _Atomic uint64_t references; /* all in the lower half, the library's in the upper one */
    cadre_dtype dtype;
    uint8_t rank;
    uint8_t processor;     /* of the host, that it belongs to; 0 of one on a device */
    uint8_t elements : 4;  /* enum tensor_elements */
    uint8_t composite : 4; /* cadre_composite: what it and those before it are together */
    uint8_t kind;          /* of the block that this header begins: enum tensor_memory_kind */
    int64_t dims[CADRE_RANK_MAX];
    int64_t count;
    size_t bytes;
    char *data;
    size_t block_bytes;
    cadre_tensor *holds;   /* what must stay as long: the owner of `data`, or of strings' bytes */
    struct device *device; /* that has `data` in its memory, allocated for this tensor; NULL: the
                            * host */
};

_Static_assert(CADRE_RANK_MAX <= UINT8_MAX, "a rank fits its field");
_Static_assert(sizeof(struct cadre_tensor) <= 128, "a header is two cache lines");

/* One over memory of the program, which is released with the last reference. */
struct tensor_over {
    struct cadre_tensor tensor;
    cadre_release_function release; /* NULL: no call */
    void *user;
};

/* A header in a block of `bytes` bytes; the rest of the block is not written. NULL: no memory. */
cadre_tensor *tensor_new_header(enum tensor_memory_kind kind, size_t bytes, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims);

/* Frees the memory of a tensor on a device, but not the header. */
void tensor_give_on_device(cadre_tensor *tensor);

#endif
