/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker_daemon/checkpoint_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/speed.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/task_files.h"

struct fixture *fixture;

/* ---- the agent and the rest of the daemon ---- */

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    assert_null(agent);
    assert_int_equal(task.job.n, 7);
    fixture->published++;
    fixture->code = code;
    snprintf(fixture->text, sizeof fixture->text, "%s", text);
    fixture->done = true;
}

void tasks_fail(struct task_files *task, const struct cadre_error *cause)
{
    assert_true(task == &fixture->task || task == &fixture->second);
    assert_int_not_equal(cause->code, CADRE_OK);
    fixture->code = CADRE_UNKNOWN;
    snprintf(fixture->text, sizeof fixture->text, "%s", cause->text);
    fixture->done = true;
}

void retry_start(struct task_files *task, const struct cadre_error *error)
{
    tasks_fail(task, error);
}

void retry_when_linked(struct daemon *daemon)
{
    daemon->resume_waits = true; /* a test links it again itself */
}

bool retry_publish(struct task_files *task, const char *reason)
{
    (void)task;
    (void)reason;
    return false;
}

void staged(struct task_files *task)
{
    assert_true(task == &fixture->task || task == &fixture->second);
    fixture->staged++;
    fixture->done = true;
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    assert_ptr_equal(daemon, &fixture->daemon);
    assert_int_equal(up->type, AGENT_UP_HEARTBEAT); /* a fetch took longer than a moment */
}

void outputs_resume(struct task_files *task)
{
    assert_ptr_equal(task, &fixture->task);
    fixture->resumed++;
}

/* ---- the fixture ---- */

const char *in(const char *name)
{
    return test_path(fixture->path, fixture->folder, name);
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
    hex(fixture->file, FILE_BYTES, whole);
    hex(fixture->file, BIG, big);
    hex(fixture->file + BIG, SMALL, small);
    int length = snprintf(fixture->manifest, sizeof fixture->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":%llu,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":["
        "{\"offset\":0,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}]}",
        (unsigned long long)position, FILE_BYTES, whole, BIG, big, BIG, SMALL, small, BIG + SMALL,
        SMALL, small);
    struct sha256 hash;
    assert_int_equal(sha256_of(fixture->manifest, (size_t)length, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", fixture->file, FILE_BYTES);
    put_file("out/deep/c.json", fixture->manifest, (size_t)length);
    fixture->part = (struct task_part){
        .position = position, .path = "deep/c.json", .size_bytes = (uint64_t)length};
    memcpy(fixture->part.sha256, hash.bytes, sizeof hash.bytes);
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
    fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "%s/%u", base, count++);
    make_folder("out/deep");
    assert_ok(rpc_loop_open(&fixture->daemon.loop, &error), &error);
    fixture->daemon.file_pool.loop = fixture->daemon.loop;
    fixture->daemon.store_pool.loop = fixture->daemon.loop;
    fetch_report_open(&fixture->daemon);
    coordinator_open(&fixture->coordinator, fixture->daemon.loop);
    assert_ok(rpc_channel_open(fixture->daemon.loop, fixture->coordinator.address, NULL,
                  &fixture->daemon.channel, &error),
        &error);
    fixture->daemon.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    fixture->daemon.linked = true;
    fixture->task = (struct task_files){.daemon = &fixture->daemon,
        .ref = {.job = {7}, .slot = 1, .incarnation = 2},
        .folder = fixture->folder,
        .start = &fixture->start};
    for (size_t i = 0; i < BIG; i++) {
        fixture->file[i] = (uint8_t)((uint32_t)i * UINT32_C(2654435761) >> 21);
    }
    write_checkpoint(120);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    publish_cancel(&fixture->task);
    restore_cancel(&fixture->task);
    rpc_channel_close(fixture->daemon.channel);
    file_work_pool_wait(&fixture->daemon.file_pool);
    file_work_pool_wait(&fixture->daemon.store_pool);
    coordinator_close(&fixture->coordinator);
    fetch_report_close(&fixture->daemon);
    rpc_loop_close(fixture->daemon.loop);
    wire_arena_free(fixture->daemon.arena);
    wire_buffer_free(&fixture->daemon.packed);
    free(fixture->task.restore_path);
    published_free(fixture->task.published);
    free(fixture);
    return 0;
}

void until_done(void)
{
    assert_int_equal(rpc_loop_run_until(fixture->daemon.loop, &fixture->done,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
    fixture->done = false;
}

void until_quiet(void)
{
    bool never = false;
    (void)rpc_loop_run_until(fixture->daemon.loop, &never,
        clock_monotonic_us() + speed_scaled_us(100 * CADRE_US_PER_MS));
    assert_false(fixture->done);
}

void publish(void)
{
    publish_start(&fixture->task, &fixture->part);
    until_done();
}

void assert_published(unsigned puts)
{
    if (fixture->code != CADRE_OK) {
        fail_msg("%s", fixture->text);
    }
    assert_int_equal(fixture->coordinator.puts, puts);
    assert_non_null(coordinator_find(&fixture->coordinator, fixture->part.sha256));
    assert_null(fixture->task.publish);
}
