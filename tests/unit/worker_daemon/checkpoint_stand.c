/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker_daemon/checkpoint_stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/speed.h"
#include "worker/host/daemon/later.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/restore.h"
#include "worker/host/daemon/task_files.h"

struct stand *stand;

/* ---- the agent and the rest of the daemon ---- */

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    assert_null(agent);
    assert_int_equal(task.job.n, 7);
    stand->published++;
    stand->code = code;
    snprintf(stand->text, sizeof stand->text, "%s", text);
    stand->done = true;
}

void tasks_fail(struct task_files *task, const char *text)
{
    assert_true(task == &stand->task || task == &stand->second);
    stand->code = CADRE_UNKNOWN;
    snprintf(stand->text, sizeof stand->text, "%s", text);
    stand->done = true;
}

void later_start(struct task_files *task, const struct cadre_error *error)
{
    tasks_fail(task, error->text);
}

bool later_publish(struct task_files *task, const char *reason)
{
    (void)task;
    (void)reason;
    return false;
}

void placed(struct task_files *task)
{
    assert_true(task == &stand->task || task == &stand->second);
    stand->placed++;
    stand->done = true;
}

void outputs_resume(struct task_files *task)
{
    assert_ptr_equal(task, &stand->task);
    stand->resumed++;
}

/* ---- the stand ---- */

const char *in(const char *name)
{
    return test_path(stand->path, stand->folder, name);
}

void hex(const void *bytes, size_t size, char ret_hex[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    assert_int_equal(sha256_of(bytes, size, &hash, NULL), CADRE_OK);
    sha256_hex(&hash, ret_hex);
}

void put_file(const char *name, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    assert_ok(file_write_atomic(in(name), bytes, size, 0644, &error), &error);
}

void write_checkpoint(uint64_t position)
{
    char whole[SHA256_HEX_BYTES];
    char big[SHA256_HEX_BYTES];
    char small[SHA256_HEX_BYTES];
    hex(stand->file, FILE_BYTES, whole);
    hex(stand->file, BIG, big);
    hex(stand->file + BIG, SMALL, small);
    int length = snprintf(stand->manifest, sizeof stand->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":%llu,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":["
        "{\"offset\":0,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}]}",
        (unsigned long long)position, FILE_BYTES, whole, BIG, big, BIG, SMALL, small, BIG + SMALL,
        SMALL, small);
    struct sha256 hash;
    assert_int_equal(sha256_of(stand->manifest, (size_t)length, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES);
    put_file("out/deep/c.json", stand->manifest, (size_t)length);
    stand->part = (struct task_part){
        .position = position, .path = "deep/c.json", .size_bytes = (uint64_t)length};
    memcpy(stand->part.sha256, hash.bytes, sizeof hash.bytes);
}

void make_folder(const char *name)
{
    struct cadre_error error = {0};
    assert_ok(folder_make(in(name), 0755, &error), &error);
}

int set_up(void **state)
{
    (void)state;
    static unsigned count;
    static const char *base;
    struct cadre_error error = {0};
    base = base != NULL ? base : test_temp_dir();
    stand = calloc(1, sizeof *stand);
    assert_non_null(stand);
    snprintf(stand->folder, sizeof stand->folder, "%s/%u", base, count++);
    make_folder("out/deep");
    assert_ok(rpc_loop_open(&stand->daemon.loop, &error), &error);
    stand->daemon.works.loop = stand->daemon.loop;
    coordinator_open(&stand->coordinator, stand->daemon.loop);
    assert_ok(rpc_channel_open(stand->daemon.loop, stand->coordinator.address, NULL,
                  &stand->daemon.channel, &error),
        &error);
    stand->daemon.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    stand->daemon.linked = true;
    stand->task = (struct task_files){.daemon = &stand->daemon,
        .ref = {.job = {7}, .slot = 1, .incarnation = 2},
        .folder = stand->folder,
        .start = &stand->start};
    for (size_t i = 0; i < BIG; i++) {
        stand->file[i] = (uint8_t)((uint32_t)i * UINT32_C(2654435761) >> 21);
    }
    write_checkpoint(120);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    publish_cancel(&stand->task);
    restore_cancel(&stand->task);
    rpc_channel_close(stand->daemon.channel);
    file_works_wait(&stand->daemon.works);
    coordinator_close(&stand->coordinator);
    rpc_loop_close(stand->daemon.loop);
    wire_arena_free(stand->daemon.arena);
    wire_buffer_free(&stand->daemon.packed);
    free(stand->task.restore_path);
    published_free(stand->task.published);
    free(stand);
    return 0;
}

void until_done(void)
{
    assert_int_equal(rpc_loop_run_until(stand->daemon.loop, &stand->done,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
    stand->done = false;
}

void until_quiet(void)
{
    bool never = false;
    (void)rpc_loop_run_until(
        stand->daemon.loop, &never, clock_monotonic_us() + 100 * CADRE_US_PER_MS);
    assert_false(stand->done);
}

void publish(void)
{
    publish_start(&stand->task, &stand->part);
    until_done();
}

void assert_published(unsigned puts)
{
    if (stand->code != CADRE_OK) {
        fail_msg("%s", stand->text);
    }
    assert_int_equal(stand->coordinator.puts, puts);
    assert_non_null(coordinator_find(&stand->coordinator, stand->part.sha256));
    assert_null(stand->task.publish);
}
