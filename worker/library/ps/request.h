/* SPDX-License-Identifier: Apache-2.0
 * Requests to a parameter server as bytes: what the words of a frame mean, and what follows it.
 *
 *     words   shard + slot << 32 | first, or the bits of a trust | rows | steps, or updates | done
 * below bytes   CREATE            spec TRAIN             rule, of the shard GATHER            ids
 *             PUSH, PUSH_PULL   push | ids, of a sparse one | values
 *             NORMS             the same
 *             SET_SLOT          values
 *             NOTE              name | text
 *             NOTED             name
 *
 *     answer  code, and its sentence; else the words below and rows or text */
#ifndef CADRE_WORKER_PS_REQUEST_H
#define CADRE_WORKER_PS_REQUEST_H

#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/store/store.h"

/* Beside enum request_kind. The first frame of a connection, and all that a server says. */
#define FRAME_HELLO  64
#define FRAME_ANSWER 65
/* Between servers: the connection is from now on with the copy that is kept of another server; a
 * copy as a whole is given, or asked for; a piece of it, the last one is empty. */
#define FRAME_BACKUP 66
#define FRAME_LOAD   67
#define FRAME_FETCH  68
#define FRAME_PIECE  69

enum { ARG_SHARD, ARG_FIRST, ARG_ROWS, ARG_MIN_STEPS, ARG_DONE_WATERMARK };
/* Of an answer; of that to a hello: the nonce of the server's memory. */
enum { ANSWER_VERSION, ANSWER_NUMBER /* shard, updates, steps, the bits of a push's trust */ };
/* The number of the answer to a hello. */
enum { HELLO_KEPT = 1, HELLO_BACKED = 2 };

#define PUSH_HEADER_BYTES 80
#define SPEC_HEADER_BYTES (STORE_NAME_BYTES + 24)
#define NAME_HEADER_BYTES STORE_NAME_BYTES
/* Of what stands between a frame and ids, values or text. */
#define REQUEST_HEADER_BYTES RULE_BYTES
_Static_assert(SPEC_HEADER_BYTES <= REQUEST_HEADER_BYTES, "a rule is the longest part");

#define REQUEST_IDS_MAX  (UINT64_C(1) << 26)
#define REQUEST_NOTE_MAX (UINT64_C(16) << 20)

#define NORMS_BYTES (2 * OPTIMIZER_LANES * sizeof(uint64_t))
void norms_write(const struct optimizer_norms *norms, uint8_t ret_bytes[NORMS_BYTES]);
void norms_read(const uint8_t bytes[NORMS_BYTES], struct optimizer_norms *ret_norms);
uint64_t request_bits(double value);
double request_double(uint64_t bits);

uint64_t request_row_bytes(const struct store_spec *spec);

/* The frame of a request, with its bytes, and its part; returns the part's size. */
size_t request_write(const struct request *request, uint64_t done_watermark,
    struct frame *ret_frame, uint8_t ret_part[REQUEST_HEADER_BYTES]);
/* Bytes of ids and of values that follow the part. */
uint64_t request_ids_bytes(const struct request *request);
uint64_t request_values_bytes(const struct request *request);
/* Bytes of a good answer's rows; UINT64_MAX: a text of any size. */
uint64_t request_answer_bytes(const struct request *request);

void push_header_read(
    const uint8_t bytes[PUSH_HEADER_BYTES], uint32_t shard, struct push *ret_push);
void spec_header_read(const uint8_t bytes[SPEC_HEADER_BYTES], struct store_spec *ret_spec);
/* The name is terminated, whatever the bytes are. */
void name_header_read(const uint8_t bytes[NAME_HEADER_BYTES], char ret_name[STORE_NAME_BYTES]);

#endif
