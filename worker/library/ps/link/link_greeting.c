/* SPDX-License-Identifier: Apache-2.0
 * What tasks send behind the proofs: incarnation and program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <errno.h>
#include <pthread.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "worker/library/mesh/bytes.h"
#include "worker/library/ps/link/link_internal.h"

#define GREETING_MAGIC   UINT32_C(0x50524443) /* "CDRP" */
#define GREETING_VERSION UINT32_C(1)

enum { AT_MAGIC = 0, AT_VERSION = 4, AT_INCARNATION = 8, AT_PROGRAM = 16, AT_END = 48 };
_Static_assert(AT_PROGRAM + LINK_PROGRAM_BYTES == AT_END && AT_END <= GREETING_BYTES, "it fits");

void link_greeting_write(const struct link_terms *terms, uint8_t ret_bytes[GREETING_BYTES])
{
    memset(ret_bytes, 0, GREETING_BYTES);
    bytes_put_u32(ret_bytes + AT_MAGIC, GREETING_MAGIC);
    bytes_put_u32(ret_bytes + AT_VERSION, GREETING_VERSION);
    bytes_put_u64(ret_bytes + AT_INCARNATION, terms->incarnation);
    memcpy(ret_bytes + AT_PROGRAM, terms->program, LINK_PROGRAM_BYTES);
}

bool link_greeting_read(const uint8_t bytes[GREETING_BYTES], struct link_peer *peer)
{
    peer->incarnation = bytes_get_u64(bytes + AT_INCARNATION);
    memcpy(peer->program, bytes + AT_PROGRAM, LINK_PROGRAM_BYTES);
    return bytes_get_u32(bytes + AT_MAGIC) == GREETING_MAGIC &&
           bytes_get_u32(bytes + AT_VERSION) == GREETING_VERSION;
}

cadre_status link_greeting_check(const struct link_terms *terms, const struct link_peer *peer,
    const char *who, struct cadre_error *error)
{
    if (memcmp(terms->program, peer->program, LINK_PROGRAM_BYTES) != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s runs another version of the program; start all tasks of a job with the same "
            "executable",
            who);
    }
    return CADRE_OK;
}

void link_slot_name(const struct ps_job *ps_job, uint32_t slot, char ret_name[LINK_NAME_BYTES])
{
    enum role role = slot < ps_job_task_count(ps_job) ? ps_job_role(ps_job, slot) : ROLE_NONE;
    if (role == ROLE_NONE) {
        snprintf(ret_name, LINK_NAME_BYTES, "slot %" PRIu32, slot);
    } else {
        snprintf(ret_name, LINK_NAME_BYTES, "%s %" PRIu32, role_name(role),
            slot - ps_job_first_slot(ps_job, role));
    }
}

struct handshake_hello link_hello(const struct link_terms *terms, uint32_t from, uint32_t to)
{
    return (struct handshake_hello){
        .generation = terms->generation.number,
        .nonce = terms->generation.nonce,
        .from_rank = from,
        .to_rank = to,
    };
}

static pthread_once_t program_once = PTHREAD_ONCE_INIT;
static struct sha256 program_hash;
static struct cadre_error program_error;

static void read_program(void)
{
    CADRE_CLOSE_AT_EXIT int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        (void)cadre_error_errno(&program_error, errno, "open this program's executable");
        return;
    }
    (void)sha256_of_fd(fd, &program_hash, NULL, &program_error);
}

cadre_status link_program_digest(uint8_t ret_digest[LINK_PROGRAM_BYTES], struct cadre_error *error)
{
    _Static_assert(LINK_PROGRAM_BYTES == SHA256_BYTES, "it is a content's hash");
    pthread_once(&program_once, read_program);
    if (program_error.code != CADRE_OK) {
        return cadre_error_set(error, program_error.code, "%s", program_error.text);
    }
    memcpy(ret_digest, program_hash.bytes, LINK_PROGRAM_BYTES);
    return CADRE_OK;
}
