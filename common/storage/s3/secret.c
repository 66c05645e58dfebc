/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/secret.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

void *s3_secret_new(size_t bytes)
{
    CADRE_ASSERT(bytes > 0);
    if (fault_point("storage.memory")) {
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    if (madvise(memory, bytes, MADV_DONTDUMP) != 0) {
        munmap(memory, bytes);
        return NULL;
    }
    return memory;
}

void s3_secret_free(void *memory, size_t bytes)
{
    if (memory != NULL) {
        OPENSSL_cleanse(memory, bytes);
        munmap(memory, bytes);
    }
}

void s3_secret_wipe(void *memory, size_t bytes)
{
    OPENSSL_cleanse(memory, bytes);
}
