/* SPDX-License-Identifier: Apache-2.0
 * The checksum of blocks of a checkpoint's file. */
#ifndef CADRE_RUNTIME_FORMAT_CHECKPOINT_SUM_H
#define CADRE_RUNTIME_FORMAT_CHECKPOINT_SUM_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli), as iSCSI, ext4 and Btrfs have it. */
uint32_t checkpoint_crc32c(const void *bytes, size_t size);

#endif
