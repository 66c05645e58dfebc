/* SPDX-License-Identifier: Apache-2.0
 * Hands tasks from one incarnation of the daemon to the next: the note that it stores with a
 * task's keeper, and the adoption of a task by means of it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/agent/agent_state.h"
#include "worker/host/agent/ps_memory.h"
#include "worker/host/agent/agent.h"
#include "worker/host/keeper/start.h"

/* A keeper that runs answers at once. */
#define ANSWER_MS 2000

struct note {
    uint64_t boot_nonce;
    int64_t gpu_slot;
}; /* behind it START, as it is packed */

cadre_status adopt_note(
    const struct agent_task *task, struct wire_buffer *note, struct cadre_error *error)
{
    const struct note head = {
        .boot_nonce = task->agent->setup.identity.boot_nonce, .gpu_slot = task->gpu_slot};
    struct agent_down down = {.type = AGENT_DOWN_START, .start = task->start};
    if (!wire_buffer_reserve(note, sizeof head)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task's note");
    }
    memcpy(note->bytes, &head, sizeof head);
    note->size = sizeof head;
    return wire_pack_agent_down(&down, note, error);
}

/* What a keeper sends to a daemon that connects. */
struct given {
    int socket;
    int fds[KEEPER_FDS];
    struct keeper_message hello;
    struct packed_launch packed;
    struct note head;
    struct agent_start start; /* in the agent's arena */
};

static void close_given(struct given *given)
{
    packed_launch_free(&given->packed);
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (given->fds[i] >= 0) {
            close(given->fds[i]);
        }
    }
    if (given->socket >= 0) {
        close(given->socket);
    }
}

static cadre_status receive_hello(struct given *given, const char *path, struct cadre_error *error)
{
    struct pollfd answer = {.fd = given->socket, .events = POLLIN};
    int ready;
    do {
        ready = poll(&answer, 1, ANSWER_MS);
    } while (ready < 0 && errno == EINTR);
    int failed = ready == 1 ? keeper_receive(given->socket, &given->hello, given->fds) : ETIMEDOUT;
    if (failed == EMFILE) {
        return cadre_error_errno(error, failed, "cannot take over from the keeper at %s", path);
    }
    if (failed == 0 && given->hello.type == KEEPER_HELLO && given->fds[KEEPER_FD_LAUNCH] >= 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        failed == EPROTO ? "the keeper at %s is of another version of cadre-worker"
                         : "the keeper at %s does not answer",
        path);
}

static cadre_status read_note(
    struct agent *agent, struct given *given, struct task_ref expected, struct cadre_error *error)
{
    struct agent_down down;
    CADRE_TRY(packed_launch_read(given->fds[KEEPER_FD_LAUNCH], &given->packed, error));
    const struct keeper_launch *launch = &given->packed.launch;
    const uint8_t *note = launch->note;
    if (launch->note_bytes < sizeof given->head) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "the keeper's note of its task is not whole");
    }
    memcpy(&given->head, note, sizeof given->head);
    wire_arena_reset(agent->arena);
    CADRE_TRY(wire_unpack_agent_down(note + sizeof given->head,
        launch->note_bytes - sizeof given->head, agent->arena, &down, error));
    if (down.type != AGENT_DOWN_START || !task_ref_equal(down.start.task, expected) ||
        agent_task_find(agent, expected) != NULL) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "the keeper has another task than its folder's name");
    }
    given->start = down.start;
    return CADRE_OK;
}

static struct agent_task *new_task(struct agent *agent, const struct given *given,
    const char *keeper, const char *socket, struct cadre_error *error)
{
    struct agent_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another task");
        return NULL;
    }
    *task = (struct agent_task){.next = agent->tasks,
        .agent = agent,
        .ref = given->start.task,
        .memory = -1,
        .bound = -1,
        .gpu_slot = (int32_t)given->head.gpu_slot,
        .keeper_socket = -1,
        .keeper_path = strdup(keeper),
        .socket_path = strdup(socket),
        .program = strdup(given->packed.launch.launch.program),
        .confinement = given->packed.launch.launch.confinement};
    agent->tasks = task;
    cadre_status status = agent_copy_start(task, &given->start, error);
    if (status == CADRE_OK &&
        (task->keeper_path == NULL || task->socket_path == NULL || task->program == NULL)) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another task");
    }
    if (status != CADRE_OK) {
        agent_forget(agent, task->ref);
        return NULL;
    }
    return task;
}

/* The steps that can fail, before the core has the task. */
static cadre_status adopt_attach(
    struct agent_task *task, struct given *given, struct cadre_error *error)
{
    struct agent *agent = task->agent;
    int socket = given->socket;
    given->socket = -1;
    CADRE_TRY(keeper_link_attach(task, socket, error));
    CADRE_TRY(listener_make(task->socket_path, &task->confinement, &task->bound, error));
    CADRE_TRY(task_socket_listen(task, error));
    if (ps_memory_is_for(&task->start) && given->fds[KEEPER_FD_MEMORY] >= 0) {
        CADRE_TRY(ps_memory_adopt(agent, task->ref, &given->fds[KEEPER_FD_MEMORY], error));
    }
    if (agent->callbacks.adopted == NULL || !agent->callbacks.adopted(agent->user, &task->start)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no room for an adopted task");
    }
    return CADRE_OK;
}

static void report_to_core(struct agent_task *task, struct given *given)
{
    struct agent *agent = task->agent;
    pid_t pid = (pid_t)given->hello.value;
    struct agent_down down = {.type = AGENT_DOWN_START, .start = task->start};
    agent->setup.identity.boot_nonce = given->head.boot_nonce;
    process_started(task, pid, given->fds);
    given->fds[KEEPER_FD_STDOUT] = -1;
    given->fds[KEEPER_FD_STDERR] = -1;
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_ADOPTED,
                          .task = task->ref,
                          .pid = (uint32_t)pid,
                          .ended = given->hello.ended != 0,
                          .down = &down});
}

static cadre_status adopt_adopt(struct agent *agent, struct given *given, struct task_ref expected,
    const char *keeper, const char *socket, struct cadre_error *error)
{
    if (agent_task_count(agent) >= AGENT_ENTRIES(agent->setup.core.slots)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "this worker's %u slots have no room for another task", agent->setup.core.slots);
    }
    CADRE_TRY(keeper_connect(keeper, &given->socket, error));
    CADRE_TRY(receive_hello(given, keeper, error));
    CADRE_TRY(read_note(agent, given, expected, error));
    struct agent_task *task = new_task(agent, given, keeper, socket, error);
    if (task == NULL) {
        return error->code;
    }
    cadre_status status = adopt_attach(task, given, error);
    if (status != CADRE_OK) {
        agent_forget(agent, task->ref);
        return status;
    }
    report_to_core(task, given);
    return CADRE_OK;
}

cadre_status agent_adopt(struct agent *agent, struct task_ref expected, const char *keeper,
    const char *socket, struct cadre_error *error)
{
    struct given given = {.socket = -1, .fds = {-1, -1, -1, -1}};
    cadre_status status = adopt_adopt(agent, &given, expected, keeper, socket, error);
    close_given(&given);
    return status;
}
