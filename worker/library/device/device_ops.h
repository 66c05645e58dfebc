/* SPDX-License-Identifier: Apache-2.0
 * What a device plugin offers: a table of functions that libcadre finds in a shared object which it
 * opens at run time (device_plugin.h). The only one is CUDA's, worker/library/cuda, with NCCL
 * behind the communicators. Everything in it is thin: the callers decide which waits for which,
 * what is kept and when it ends.
 *
 * Rules:
 * - Devices are numbered from 0 as the plugin's driver numbers those that this process may use.
 * - "Enqueues": returns at once; done in the order of the stream. All that takes a stream enqueues
 *   on it, and touches no other stream. The caller's buffers stay valid until it is done.
 * - Any thread may call anything, unless noted; no call needs device_ops.bind before, and all leave
 *   the calling thread's current device as it was, but bind. (A thread that never used a device
 *   keeps the call's.)
 * - A stream that the program is capturing into a graph is refused: FAILED_PRECONDITION. Other
 *   streams may be used meanwhile, by any thread.
 * - Errors: RESOURCE_EXHAUSTED no memory (of the device, or page-locked), INVALID_ARGUMENT an
 *   impossible call, INTERNAL all else, with the driver's own name and text for it
 *   ("cudaErrorIllegalAddress: an illegal memory access was encountered"), the operation and the
 *   device. An error of work that was enqueued before may be returned by any other call.
 * - Nothing here prints, exits, or waits for a device, unless noted. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_OPS_H
#define CADRE_WORKER_DEVICE_DEVICE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

#define DEVICE_ABI           3 /* of everything in this file */
#define DEVICE_PLUGIN_ENTRY  "cadre_device_plugin"
#define DEVICE_COMM_ID_BYTES 128
#define DEVICES_MAX          64 /* of one process */

struct device_info {
    char name[96]; /* "NVIDIA H200" */
    char uuid[48]; /* "GPU-8f7e...": what CUDA_VISIBLE_DEVICES takes; "" when it is not known */
    char bus[24];  /* "0000:65:00.0" */
    uint64_t memory_bytes;
    uint64_t memory_free; /* now */
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t multiprocessors;
};

struct device_driver {
    char driver[48];            /* the version that it has: "580.159.04 (CUDA 13.0)" */
    char runtime[24];           /* that the plugin was built with: "CUDA 13.0" */
    uint32_t collectives;       /* NCCL_VERSION_CODE of the library in use; 0: there is none */
    char collectives_from[192]; /* the file it came from; or why there is none */
};

/* How numbers are combined by device_arithmetic: to = to <how> from, elementwise. */
enum device_arithmetic { DEVICE_SET = 0, DEVICE_ADD, DEVICE_SUB, DEVICE_MUL };

/* One piece of what is packed: `bytes` at `data`, and the same bytes at `offset` of the pack. */
struct device_piece {
    void *data;
    size_t offset;
    size_t bytes;
};

/* Chunks of DEVICE_CHUNK_BYTES that are hashed: `count` of them, the first at `data`, `stride`
 * chunks from each to the next. */
#define DEVICE_CHUNK_BYTES 65536
struct device_chunks {
    const void *data;
    size_t stride;
    size_t count;
    uint64_t *hashes; /* [count] */
};

/* One vector of a collective, of `count` elements; `to` may be `from`. */
struct device_vector {
    const void *from;
    void *to;
    size_t count;
    cadre_dtype dtype;
};

enum device_reduction {
    DEVICE_REDUCE_SUM,
    DEVICE_REDUCE_PROD,
    DEVICE_REDUCE_MIN,
    DEVICE_REDUCE_MAX
};

/* Elements that an optimizer updates, in memory of the stream's device: values, and the slots of
 * its kind. `terms` and `kind` are of worker/library/optimizer/terms.h. */
struct update_terms;
struct device_update {
    uint32_t kind;
    cadre_dtype dtype; /* f32 or f64 */
    const struct update_terms *terms;
    void *values;
    void *slots[3];
    const void *gradient;
    size_t count;
};

struct device_comm; /* one rank of a communicator: of one device */

/* Communicators of device memory. A communicator is used by one thread at a time, but for abort.
 * NULL in the table of a plugin without a library for them. */
struct device_comm_ops {
    /* A new secret name of a communicator, made by the task of its rank 0, which must stay alive
     * until all have joined: it listens for the others. May take milliseconds. */
    cadre_status (*unique_id)(uint8_t ret_id[DEVICE_COMM_ID_BYTES], struct cadre_error *error);

    /* Begins to join the communicator `id` of `world` ranks, with `count` of them: rank ranks[i] on
     * device devices[i]. Non-blocking. On success ret_comms[count] are the caller's, to end by
     * destroy or abort, each of them. */
    cadre_status (*post)(const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world, uint32_t count,
        const uint32_t ranks[], const uint32_t devices[], struct device_comm *ret_comms[],
        struct cadre_error *error);

    /* CADRE_PENDING while forming, or while the last call is not on the device yet; CADRE_OK: ready
     * for the next call; else how it failed, now and for ever: its asynchronous error, with NCCL's
     * text. Cheap: it is polled. UNAVAILABLE: a peer has exited. */
    cadre_status (*test)(struct device_comm *comm, struct cadre_error *error);

    /* Enqueue on `stream`, a stream of the communicator's device. CADRE_PENDING instead of CADRE_OK
     * where the library continues the call by itself: test until it is over. Types: f64 f32 f16
     * bf16 i64 i32 i8 u32 u8, and i16, u16 and bool where nothing is combined (INVALID_ARGUMENT for
     * others: see `takes`). All vectors of one all_reduce or broadcast are sent as one group. */
    cadre_status (*all_reduce)(struct device_comm *comm, enum device_reduction reduction,
        const struct device_vector vectors[], size_t count, void *stream,
        struct cadre_error *error);
    /* vector->count: of one part. `from` holds world parts. */
    cadre_status (*reduce_scatter)(struct device_comm *comm, enum device_reduction reduction,
        const struct device_vector *part, void *stream, struct cadre_error *error);
    /* `bytes` of each rank at `from`, all of them at `to` in order of ranks. */
    cadre_status (*all_gather)(struct device_comm *comm, const void *from, size_t bytes, void *to,
        void *stream, struct cadre_error *error);
    cadre_status (*broadcast)(struct device_comm *comm, uint32_t root,
        const struct device_vector vectors[], size_t count, void *stream,
        struct cadre_error *error);

    /* Whether vectors of this type can be reduced. */
    bool (*takes)(cadre_dtype dtype);

    /* The library's own handle (ncclComm_t). */
    void *(*raw)(const struct device_comm *comm);

    /* Ends it in order: all that was enqueued on it is done. May wait for the other ranks. */
    void (*destroy)(struct device_comm *comm);
    /* Ends it at once, with what is under way on the device, from any thread while the one that
     * uses it is not inside a call. Waits for that, and may hang: call it where a deadline is
     * watched. */
    void (*abort)(struct device_comm *comm);
};

struct device_ops {
    uint32_t abi;     /* DEVICE_ABI */
    const char *name; /* "cuda"; "cuda stand-in" of the tests' */
    const char *type; /* "GPU": in names of devices */

    /* --- the devices --- */

    /* Devices of this process; 0: why, in one sentence without a full stop. */
    uint32_t (*count)(char ret_reason[256]);
    cadre_status (*describe)(
        uint32_t device, struct device_info *ret_info, struct cadre_error *error);
    void (*driver)(struct device_driver *ret_driver);

    /* --- threads --- */

    /* Makes the device the calling thread's current one: what kernels of the program run on. */
    cadre_status (*bind)(uint32_t device, struct cadre_error *error);

    /* --- memory. Aligned to 256 bytes, not set. --- */

    /* In the order of `stream`: what is enqueued on it afterwards may use the memory. Freed
     * likewise; it is kept for the next memory_get (a pool). `bytes` > 0. */
    cadre_status (*memory_get)(
        uint32_t device, size_t bytes, void *stream, void **ret_memory, struct cadre_error *error);
    void (*memory_give)(uint32_t device, void *memory, void *stream);
    /* Page-locked memory of the host that every device reaches. NULL: there is none. Slow. */
    void *(*pinned_get)(size_t bytes);
    void (*pinned_give)(void *memory, size_t bytes);

    /* --- order --- */

    /* `urgent`: its kernels go before those of other streams. Never waits for the default stream.
     * The result is the driver's own (cudaStream_t); all other functions take only streams that
     * this made. */
    cadre_status (*stream_open)(
        uint32_t device, bool urgent, void **ret_stream, struct cadre_error *error);
    void (*stream_close)(void *stream); /* waits for nothing; NULL is allowed */
    /* CADRE_OK: all that was enqueued is done; CADRE_PENDING; or how it failed. */
    cadre_status (*stream_test)(void *stream, struct cadre_error *error);
    cadre_status (*event_open)(uint32_t device, void **ret_event, struct cadre_error *error);
    void (*event_close)(void *event); /* NULL is allowed */
    cadre_status (*event_record)(void *event, void *stream, struct cadre_error *error);
    /* What is enqueued on `stream` from now on waits for what `event` recorded last. */
    cadre_status (*stream_wait)(void *stream, void *event, struct cadre_error *error);
    cadre_status (*event_test)(void *event, struct cadre_error *error);

    /* --- work --- */

    /* Between any two memories: of this or another device, of the host (page-locked, or any: then
     * it may wait). */
    cadre_status (*copy)(
        void *to, const void *from, size_t bytes, void *stream, struct cadre_error *error);
    cadre_status (*fill)(
        void *to, uint8_t byte, size_t bytes, void *stream, struct cadre_error *error);
    /* data[i] *= factor, by a product in float64 that is rounded once; floating types. So 1.0 / n
     * gives a float32, or narrower, the bits of a division by n. Like arithmetic's, addresses are
     * aligned to an element (INVALID_ARGUMENT). */
    cadre_status (*scale)(cadre_dtype dtype, void *data, size_t count, double factor, void *stream,
        struct cadre_error *error);
    /* Number types; integers wrap around, half-width floats go through float32. Both on the
     * stream's device. */
    cadre_status (*arithmetic)(enum device_arithmetic how, cadre_dtype dtype, void *to,
        const void *from, size_t count, void *stream, struct cadre_error *error);
    /* The same bits as on the host. INVALID_ARGUMENT: another type, an address that is not aligned
     * to an element. */
    cadre_status (*update)(
        const struct device_update *update, void *stream, struct cadre_error *error);
    /* Many small copies in few launches; into the pack, or out of it. Pieces do not overlap, and
     * have any size and alignment; addresses that agree in their last four bits are fastest. */
    cadre_status (*pack)(const struct device_piece pieces[], size_t count, void *pack, void *stream,
        struct cadre_error *error);
    cadre_status (*unpack)(const struct device_piece pieces[], size_t count, const void *pack,
        void *stream, struct cadre_error *error);
    /* hashes[i] = XXH3 (64 bits, seed 0) of the i-th chunk, the same bits as on the host. Chunks
     * and hashes are in memory of the stream's device, aligned to 16 and 8 bytes
     * (INVALID_ARGUMENT). */
    cadre_status (*hash)(
        const struct device_chunks pieces[], size_t count, void *stream, struct cadre_error *error);

    const struct device_comm_ops *comm; /* NULL: see device_driver.collectives_from */
};

/* The plugin's only exported symbol, DEVICE_PLUGIN_ENTRY. Of an ABI other than `abi`, NULL. The
 * table stays valid as long as the process. Cheap: no driver is called before count or driver
 * is. */
typedef const struct device_ops *(*device_plugin_entry)(uint32_t abi);

#endif
