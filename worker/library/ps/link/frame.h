/* SPDX-License-Identifier: Apache-2.0
 * The header of a frame as bytes: little-endian, in the order of struct frame. */
#ifndef CADRE_WORKER_PS_LINK_FRAME_H
#define CADRE_WORKER_PS_LINK_FRAME_H

#include "worker/library/ps/link/link.h"

/* Writes all FRAME_BYTES. */
void frame_write(const struct frame *frame, uint8_t ret_bytes[FRAME_BYTES]);
/* Reads any bytes; does not check them. */
void frame_read(const uint8_t bytes[FRAME_BYTES], struct frame *ret_frame);

#endif
