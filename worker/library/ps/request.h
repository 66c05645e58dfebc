/* SPDX-License-Identifier: Apache-2.0
 * Requests to a parameter server as bytes: what the arguments of a frame mean, and what follows it.
 *
 *     args    shard + slot << 32 | first, or the bits of a trust | rows | steps, or updates | done
 *     bytes   CREATE            spec
 *             TRAIN             rule, of the shard
 *             GATHER            ids
 *             PUSH, PUSH_PULL   push | ids, of a sparse one | values
 *             NORMS             the same
 *             SET_SLOT          values
 *             NOTE              name | text
 *             NOTED             name
 *
 *     answer  code, and its message; else the answer's arguments and rows or text */
#ifndef CADRE_WORKER_PS_REQUEST_H
#define CADRE_WORKER_PS_REQUEST_H

#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/store/store.h"

enum request_kind {
    REQUEST_CREATE = 1, /* spec -> shard */
    REQUEST_PULL,       /* rows [first, first + rows) -> into, and version */
    REQUEST_GATHER,     /* ids -> rows of `into`, in their order */
    REQUEST_PUSH,       /* push, values -> version */
    REQUEST_PUSH_PULL,  /* a push of a dense range, and that range as it is afterwards */
    REQUEST_SLOT,       /* an optimizer's slot, as PULL; `slot`. No rows: only its count of
                         * updates */
    REQUEST_SET_SLOT,   /* the slot and its count of updates: for checkpoints; likewise */
    REQUEST_NOTE,       /* name, values */
    REQUEST_FIND_NOTE,  /* name -> text (malloc'ed) and its size; NOT_FOUND */
    REQUEST_NOTE_NAMES, /* -> text: names, each with its terminator */
    REQUEST_BEGIN_STEP, /* min_steps: the number of the next step; see store_begin_step */
    REQUEST_TRAIN,      /* rule: the shard's from now on; see store_train */
    REQUEST_RULE,       /* -> into: RULE_BYTES, of that rule */
    REQUEST_NORMS,      /* as PUSH -> into: NORMS_BYTES; see store_push_norms */
    REQUEST_STEP_NORMS, /* min_steps: the number of the step -> ret_steps: its state, and
                         * likewise */
    REQUEST_SETTLE      /* min_steps, trust -> ret_trust; see store_step_settle */
};

struct request {
    enum request_kind kind;
    uint32_t server;
    const struct store_spec *spec;     /* CREATE */
    const struct optimizer_rule *rule; /* TRAIN */
    uint32_t shard;
    uint64_t first;
    uint64_t rows;
    uint32_t slot;
    uint64_t updates;   /* SET_SLOT; of SLOT the answer */
    uint64_t row_bytes; /* of PULL, GATHER, PUSH, ...: as created */
    const int64_t *ids; /* GATHER: `rows` of them */
    struct push push;   /* its ids too; its shard is the one above */
    double trust;       /* SETTLE */
    const char *name;
    const void *values; /* input; NOTE: `rows` bytes */
    void *into;         /* output, the caller's, rows * row_bytes */
    uint64_t min_steps; /* PULL, GATHER: waits until so many steps were applied; 0: does not wait */
    /* answers */
    uint32_t ret_shard;
    uint64_t ret_version; /* of the shard, before the first row was read */
    uint64_t ret_steps;   /* PULL: how many steps it had, likewise */
    double ret_trust;     /* PUSH, PUSH_PULL, SETTLE: the ratio of LAMB that it has; 0: none */
    char *ret_text;
    size_t ret_text_bytes;
    cadre_status code; /* of this request; the others may have succeeded */
};

/* Kinds beside enum request_kind: the first frame of a connection, and all that a server sends. */
#define FRAME_HELLO  64
#define FRAME_ANSWER 65
/* Between servers: the connection now belongs to the copy that is kept of another server; a whole
 * copy is sent, or requested; a piece of it, of which the last one is empty. */
#define FRAME_BACKUP 66
#define FRAME_LOAD   67
#define FRAME_FETCH  68
#define FRAME_PIECE  69
/* Between servers: a push that its server forwards while it receives it. Its header; some rows of
 * it, behind those before; no more of them come; all have come, which alone is answered. */
#define FRAME_PUSH_BEGIN   70
#define FRAME_PUSH_ROWS    71
#define FRAME_PUSH_ABANDON 72
#define FRAME_PUSH_END     73

enum { ARG_SHARD, ARG_FIRST, ARG_ROWS, ARG_MIN_STEPS, ARG_DONE_WATERMARK };
/* Of FRAME_PUSH_*, beside the shard, the rows and the watermark: which push it is. */
enum { ARG_CLOSURE = ARG_FIRST, ARG_ORDINAL = ARG_MIN_STEPS };
/* Of an answer; of that to a hello: the nonce of the server's memory. */
enum { ANSWER_VERSION, ANSWER_NUMBER /* shard, updates, steps, the bits of a push's trust */ };
/* The number of the answer to a hello. */
enum { HELLO_KEPT = 1, HELLO_BACKED = 2 };

#define PUSH_HEADER_BYTES 80
#define SPEC_HEADER_BYTES (STORE_NAME_BYTES + 24)
#define NAME_HEADER_BYTES STORE_NAME_BYTES
/* Bytes between a frame and its ids, values or text. */
#define REQUEST_HEADER_BYTES RULE_BYTES
_Static_assert(SPEC_HEADER_BYTES <= REQUEST_HEADER_BYTES, "a rule is the longest part");

#define REQUEST_IDS_MAX  (UINT64_C(1) << 26)
#define REQUEST_NOTE_MAX (UINT64_C(16) << 20)

#define NORMS_BYTES (2 * OPTIMIZER_LANES * sizeof(uint64_t))
/* Writes NORMS_BYTES. */
void norms_write(const struct optimizer_norms *norms, uint8_t ret_bytes[NORMS_BYTES]);
/* Reads what norms_write wrote. */
void norms_read(const uint8_t bytes[NORMS_BYTES], struct optimizer_norms *ret_norms);
/* The bits of a double, as arguments of frames have them. */
uint64_t request_bits(double value);
/* The double of these bits. */
double request_double(uint64_t bits);

/* Bytes of a row of the shard. */
uint64_t request_row_bytes(const struct store_spec *spec);

/* The frame of a request with its count of bytes, and its header; returns the header's size. */
size_t request_write(const struct request *request, uint64_t done_watermark,
    struct frame *ret_frame, uint8_t ret_part[REQUEST_HEADER_BYTES]);
/* Bytes of the ids that follow the header. */
uint64_t request_ids_bytes(const struct request *request);
/* Bytes of the values that follow the ids. */
uint64_t request_values_bytes(const struct request *request);
/* Bytes of the rows in an answer without error; UINT64_MAX: a text of any size. */
uint64_t request_answer_bytes(const struct request *request);

/* Reads a push's header; `shard` is in the frame. */
void push_header_read(
    const uint8_t bytes[PUSH_HEADER_BYTES], uint32_t shard, struct push *ret_push);
/* Reads the header of a CREATE. Its name is terminated, whatever the bytes are. */
void spec_header_read(const uint8_t bytes[SPEC_HEADER_BYTES], struct store_spec *ret_spec);
/* The name is terminated, whatever the bytes are. */
void name_header_read(const uint8_t bytes[NAME_HEADER_BYTES], char ret_name[STORE_NAME_BYTES]);

#endif
