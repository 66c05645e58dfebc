/* SPDX-License-Identifier: Apache-2.0
 * Frames of TFRecord files in memory: what lies where, and whether it is sound. Reads nothing and
 * keeps nothing.
 *
 *     uint64 length | uint32 checksum of these 8 bytes | data | uint32 checksum of the data
 *
 * All little endian. A checksum is a CRC-32C, turned right by 15 bits, plus 0xa282ead8.
 * (https://www.tensorflow.org/tutorials/load_data/tfrecord.) */
#ifndef CADRE_WORKER_INPUT_FILES_RECORD_FRAME_H
#define CADRE_WORKER_INPUT_FILES_RECORD_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

#define RECORD_LENGTH_BYTES 8
#define RECORD_HEADER_BYTES 12 /* before the data */
#define RECORD_FOOTER_BYTES 4  /* behind it */
#define RECORD_FRAME_BYTES  16 /* both */

/* No rule may allow more: sums of a few lengths then never overflow. */
#define RECORD_BYTES_LIMIT (INT64_MAX / 4)

/* What is believed. */
struct record_rules {
    uint64_t record_bytes; /* longest data; at most RECORD_BYTES_LIMIT */
    bool skip_checksums;   /* neither is looked at */
};

enum record_fault {
    RECORD_SOUND = 0,
    RECORD_LENGTH_DAMAGED, /* the checksum of the length */
    RECORD_TOO_LONG,       /* for the rules */
    RECORD_DATA_DAMAGED    /* the checksum of the data */
};

/* The checksum of any bytes, as frames have it. */
uint32_t record_checksum(const void *bytes, size_t count);

/* What a walk over frames found. */
struct record_walk {
    size_t count; /* frames that were passed */
    /* Where the walk stopped; behind the bytes given when the last frame, of which only the header
     * was looked at, ends there. */
    uint64_t used;
    uint64_t last;           /* where the last frame that was passed begins */
    enum record_fault fault; /* of the frame at `used` */
    uint64_t length;         /* of the data at `used`, where its header was there; else 0 */
    /* Bytes from `used` on that must be there for the walk to go on; 0 when it found a fault, or as
     * many as it was asked for. */
    uint64_t wanted;
};

/* Walks over up to `most` whole frames from the start of `size` bytes and checks them; `records`
 * gets the place and size of the data of each. Lengths are used only after their check. */
struct record_walk record_walk_frames(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, cadre_string records[]);

/* The same by headers alone: data is neither looked at, nor need it be there. `starts` gets where
 * each frame begins, `base` being the first; it may be NULL. */
struct record_walk record_walk_headers(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, uint64_t base, uint64_t starts[]);

/* Writes the header and the footer of a frame around `count` bytes of data. */
void record_frame_make(const void *data, size_t count, uint8_t ret_header[RECORD_HEADER_BYTES],
    uint8_t ret_footer[RECORD_FOOTER_BYTES]);

#endif
