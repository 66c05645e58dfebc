/* SPDX-License-Identifier: Apache-2.0
 * Another task of the own host that holds the key and then sends what is no handover, or sends over
 * its link what no task sends: an error that names it; and no descriptor stays open. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/mesh/hostile.h"
#include "worker/library/mesh/bytes.h"
#include "worker/library/mesh/connect/links.h"
#include "worker/library/mesh/wire/wire_frame.h"

#define MAGIC     UINT32_C(0x48524443)
#define HAS_PAGE  1u
#define HAS_ARENA 2u
#define SIZE      8192

static int count_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int memory(uint64_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* A handover with the given header and descriptors, as one message of `size` bytes. */
static void give(int to, uint32_t magic, uint32_t flags, uint64_t page, uint64_t arena, size_t size,
    const int *fds, size_t count)
{
    uint8_t bytes[LINK_HANDOVER_BYTES + 8] = {0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control = {.bytes = {0}};
    bytes_put_u32(bytes, magic);
    bytes_put_u32(bytes + 4, flags);
    bytes_put_u64(bytes + 8, page);
    bytes_put_u64(bytes + 16, arena);
    struct iovec piece = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    assert_int_equal(sendmsg(to, &message, MSG_NOSIGNAL), (ssize_t)size);
}

/* Sends one handover; the mesh must refuse it. */
static void refused(uint32_t magic, uint32_t flags, uint64_t page, uint64_t arena, size_t size,
    const int *fds, size_t count)
{
    struct hostile hostile;
    struct cadre_error error;
    int before = count_descriptors();
    hostile_post(&hostile, true);
    hostile_authenticate(&hostile);
    give(hostile.fd, magic, flags, page, arena, size, fds, count);
    assert_error(hostile_finish(&hostile, &error), CADRE_DATA_LOSS, &error,
        "rank 1 handed over something that is no shared memory");
    hostile_leave(&hostile);
    assert_int_equal(count_descriptors(), before);
}

static void test_no_handovers(void **state)
{
    (void)state;
    int good = memory(SIZE, F_SEAL_SHRINK | F_SEAL_GROW);
    int loose = memory(SIZE, F_SEAL_GROW);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int many[8] = {good, good, good, good, good, good, good, good};
    size_t size = LINK_HANDOVER_BYTES;
    refused(MAGIC + 1, 0, 0, 0, size, NULL, 0);
    refused(MAGIC, 0, 0, 0, size - 1, NULL, 0);
    refused(MAGIC, HAS_ARENA, 0, SIZE, size, NULL, 0);
    refused(MAGIC, 0, 0, 0, size, &good, 1);
    refused(MAGIC, HAS_ARENA, 0, SIZE + 1, size, &good, 1);
    refused(MAGIC, HAS_ARENA, 0, 0, size, &good, 1);
    refused(MAGIC, HAS_ARENA, 0, UINT64_MAX, size, &good, 1);
    refused(MAGIC, HAS_ARENA, 0, SIZE, size, &loose, 1);
    refused(MAGIC, HAS_ARENA, 0, SIZE, size, &null, 1);
    refused(MAGIC, HAS_ARENA | 64u, 0, SIZE, size, &good, 1);
    refused(MAGIC, HAS_ARENA, 0, SIZE, size, many, 2);
    refused(MAGIC, HAS_ARENA, 0, SIZE, size, many, 8);
    refused(MAGIC, HAS_PAGE, SIZE, 0, size, &good, 1); /* it does not lead the host */
    refused(MAGIC, HAS_PAGE | HAS_ARENA, SIZE, SIZE, size, many, 2);
    close(good);
    close(loose);
    close(null);
}

/* Descriptors that come before the proof go nowhere. */
static void test_early_descriptors(void **state)
{
    (void)state;
    struct hostile hostile;
    int good = memory(SIZE, F_SEAL_SHRINK);
    int before = count_descriptors();
    uint8_t byte;
    hostile_post(&hostile, true);
    int standing = count_descriptors();
    give(hostile.fd, MAGIC, HAS_ARENA, 0, SIZE, LINK_HANDOVER_BYTES, &good, 1);
    give(hostile.fd, MAGIC, HAS_ARENA, 0, SIZE, LINK_HANDOVER_BYTES, &good, 1);
    give(hostile.fd, MAGIC, HAS_ARENA, 0, SIZE, LINK_HANDOVER_BYTES, &good, 1);
    hostile_step_until_readable(&hostile);
    assert_true(recv(hostile.fd, &byte, 1, 0) <= 0); /* no hello of this version */
    assert_int_equal(count_descriptors(), standing);
    hostile_leave(&hostile);
    assert_int_equal(count_descriptors(), before);
    close(good);
}

/* A task that closes the connection before its handover may come again. */
static void test_second_try(void **state)
{
    (void)state;
    struct hostile hostile;
    struct cadre_error error;
    int good = memory(SIZE, F_SEAL_SHRINK);
    hostile_post(&hostile, true);
    hostile_authenticate(&hostile);
    hostile_connect(&hostile);
    hostile_authenticate(&hostile);
    give(hostile.fd, MAGIC, HAS_ARENA, 0, SIZE, LINK_HANDOVER_BYTES, &good, 1);
    assert_ok(hostile_finish(&hostile, &error), &error);
    hostile_leave(&hostile);
    close(good);
}

static bool has_ended(void *data)
{
    struct cadre_error error;
    struct hostile *hostile = data;
    return mesh_host_ops.form_test(hostile->mesh, &error) != CADRE_OK;
}

/* Sends a frame over an established link. */
static void say(
    const struct wire_frame *frame, size_t size, size_t tail, cadre_status wanted, const char *part)
{
    struct hostile hostile;
    struct cadre_error error;
    uint8_t bytes[WIRE_FRAME_BYTES + 2 * WIRE_REASON_BYTES];
    memset(bytes, 'n', sizeof bytes);
    hostile_post(&hostile, true);
    hostile_authenticate(&hostile);
    give(hostile.fd, MAGIC, 0, 0, 0, LINK_HANDOVER_BYTES, NULL, 0);
    assert_ok(hostile_finish(&hostile, &error), &error);
    mesh_wire_frame_encode(frame, bytes);
    if (size + tail > 0) {
        hostile_send(hostile.fd, bytes, size + tail);
    }
    if (wanted == CADRE_ABORTED && frame->type == WIRE_CALL) {
        close(hostile.fd);
        hostile.fd = -1;
    }
    assert_true(test_wait(has_ended, &hostile, 10 * CADRE_US_PER_S));
    assert_error(mesh_host_ops.form_test(hostile.mesh, &error), wanted, &error, part);
    hostile_leave(&hostile);
}

static void test_messages(void **state)
{
    (void)state;
    const struct wire_frame usual = {.type = WIRE_FAULT,
        .generation = HOSTILE_GENERATION,
        .nonce = HOSTILE_NONCE,
        .rank = 1,
        .data_bytes = 5};
    struct wire_frame frame = usual;
    size_t size = WIRE_FRAME_BYTES;
    const char *no_frame = "rank 1 sent something that is no frame";
    say(&frame, size, 5, CADRE_ABORTED, "the task of rank 1 ended the mesh: nnnnn");
    say(&frame, size, 4, CADRE_DATA_LOSS, no_frame);
    say(&frame, size, 6, CADRE_DATA_LOSS, no_frame);
    say(&frame, size - 1, 0, CADRE_DATA_LOSS, no_frame);
    frame.data_bytes = UINT32_MAX;
    say(&frame, size, 5, CADRE_DATA_LOSS, no_frame);
    frame = usual;
    frame.generation++;
    say(&frame, size, 5, CADRE_DATA_LOSS, no_frame);
    frame = usual;
    frame.rank = 0;
    say(&frame, size, 5, CADRE_DATA_LOSS, no_frame);
    frame = usual;
    frame.type = (enum wire_frame_type)7;
    say(&frame, size, 5, CADRE_DATA_LOSS, no_frame);
    frame = usual;
    frame.type = WIRE_CALL;
    say(&frame, size, 5, CADRE_DATA_LOSS, no_frame);
    say(&frame, 0, 0, CADRE_ABORTED, "the task of rank 1 closed its connection");
}

/* A task that leaves in order disturbs no other. */
static void test_goodbye(void **state)
{
    (void)state;
    struct hostile hostile;
    struct cadre_error error;
    uint8_t bytes[WIRE_FRAME_BYTES];
    const struct wire_frame frame = {
        .type = WIRE_GOODBYE, .generation = HOSTILE_GENERATION, .nonce = HOSTILE_NONCE, .rank = 1};
    hostile_post(&hostile, true);
    hostile_authenticate(&hostile);
    give(hostile.fd, MAGIC, 0, 0, 0, LINK_HANDOVER_BYTES, NULL, 0);
    assert_ok(hostile_finish(&hostile, &error), &error);
    mesh_wire_frame_encode(&frame, bytes);
    hostile_send(hostile.fd, bytes, sizeof bytes);
    close(hostile.fd);
    hostile.fd = -1;
    assert_false(test_wait(has_ended, &hostile, 50 * CADRE_US_PER_MS));
    hostile_leave(&hostile);
}

/* What a process opens once for all its meshes is open from then on. */
static int open_first(void **state)
{
    (void)state;
    struct hostile hostile;
    hostile_post(&hostile, true);
    hostile_leave(&hostile);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_handovers),
        cmocka_unit_test(test_early_descriptors),
        cmocka_unit_test(test_second_try),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_goodbye),
    };
    return cmocka_run_group_tests(tests, open_first, NULL);
}
