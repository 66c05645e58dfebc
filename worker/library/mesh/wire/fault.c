/* SPDX-License-Identifier: Apache-2.0
 * Raising a fault once, and sending it to the other tasks. */
#include "worker/library/mesh/wire/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "worker/library/mesh/wire/watch.h"

cadre_status mesh_fault_open(struct fault *fault, struct cadre_error *error)
{
    fault->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fault->event_fd < 0) {
        return cadre_error_errno(error, errno, "make an eventfd for a mesh");
    }
    /* Recursive, because the thread that holds it may raise the fault. */
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&fault->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    return CADRE_OK;
}

void mesh_fault_close(struct fault *fault)
{
    if (fault->event_fd >= 0) {
        close(fault->event_fd);
        pthread_mutex_destroy(&fault->lock);
    }
}

cadre_status mesh_fault_raise(struct host_mesh *host, cadre_status code, const char *format, ...)
{
    struct fault *fault = &host->fault;
    pthread_mutex_lock(&fault->lock);
    if (!atomic_load(&fault->raised)) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(fault->text, sizeof fault->text, format, arguments);
        va_end(arguments);
        fault->code = code;
        atomic_store(&fault->raised, true);
        group_break(&host->group, host->rank, code, fault->text);
        uint64_t one = 1;
        (void)!write(fault->event_fd, &one, sizeof one);
        if (fault->streams_open && !fault->streams_busy) {
            mesh_watch_announce_end(host, fault->code, fault->text);
        }
    }
    pthread_mutex_unlock(&fault->lock);
    return code;
}

cadre_status mesh_fault_catch(
    struct host_mesh *host, uint32_t rank, const struct wire_frame *frame, const uint8_t *reason)
{
    cadre_status code =
        frame->code == (uint32_t)CADRE_DEADLINE_EXCEEDED ? CADRE_DEADLINE_EXCEEDED : CADRE_ABORTED;
    return mesh_fault_raise(host, code, "the task of rank %" PRIu32 " ended the mesh: %.*s",
        host_number(host, rank), (int)frame->data_bytes, (const char *)reason);
}

cadre_status mesh_fault_error(struct host_mesh *host, bool interrupted, struct cadre_error *error)
{
    /* The text does not change once `raised` is set. */
    cadre_status code = interrupted ? host->fault.code : CADRE_ABORTED;
    return cadre_error_set(
        error, code, "mesh of generation %" PRIu64 ": %s", host->generation, host->fault.text);
}

bool mesh_fault_open_streams(struct host_mesh *host)
{
    pthread_mutex_lock(&host->fault.lock);
    bool good = !atomic_load(&host->fault.raised);
    host->fault.streams_open = good;
    pthread_mutex_unlock(&host->fault.lock);
    return good;
}

void mesh_fault_close_streams(struct host_mesh *host)
{
    pthread_mutex_lock(&host->fault.lock);
    host->fault.streams_open = false;
    pthread_mutex_unlock(&host->fault.lock);
}

bool mesh_fault_enter_streams(struct host_mesh *host)
{
    pthread_mutex_lock(&host->fault.lock);
    bool good = !atomic_load(&host->fault.raised);
    host->fault.streams_busy = good;
    pthread_mutex_unlock(&host->fault.lock);
    return good;
}

void mesh_fault_leave_streams(struct host_mesh *host)
{
    pthread_mutex_lock(&host->fault.lock);
    host->fault.streams_busy = false;
    mesh_watch_resume(host);
    if (atomic_load(&host->fault.raised)) {
        mesh_watch_announce_end(host, host->fault.code, host->fault.text);
    }
    pthread_mutex_unlock(&host->fault.lock);
}
