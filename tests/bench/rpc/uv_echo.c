/* SPDX-License-Identifier: Apache-2.0 */
#include "uv_echo.h"

#include "rounds.h"

#include "common/pure/assert.h"

#include <stdlib.h>

#include <uv.h>

struct connection {
    uv_pipe_t pipe;
    char data[MESSAGE_BYTES];
};

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct connection *connection = handle->data;
    (void)suggested;
    *ret_buffer = uv_buf_init(connection->data, sizeof connection->data);
}

static void closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void got(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    if (length < 0) {
        uv_close((uv_handle_t *)stream, closed);
    } else if (length > 0) {
        uv_buf_t answer = uv_buf_init(buffer->base, (unsigned)length);
        int sent = uv_try_write(stream, &answer, 1);
        CADRE_ASSERT(sent == length || sent < 0);
    }
}

static void connected(uv_stream_t *listener, int status)
{
    struct connection *connection = calloc(1, sizeof *connection);
    CADRE_ASSERT(connection != NULL && status == 0);
    connection->pipe.data = connection;
    int failed = uv_pipe_init(listener->loop, &connection->pipe, 0);
    CADRE_ASSERT(failed == 0);
    failed = uv_accept(listener, (uv_stream_t *)&connection->pipe);
    CADRE_ASSERT(failed == 0);
    uv_read_start((uv_stream_t *)&connection->pipe, lend, got);
}

void uv_echo_open(uv_loop_t *uv, const char *path)
{
    static uv_pipe_t listener;
    int failed = uv_pipe_init(uv, &listener, 0);
    CADRE_ASSERT(failed == 0);
    failed = uv_pipe_bind(&listener, path);
    CADRE_ASSERT(failed == 0);
    failed = uv_listen((uv_stream_t *)&listener, CONCURRENCY_MAX, connected);
    CADRE_ASSERT(failed == 0);
}
