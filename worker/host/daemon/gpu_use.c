/* SPDX-License-Identifier: Apache-2.0
 * The states of the child that answers for GPUs:
 *
 *     NONE ── turn: a task has a GPU, and the pause is over ──▶ ASKED ◀── turn ── IDLE
 *      ▲                                                          │   ── answer ──▶ │
 *      │                                                          ▼                 ▼
 *      └────────────── it has ended ─────────────────────────  ENDING ◀── a failure, or no task has
 * one
 *
 * One that the kernel does not kill stays in ENDING, so there is never a second one beside it. */
#include "worker/host/daemon/gpu_use.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/probe/slot_gpus.h"
#include "worker/host/probe/use_child.h"

#define PAUSE_MIN_US CADRE_US_PER_S
#define PAUSE_MAX_US (60 * CADRE_US_PER_S)
#define FRESH_US     (5 * CADRE_US_PER_S) /* for so long, or two heartbeats, an answer counts */

enum gpu_use_state { GPU_USE_NONE, GPU_USE_IDLE, GPU_USE_ASKED, GPU_USE_ENDING };

struct gpu_use {
    struct daemon *daemon;
    enum gpu_use_state state;
    struct use_child child; /* not while NONE; its socket is -1 once it is closed */
    uv_poll_t process;
    uv_poll_t socket;
    unsigned handles; /* of these two, so many are open */
    char text[USE_ANSWER_BYTES_MAX];
    size_t size;
    struct gpu_sample samples[LIMIT_GPUS_PER_WORKER];
    uint64_t answered_us; /* 0: the samples are not known */
    uint64_t begun_us;    /* the child's start */
    uint64_t asked_us;    /* the newest request, or when it was to end */
    uint64_t start_us;    /* no start before */
    uint64_t pause_us;    /* after the newest failure */
    bool warned;
};

/* ---- its end ---- */

static void on_gpu_use_closed(uv_handle_t *handle)
{
    struct gpu_use *use = handle->data;
    use->handles--;
    use->state = use->handles == 0 ? GPU_USE_NONE : use->state;
}

static void gpu_use_close_socket(struct gpu_use *use)
{
    if (use->child.socket >= 0) {
        uv_close((uv_handle_t *)&use->socket, on_gpu_use_closed);
        close(use->child.socket);
        use->child.socket = -1;
    }
}

static void gpu_use_close_process(struct gpu_use *use)
{
    if (use->child.process >= 0) {
        uv_close((uv_handle_t *)&use->process, on_gpu_use_closed);
        close(use->child.process);
        use->child.process = -1;
    }
}

/* By its input's end, on which it exits. */
static void gpu_use_end(struct gpu_use *use)
{
    gpu_use_close_socket(use);
    use->state = GPU_USE_ENDING;
    use->asked_us = clock_monotonic_us();
    use->answered_us = 0;
}

/* And what it has started. Once it was waited for, its pid may be another's. */
static void gpu_use_kill(struct gpu_use *use)
{
    siginfo_t end;
    if (waitid(P_PIDFD, (id_t)use->child.process, &end, WEXITED | WNOHANG | WNOWAIT) == 0) {
        kill(-use->child.pid, SIGKILL);
    }
}

/* Sets the time of the next start, and warns, once until a child has answered for a while. */
static void gpu_use_failed(struct gpu_use *use, const char *reason)
{
    use->pause_us = use->pause_us == 0 ? PAUSE_MIN_US : use->pause_us * 2;
    use->pause_us = use->pause_us < PAUSE_MAX_US ? use->pause_us : PAUSE_MAX_US;
    use->start_us = clock_monotonic_us() + use->pause_us;
    if (!use->warned) {
        log_event(LOG_LEVEL_WARNING, "gpus", "the use of GPUs is not measured",
            LOG_STR("reason", reason), LOG_U64("pid", (uint64_t)use->child.pid),
            LOG_U64("next_start_s", use->pause_us / CADRE_US_PER_S));
        use->warned = true;
    }
}

static void gpu_use_fail(struct gpu_use *use, const char *reason)
{
    gpu_use_failed(use, reason);
    gpu_use_kill(use);
    gpu_use_end(use);
}

static void on_gpu_use_exit(uv_poll_t *handle, int status, int events)
{
    struct gpu_use *use = handle->data;
    (void)status;
    (void)events;
    siginfo_t end;
    gpu_use_kill(use);
    (void)waitid(P_PIDFD, (id_t)use->child.process, &end, WEXITED | WNOHANG); /* or the agent did */
    if (use->state != GPU_USE_ENDING) {
        gpu_use_failed(use, "cadre-devices --use has ended, or closed its output");
        gpu_use_end(use);
    }
    gpu_use_close_process(use);
}

/* ---- its answers ---- */

static void gpu_use_take_answer(struct gpu_use *use, size_t size)
{
    struct gpu_sample samples[LIMIT_GPUS_PER_WORKER];
    struct cadre_error error = {0};
    uint32_t count = use->daemon->gpus->host.usable;
    if (use_answer_read(use->text, size, samples, count, &error) != CADRE_OK) {
        struct cadre_error reason = {0};
        cadre_error_set(&reason, CADRE_INVALID_ARGUMENT,
            "what cadre-devices --use answers cannot be read: %s", error.text);
        gpu_use_fail(use, reason.text);
        return;
    }
    memcpy(use->samples, samples, count * sizeof samples[0]);
    use->answered_us = clock_monotonic_us();
    use->state = GPU_USE_IDLE;
    use->size = 0;
    if (use->answered_us - use->begun_us >= PAUSE_MAX_US) {
        use->pause_us = 0;
        use->warned = false;
    }
}

static void on_gpu_use_socket(uv_poll_t *handle, int status, int events)
{
    struct gpu_use *use = handle->data;
    (void)status;
    (void)events;
    ssize_t got =
        recv(use->child.socket, use->text + use->size, sizeof use->text - use->size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        gpu_use_fail(use, "cadre-devices --use has ended, or closed its output");
        return;
    }
    use->size += (size_t)got;
    const char *newline = memchr(use->text, '\n', use->size);
    size_t size = newline != NULL ? (size_t)(newline - use->text) : use->size;
    if (use->state != GPU_USE_ASKED || size + 1 < use->size) {
        gpu_use_fail(use, "cadre-devices --use prints more than it is asked for");
    } else if (newline != NULL) {
        gpu_use_take_answer(use, size);
    } else if (use->size == sizeof use->text) {
        gpu_use_fail(use, "cadre-devices --use prints a text line without an end");
    }
}

/* ---- its start, and requests ---- */

static void gpu_use_ask(struct gpu_use *use)
{
    use->state = GPU_USE_ASKED;
    use->asked_us = clock_monotonic_us();
    if (send(use->child.socket, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        gpu_use_fail(use, "cadre-devices --use takes no request");
    }
}

static void gpu_use_watch(struct gpu_use *use, uv_poll_t *handle, int fd, uv_poll_cb callback)
{
    uv_poll_init(rpc_loop_uv(use->daemon->loop), handle, fd);
    handle->data = use;
    uv_poll_start(handle, UV_READABLE, callback);
    use->handles++;
}

static void gpu_use_start(struct gpu_use *use)
{
    const struct daemon *daemon = use->daemon;
    const struct use_child_setup setup = {.gpus = &daemon->gpus->host,
        .environment = environ,
        .change_user = daemon->change_user,
        .uid = daemon->uid,
        .gid = daemon->gid};
    struct cadre_error error = {0};
    use->child = (struct use_child){.process = -1, .socket = -1};
    if (use_child_start(&setup, &use->child, &error) != CADRE_OK) {
        gpu_use_failed(use, error.text);
        return;
    }
    use->begun_us = clock_monotonic_us();
    use->size = 0;
    gpu_use_watch(use, &use->process, use->child.process, on_gpu_use_exit);
    gpu_use_watch(use, &use->socket, use->child.socket, on_gpu_use_socket);
    gpu_use_ask(use);
}

void gpu_use_turn(struct gpu_use *use, bool wanted)
{
    uint64_t now_us = clock_monotonic_us();
    bool late = now_us - use->asked_us > use->daemon->options.gpu_timeout_us;
    if (use->state == GPU_USE_NONE) {
        if (wanted && now_us >= use->start_us) {
            gpu_use_start(use);
        }
    } else if (use->state == GPU_USE_ENDING) {
        if (late) {
            gpu_use_kill(use);
        }
    } else if (!wanted) {
        gpu_use_end(use);
    } else if (use->state == GPU_USE_IDLE) {
        gpu_use_ask(use);
    } else if (late) {
        gpu_use_fail(use, "cadre-devices --use does not answer within --gpu-timeout");
    }
}

/* ---- what is known ---- */

static bool gpu_use_is_fresh(const struct gpu_use *use)
{
    uint64_t heartbeats_us = 2 * use->daemon->options.heartbeat_us;
    uint64_t most_us = heartbeats_us > FRESH_US ? heartbeats_us : FRESH_US;
    return use->answered_us != 0 && clock_monotonic_us() - use->answered_us <= most_us;
}

void gpu_use_add(const struct gpu_use *use, struct gpus_range range, struct resource_usage *usage)
{
    if (range.first >= range.end || range.end > use->daemon->gpus->host.usable ||
        !gpu_use_is_fresh(use)) {
        return;
    }
    bool has_percent = true;
    bool has_memory = true;
    uint32_t count = range.end - range.first;
    uint32_t percents = 0;
    uint64_t bytes = 0;
    for (uint32_t i = range.first; i < range.end; i++) {
        const struct gpu_sample *sample = &use->samples[i];
        has_percent = has_percent && sample->has_percent;
        has_memory = has_memory && sample->has_memory && sample->memory_bytes <= INT64_MAX - bytes;
        percents += sample->percent;
        bytes += has_memory ? sample->memory_bytes : 0;
    }
    usage->has_gpu = has_percent;
    usage->gpu_percent = has_percent ? (percents + count / 2) / count : 0;
    usage->has_gpu_memory = has_memory;
    usage->gpu_memory_bytes = has_memory ? bytes : 0;
}

/* ---- its lifetime ---- */

cadre_status gpu_use_open(
    struct daemon *daemon, struct gpu_use **ret_use, struct cadre_error *error)
{
    struct gpu_use *use = calloc(1, sizeof *use);
    if (use == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to measure GPUs");
    }
    use->daemon = daemon;
    *ret_use = use;
    return CADRE_OK;
}

void gpu_use_close(struct gpu_use *use)
{
    if (use->state != GPU_USE_NONE) {
        gpu_use_kill(use);
        gpu_use_close_socket(use);
        gpu_use_close_process(use);
    }
}

void gpu_use_free(struct gpu_use *use)
{
    free(use);
}
