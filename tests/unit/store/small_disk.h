/* SPDX-License-Identifier: Apache-2.0
 * A small file system of our own, in a mount namespace of our own. */
#ifndef CADRE_TESTS_UNIT_STORE_SMALL_DISK_H
#define CADRE_TESTS_UNIT_STORE_SMALL_DISK_H

#include <stdbool.h>

/* Where it is; `size` as of mount(8), "192k". NULL: this user may not. Once in a process. */
const char *small_disk_open(const char *size);
void small_disk_grow(const char *size);
/* Takes all of its room but so many bytes; again: takes or gives back. */
void small_disk_keep_free(unsigned bytes);
void small_disk_close(void);

#endif
