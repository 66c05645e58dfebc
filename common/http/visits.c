/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/visits.h"

#include <stdlib.h>

#include <sys/socket.h>

/* libmicrohttpd sees the end of the stream in its next run, and closes the connection. */
static void visit_cut(struct visit *visit)
{
    visit->cut = true;
    (void)shutdown(visit->fd, SHUT_RDWR);
}

/* Cuts the one that waits longest, of those that are being sent something when `sending`; false:
 * there is none. Its answer does not count any more. */
static bool cut_oldest(struct visits *visits, bool sending)
{
    struct visit *oldest = NULL;
    for (struct visit *visit = visits->first; visit != NULL; visit = visit->next) {
        if (!visit->cut && (visit->bytes > 0 || !sending) &&
            (oldest == NULL || visit->since_us <= oldest->since_us)) {
            oldest = visit;
        }
    }
    if (oldest != NULL) {
        visit_cut(oldest);
        visits->bytes -= oldest->bytes;
        oldest->bytes = 0;
    }
    return oldest != NULL;
}

struct visit *visits_add(struct visits *visits, int fd, uint64_t now_us, size_t max)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (visit == NULL) {
        return NULL;
    }
    if (visits->count >= max) {
        (void)cut_oldest(visits, false);
    }
    *visit = (struct visit){.next = visits->first, .fd = fd, .since_us = now_us};
    if (visit->next != NULL) {
        visit->next->before = visit;
    }
    visits->first = visit;
    visits->count++;
    return visit;
}

void visits_remove(struct visits *visits, struct visit *visit)
{
    if (visit == NULL) {
        return;
    }
    if (visit->before != NULL) {
        visit->before->next = visit->next;
    } else {
        visits->first = visit->next;
    }
    if (visit->next != NULL) {
        visit->next->before = visit->before;
    }
    visits->count--;
    visits->bytes -= visit->bytes;
    free(visit);
}

void visit_touch(struct visits *visits, struct visit *visit, uint64_t now_us)
{
    if (visit != NULL) {
        visits->bytes -= visit->bytes;
        visit->bytes = 0;
        visit->since_us = now_us;
    }
}

void visit_sends(struct visits *visits, struct visit *visit, size_t bytes, size_t max)
{
    while (visits->bytes + bytes > max && cut_oldest(visits, true)) {
    }
    if (visit != NULL) {
        visits->bytes += bytes - visit->bytes;
        visit->bytes = bytes;
    }
}

void visits_cut(struct visits *visits, uint64_t now_us, uint64_t longest_us)
{
    for (struct visit *visit = visits->first; visit != NULL; visit = visit->next) {
        if (!visit->cut && now_us - visit->since_us > longest_us) {
            visit_cut(visit);
        }
    }
}
