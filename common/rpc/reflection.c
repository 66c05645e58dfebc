/* SPDX-License-Identifier: Apache-2.0
 * The one stream of server reflection. Its messages (proto/grpc/reflection/v1/reflection.proto) are
 * read and written by hand, as health.c does, so that this folder needs no protobuf. */
#include "common/rpc/standard_services.h"

#include "common/rpc/fields.h"
#include "common/rpc/reflection_index.h"

#include <stdio.h>
#include <string.h>

#include <grpc/support/alloc.h>

#define REQUEST_BYTES_MAX 4096

/* With more than this unread the call is paused. */
#define QUEUED_BYTES ((size_t)256 * 1024)

#define SENTENCE_BYTES 384

/* Fields of ServerReflectionRequest and of ServerReflectionResponse. */
enum request_id {
    ASK_FILE = 3,
    ASK_SYMBOL = 4,
    ASK_EXTENSION = 5,
    ASK_EXTENSION_NUMBERS = 6,
    ASK_SERVICES = 7
};
enum response_id {
    ANSWER_HOST = 1,
    ANSWER_REQUEST = 2,
    ANSWER_FILES = 4,
    ANSWER_EXTENSION_NUMBERS = 5,
    ANSWER_SERVICES = 6,
    ANSWER_ERROR = 7
};

struct rpc_reflection {
    struct reflection_index index;
};

struct question {
    const void *bytes; /* the whole request */
    size_t size;
    const uint8_t *host;
    size_t host_size;
    enum request_id id; /* 0: no field is set */
    const uint8_t *text;
    size_t text_size;
};

/* The content of an answer's last field; the first that is set counts. */
struct reply {
    enum response_id id;
    const struct described_file *file;
    cadre_status code;
    char sentence[SENTENCE_BYTES];
};

static bool read_question(const void *data, size_t length, struct question *question)
{
    struct field_reader reader = field_reader(data, length);
    struct field field;
    static const uint8_t nothing[1];
    *question = (struct question){.bytes = data, .size = length, .host = nothing, .text = nothing};
    while (field_next(&reader, &field)) {
        if (field.kind != FIELD_BYTES) {
            continue;
        }
        if (field.id == ANSWER_HOST) {
            question->host = field.bytes;
            question->host_size = field.size;
        } else if (field.id >= ASK_FILE && field.id <= ASK_SERVICES) {
            question->id = (enum request_id)field.id;
            question->text = field.bytes;
            question->text_size = field.size;
        }
    }
    return !reader.broken;
}

/* ---- answers ---- */

/* NOT_FOUND: "no file is called "x" here", with `what` in the middle. */
static struct reply not_found(const char *what, const struct question *question)
{
    struct reply reply = {.id = ANSWER_ERROR, .code = CADRE_NOT_FOUND};
    char name[REFLECTION_NAME_MAX + 1];
    size_t length = question->text_size < 200 ? question->text_size : 200;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = question->text[i];
        name[i] = (char)(byte >= 0x20 && byte < 0x7f ? byte : '?');
    }
    name[length] = '\0';
    snprintf(reply.sentence, sizeof reply.sentence, "%s \"%s\" here", what, name);
    return reply;
}

static struct reply reflection_answer(
    const struct reflection_index *index, const struct question *question)
{
    const struct symbol *symbol = reflection_symbol(index, question->text, question->text_size);
    switch (question->id) {
    case ASK_FILE: {
        const struct described_file *file =
            reflection_file(index, question->text, question->text_size);
        return file != NULL ? (struct reply){.id = ANSWER_FILES, .file = file}
                            : not_found("no file is called", question);
    }
    case ASK_SYMBOL:
        return symbol != NULL
                   ? (struct reply){.id = ANSWER_FILES, .file = &index->files[symbol->file]}
                   : not_found("nothing is called", question);
    case ASK_EXTENSION_NUMBERS:
        return symbol != NULL && symbol->kind == SYMBOL_MESSAGE
                   ? (struct reply){.id = ANSWER_EXTENSION_NUMBERS}
                   : not_found("no message is called", question);
    case ASK_SERVICES:
        return (struct reply){.id = ANSWER_SERVICES};
    case ASK_EXTENSION:
        return (struct reply){.id = ANSWER_ERROR,
            .code = CADRE_NOT_FOUND,
            .sentence = "no file here extends a message"};
    default:
        return (struct reply){.id = ANSWER_ERROR,
            .code = CADRE_INVALID_ARGUMENT,
            .sentence = "the request asks for nothing: set one field of message_request"};
    }
}

static void put_files(struct field_writer *writer, const struct reflection_index *index,
    const struct described_file *file)
{
    field_put_bytes(writer, 1, file->bytes, file->size);
    for (size_t i = index->file_count; i-- > 0;) {
        if ((file->imports >> i & 1) != 0) {
            field_put_bytes(writer, 1, index->files[i].bytes, index->files[i].size);
        }
    }
}

static void put_services(struct field_writer *writer, const struct reflection_index *index)
{
    for (size_t i = 0; i < index->service_count; i++) {
        const char *name = index->services[i];
        struct field_writer inner = {0};
        field_put_bytes(&inner, 1, name, strlen(name));
        field_put_head(writer, 1, inner.size);
        field_put_bytes(writer, 1, name, strlen(name));
    }
}

static void put_reply(struct field_writer *writer, const struct reflection_index *index,
    const struct question *question, const struct reply *reply)
{
    switch (reply->id) {
    case ANSWER_FILES:
        put_files(writer, index, reply->file);
        break;
    case ANSWER_SERVICES:
        put_services(writer, index);
        break;
    case ANSWER_EXTENSION_NUMBERS:
        field_put_bytes(writer, 1, question->text, question->text_size);
        break;
    default:
        field_put_number(writer, 1, (uint64_t)reply->code);
        field_put_bytes(writer, 2, reply->sentence, strlen(reply->sentence));
        break;
    }
}

static void put_response(struct field_writer *writer, const struct reflection_index *index,
    const struct question *question, const struct reply *reply)
{
    struct field_writer inner = {0};
    put_reply(&inner, index, question, reply);
    field_put_bytes(writer, ANSWER_HOST, question->host, question->host_size);
    field_put_bytes(writer, ANSWER_REQUEST, question->bytes, question->size);
    field_put_head(writer, reply->id, inner.size);
    put_reply(writer, index, question, reply);
}

/* ---- the stream ---- */

static void info_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    const struct rpc_reflection *reflection = user;
    struct question question;
    if (!read_question(data, length, &question)) {
        rpc_call_finish(
            call, CADRE_INVALID_ARGUMENT, "ServerReflectionRequest: not such a message");
        return;
    }
    const struct reply reply = reflection_answer(&reflection->index, &question);
    struct field_writer writer = {0};
    struct rpc_buffer buffer;
    put_response(&writer, &reflection->index, &question, &reply);
    rpc_buffer_alloc(&buffer, writer.size);
    writer = (struct field_writer){.at = buffer.data};
    put_response(&writer, &reflection->index, &question, &reply);
    cadre_status status = rpc_call_send_buffer(call, &buffer, NULL);
    rpc_buffer_free(&buffer);
    if (status == CADRE_RESOURCE_EXHAUSTED) {
        rpc_call_abort(call, status, "the answers are read too slowly");
    } else if (rpc_call_queued_bytes(call) > QUEUED_BYTES) {
        rpc_call_pause(call);
    }
}

static void info_drained(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_resume(call);
}

static void info_half_close(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void info_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_UNAVAILABLE, "the server is shutting down");
}

/* ---- for the program ---- */

cadre_status rpc_reflection_open(
    const void *set, size_t size, struct rpc_reflection **ret_reflection, struct cadre_error *error)
{
    struct rpc_reflection *reflection = gpr_zalloc(sizeof *reflection);
    cadre_status status = reflection_index_fill(&reflection->index, set, size, error);
    if (status != CADRE_OK) {
        rpc_reflection_close(reflection);
        reflection = NULL;
    }
    *ret_reflection = reflection;
    return status;
}

void rpc_reflection_close(struct rpc_reflection *reflection)
{
    if (reflection != NULL) {
        reflection_index_free(&reflection->index);
        gpr_free(reflection);
    }
}

void rpc_reflection_methods(struct rpc_reflection *reflection, struct rpc_method *ret_methods)
{
    static const struct rpc_server_ops info = {
        .on_message = info_message,
        .on_drained = info_drained,
        .on_half_close = info_half_close,
        .on_shutdown = info_shutdown,
    };
    static const char *const paths[RPC_REFLECTION_METHODS] = {
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
    for (size_t i = 0; i < RPC_REFLECTION_METHODS; i++) {
        ret_methods[i] = (struct rpc_method){.path = paths[i],
            .client_streams = true,
            .server_streams = true,
            .request_bytes_max = REQUEST_BYTES_MAX,
            .ops = &info,
            .user = reflection};
    }
}
