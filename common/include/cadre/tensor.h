/* SPDX-License-Identifier: Apache-2.0
 * Tensors: reference-counted, dense, row-major arrays. What datasets deliver, step functions take
 * and return, and collectives sum. They lie in the memory of the host, and those of replicas on
 * GPUs in a GPU's (cadre/gpu.h). What reads elements on the host refuses the latter:
 * FAILED_PRECONDITION, with the way out (cadre_tensor_copy_to_host). (tf.Tensor, without the
 * graph.) */
#ifndef CADRE_TENSOR_H
#define CADRE_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_RANK_MAX      8  /* dimensions of a tensor */
#define CADRE_TENSOR_ALIGN  64 /* bytes: what the memory of a created tensor is aligned to */
#define CADRE_DIMENSION_ANY ((int64_t)-1) /* in a spec only: a dimension that is not known */

/* The type of a tensor's elements, in the processor's byte order. */
typedef enum cadre_dtype {
    CADRE_DTYPE_NONE = 0, /* no type: what a zeroed struct holds; never the type of a tensor */
    CADRE_F64,
    CADRE_F32,
    CADRE_F16,  /* IEEE 754 half */
    CADRE_BF16, /* the upper half of a float32 */
    CADRE_I64,
    CADRE_I32,
    CADRE_I16,
    CADRE_I8,
    CADRE_U32,
    CADRE_U16,
    CADRE_U8,
    CADRE_BOOL,  /* one byte, 0 or 1 */
    CADRE_STRING /* elements are struct cadre_string; the bytes belong to the tensor and cannot be
                    changed */
} cadre_dtype;

/* One element of a CADRE_STRING tensor: any bytes, not terminated. */
typedef struct cadre_string {
    const char *bytes;
    size_t size;
} cadre_string;

/* Elements of one type in a shape; reference-counted. */
typedef struct cadre_tensor cadre_tensor;

/* What several tensors beside each other are together; the last of them carries the mark
 * (cadre/composite.h). */
typedef enum cadre_composite {
    CADRE_COMPOSITE_NONE = 0,
    CADRE_COMPOSITE_RAGGED, /* values, row splits: marked at the row splits */
    CADRE_COMPOSITE_SPARSE  /* indices, values, dense shape: marked at the dense shape */
} cadre_composite;

/* Bytes of one element; 0 for CADRE_DTYPE_NONE and numbers outside the enum. */
CADRE_API size_t cadre_dtype_bytes(cadre_dtype dtype);

/* "f32", "string", ...; "none" for CADRE_DTYPE_NONE and numbers outside the enum. */
CADRE_API const char *cadre_dtype_name(cadre_dtype dtype);

/* --- making them, in the memory of the host. On success *ret_tensor is one reference, the
 * caller's; on error it is NULL. Any thread, any context. INVALID_ARGUMENT also for a NULL where a
 * tensor or a place is needed. --- */

/* A tensor of zeros (empty strings). `dims` holds `rank` sizes, each >= 0; rank 0 is a scalar and
 * `dims` may be NULL. INVALID_ARGUMENT: bad dtype, rank over CADRE_RANK_MAX, negative dimension,
 * more than 2^62 bytes. RESOURCE_EXHAUSTED: no memory. (tf.zeros.) */
CADRE_API cadre_status cadre_tensor_create(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, cadre_tensor **ret_tensor);

/* A tensor with a copy of the values at `data`: row-major, as many as `dims` say. For CADRE_STRING
 * `data` is an array of struct cadre_string whose bytes are copied too. `data` may be NULL only
 * when there are no elements. Errors as above. (tf.constant.) */
CADRE_API cadre_status cadre_tensor_from_data(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    const void *data, cadre_tensor **ret_tensor);

/* Gives memory back to the program: in any thread, by the call that gave back the last reference.
 * It makes no calls with a strategy. */
typedef void (*cadre_release_function)(void *data, void *user);

/* A tensor over memory of the program, without a copy: a mapped file, a buffer of another library,
 * an array that lives as long as the program. `release` is called once, with `data` and `user`,
 * when the last reference goes, that of views, of datasets and of values included; until then the
 * program leaves the memory there, and changes it as little as the elements of any other tensor.
 * NULL: it stays until the program ends. After an error `release` is not called. `data` is aligned
 * as an element is (INVALID_ARGUMENT, also for NULL): where that is less than CADRE_TENSOR_ALIGN,
 * loops over it may be a little slower. What writes elements in place (cadre_all_reduce, a
 * broadcast) writes to this memory, so a mapping that can only be read is for what is only read. It
 * is copied where any tensor is: by cadre_tensor_copy, by assignments, to a GPU, to another task,
 * and into batches. Other errors as above. (tf.experimental.dlpack.from_dlpack.) */
CADRE_API cadre_status cadre_tensor_over(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    void *data, cadre_release_function release, void *user, cadre_tensor **ret_tensor);

/* A scalar (rank 0) of CADRE_F32. */
CADRE_API cadre_status cadre_tensor_from_f32(float value, cadre_tensor **ret_tensor);

/* A scalar of CADRE_F64. */
CADRE_API cadre_status cadre_tensor_from_f64(double value, cadre_tensor **ret_tensor);

/* A scalar of CADRE_I64. */
CADRE_API cadre_status cadre_tensor_from_i64(int64_t value, cadre_tensor **ret_tensor);

/* Rows [first, first + count) along the first dimension, sharing the memory of `tensor` (whose
 * storage stays alive as long as the view does). Shape [count, rest...]; 0 rows are legal. A view's
 * memory is aligned only to its row size. INVALID_ARGUMENT: a scalar. OUT_OF_RANGE: rows outside
 * the tensor. */
CADRE_API cadre_status cadre_tensor_view_rows(
    cadre_tensor *tensor, int64_t first, int64_t count, cadre_tensor **ret_view);

/* A copy with memory of its own, where `tensor` is: of one on a GPU in the order of the stream of
 * that GPU's replica, without any wait. (tf.identity.) */
CADRE_API cadre_status cadre_tensor_copy(const cadre_tensor *tensor, cadre_tensor **ret_tensor);

/* --- lifetime. Counting is thread-safe; the values are not guarded. --- */

/* Returns `tensor`, with one reference more. NULL is passed through. */
CADRE_API cadre_tensor *cadre_tensor_retain(cadre_tensor *tensor);

/* Gives one reference back; the last one frees. NULL is allowed. A release of one of which the
 * program holds no reference (an input, an output that cadre_run took, one of cadre_local_results)
 * does nothing but print a warning and leave the reason in cadre_error_message, as long as the
 * tensor lives; of one that was freed it is undefined. */
CADRE_API void cadre_tensor_release(cadre_tensor *tensor);

/* --- looking at them. None fails; of NULL they return 0, NULL and CADRE_DTYPE_NONE. --- */

/* The type of its elements. */
CADRE_API cadre_dtype cadre_tensor_dtype(const cadre_tensor *tensor);

/* How many dimensions it has; 0 for a scalar. */
CADRE_API uint32_t cadre_tensor_rank(const cadre_tensor *tensor);

/* `rank` sizes; valid as long as the tensor. */
CADRE_API const int64_t *cadre_tensor_dims(const cadre_tensor *tensor);

/* Size of the dimension `axis`; 0 when there is no such dimension. */
CADRE_API int64_t cadre_tensor_dim(const cadre_tensor *tensor, uint32_t axis);

/* Size of the first dimension; 1 for a scalar. */
CADRE_API int64_t cadre_tensor_rows(const cadre_tensor *tensor);

/* Number of elements: the product of the dimensions, 1 for a scalar. */
CADRE_API int64_t cadre_tensor_count(const cadre_tensor *tensor);

/* Bytes of the element array: count * cadre_dtype_bytes. */
CADRE_API size_t cadre_tensor_bytes(const cadre_tensor *tensor);

/* The canonical name of the device that it is on (cadre/device.h), valid for ever; of NULL "". It
 * is the GPU whose memory it lies in, if any. Else it is a CPU: of what a replica function made in
 * the host's memory that of its replica, such as CPU:1; of all else, batches and what is reduced,
 * gathered and copied to the host too, CPU:0. (tf.Tensor.device.) */
CADRE_API const char *cadre_tensor_device(const cadre_tensor *tensor);

/* The elements, row-major; a pointer also for a tensor without elements. Of one on a GPU the GPU's
 * address, which the processor cannot follow (cadre_tensor_device). Write only to tensors
 * you created: one that came out of a dataset may share its memory with the source. */
CADRE_API void *cadre_tensor_data(cadre_tensor *tensor);

/* The elements as cadre_tensor_data gives them, to read only. */
CADRE_API const void *cadre_tensor_const_data(const cadre_tensor *tensor);

/* --- printing and describing them --- */

/* Prints it, and a line's end, as TensorFlow does:
 *
 *     cadre_tensor([1.  0.5], shape=(2,), dtype=float32)
 *
 * Of this, and of all that is printed here, each word is TensorFlow's or numpy's, so that what a
 * program prints can be laid beside what its documents show, but tf.Tensor and tf.Variable, which
 * would name a library that is not there: the words are those of the types in C. Numbers are
 * printed as numpy does: the shortest decimal that reads back as the same number, of a tensor that
 * is no scalar with 8 digits behind the point at most; in columns; in lines of 75 characters; of
 * more than 1000 elements the first and last three along each dimension, with `...` between. A
 * tensor on a GPU is copied to the host, and waited for. Any context and thread.
 * RESOURCE_EXHAUSTED: no memory for the text; the system's error when `file` does not take it.
 * (print.) */
CADRE_API cadre_status cadre_tensor_print(const cadre_tensor *tensor, FILE *file);

/* What is known about a tensor before it exists. */
typedef struct cadre_tensor_spec {
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX]; /* CADRE_DIMENSION_ANY where it differs from tensor to tensor */
    cadre_composite composite;    /* what it and the components before it are together */
} cadre_tensor_spec;

#ifdef __cplusplus
}
#endif
#endif
