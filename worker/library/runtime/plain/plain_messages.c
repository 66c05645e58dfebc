/* SPDX-License-Identifier: Apache-2.0
 * The public functions for messages between two tasks: of all, and of a group. */
#include "worker/library/runtime/plain/plain_message.h"

static struct plain_message message_to(const void *data, size_t count, uint32_t to)
{
    return (struct plain_message){.due = true,
        .partner = to,
        .from = data,
        .count = count,
        .name = "data",
        .partner_name = "to"};
}

static struct plain_message message_from(void *data, size_t count, uint32_t from)
{
    return (struct plain_message){.due = true,
        .partner = from,
        .into = data,
        .count = count,
        .name = "data",
        .partner_name = "from"};
}

static struct plain_exchange both_ways(
    struct plain_message sent, struct plain_message received, cadre_dtype dtype)
{
    sent.name = "sent";
    received.name = "received";
    return (struct plain_exchange){.dtype = dtype, .sent = sent, .received = received};
}

static cadre_status exchange_of_all(const char *function, struct plain_exchange exchange)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *all = NULL;
    exchange.function = function;
    cadre_status entered = plain_enter_all(function, &all, &error);
    return plain_exchange_make(entered, all, &exchange, &error);
}

static cadre_status exchange_of_group(
    const char *function, const cadre_plain_group *handle, struct plain_exchange exchange)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *group = NULL;
    exchange.function = function;
    cadre_status entered = plain_enter_group(function, handle, &group, &error);
    return plain_exchange_make(entered, group, &exchange, &error);
}

/* --- among all tasks --- */

cadre_status cadre_plain_send(const void *data, size_t count, cadre_dtype dtype, uint32_t to)
{
    return exchange_of_all(
        __func__, (struct plain_exchange){.dtype = dtype, .sent = message_to(data, count, to)});
}

cadre_status cadre_plain_recv(void *data, size_t count, cadre_dtype dtype, uint32_t from)
{
    return exchange_of_all(__func__,
        (struct plain_exchange){.dtype = dtype, .received = message_from(data, count, from)});
}

cadre_status cadre_plain_send_recv(const void *sent, size_t sent_count, uint32_t to, void *received,
    size_t received_count, uint32_t from, cadre_dtype dtype)
{
    return exchange_of_all(__func__, both_ways(message_to(sent, sent_count, to),
                                         message_from(received, received_count, from), dtype));
}

/* --- among the tasks of a group --- */

cadre_status cadre_plain_group_send(
    cadre_plain_group *group, const void *data, size_t count, cadre_dtype dtype, uint32_t to)
{
    return exchange_of_group(__func__, group,
        (struct plain_exchange){.dtype = dtype, .sent = message_to(data, count, to)});
}

cadre_status cadre_plain_group_recv(
    cadre_plain_group *group, void *data, size_t count, cadre_dtype dtype, uint32_t from)
{
    return exchange_of_group(__func__, group,
        (struct plain_exchange){.dtype = dtype, .received = message_from(data, count, from)});
}

cadre_status cadre_plain_group_send_recv(cadre_plain_group *group, const void *sent,
    size_t sent_count, uint32_t to, void *received, size_t received_count, uint32_t from,
    cadre_dtype dtype)
{
    return exchange_of_group(__func__, group,
        both_ways(
            message_to(sent, sent_count, to), message_from(received, received_count, from), dtype));
}
