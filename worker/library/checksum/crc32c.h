/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C (Castagnoli), as iSCSI, ext4, Btrfs and TFRecord files have it. It finds faults of disks
 * and networks, and is no defence against who makes them on purpose. */
#ifndef CADRE_WORKER_CHECKSUM_CRC32C_H
#define CADRE_WORKER_CHECKSUM_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes, of any size, behind others of which it is `before`; 0 at the start.
 * Thread-safe. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t size);

#endif
