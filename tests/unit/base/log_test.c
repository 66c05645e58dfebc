/* SPDX-License-Identifier: Apache-2.0
 * Log lines: one event, one line, whatever the values hold. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/lib/test.h"

static int sink;
static char lines[256 * 1024];

static void open_log(unsigned level, unsigned format)
{
    assert_int_equal(ftruncate(sink, 0), 0);
    log_open(&(struct log_options){.level = level, .format = format, .fd = sink});
}

static const char *written(void)
{
    ssize_t size = pread(sink, lines, sizeof lines - 1, 0);
    assert_true(size >= 0);
    lines[size] = '\0';
    return lines;
}

/* True when exactly one line was written. */
static bool one_line(void)
{
    size_t length = strlen(written());
    return length > 0 && strchr(lines, '\n') == lines + length - 1;
}

static void text_line(void **state)
{
    (void)state;
    open_log(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_WARNING, "agent", "task ended", LOG_U64("job", 3), LOG_I64("code", -1),
        LOG_STR("name", "digits"), LOG_BOOL("kept", true), LOG_STR("none", NULL), LOG_END);
    assert_non_null(
        strstr(written(), " agent: task ended job=3 code=-1 name=digits kept=true none=-\n"));
    assert_int_equal(strncmp(lines, "warning 2", 9), 0);
    assert_null(strchr(lines, '\033'));
}

static void values_cannot_break_the_line(void **state)
{
    (void)state;
    open_log(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_INFO, "a", "m", LOG_STR("v", "x\ny \"z\" \033[31m\x80 \xc2\x9b \xc3\xa9"),
        LOG_STR("e", ""), LOG_END);
    assert_non_null(
        strstr(written(), " v=\"x\\ny \\\"z\\\" \\x1b[31m\\x80 \\xc2\\x9b \xc3\xa9\" e=\"\"\n"));
    assert_true(one_line());
}

static void json_line(void **state)
{
    (void)state;
    open_log(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    log_event(LOG_LEVEL_DEBUG, "a", "say \"it\"", LOG_STR("v", "1\n\x01\xff"),
        LOG_U64("n", UINT64_MAX), LOG_STR("none", NULL), LOG_END);
    assert_int_equal(strncmp(written(), "{\"time\":\"2", 10), 0);
    assert_non_null(
        strstr(lines, "Z\",\"level\":\"debug\",\"component\":\"a\",\"message\":\"say \\\"it\\\"\","
                      "\"v\":\"1\\n\\u0001\\ufffd\",\"n\":18446744073709551615,\"none\":null}\n"));
}

static void level_is_respected(void **state)
{
    (void)state;
    open_log(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_WARNING, "a", "quiet", LOG_END);
    assert_string_equal(written(), "");
    assert_false(log_enabled(LOG_LEVEL_WARNING));
    assert_true(log_enabled(LOG_LEVEL_ERROR));
}

static void long_values_are_cut(void **state)
{
    (void)state;
    static char large[20000];
    memset(large, '\n', sizeof large - 1);
    for (unsigned format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
        open_log(LOG_LEVEL_INFO, format);
        log_event(LOG_LEVEL_INFO, "a", large, LOG_STR("a", large), LOG_STR("b", large),
            LOG_STR("c", large), LOG_STR("d", large), LOG_STR("e", large), LOG_END);
        assert_true(one_line());
        assert_non_null(strstr(lines, "..."));
        assert_true(strlen(lines) <= 8192);
        if (format == LOG_FORMAT_JSON) {
            assert_string_equal(lines + strlen(lines) - 3, "\"}\n");
        }
    }
}

static void journal_gets_priorities(void **state)
{
    (void)state;
    setenv("JOURNAL_STREAM", "8:1", 1);
    open_log(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_ERROR, "store", "disk full", LOG_END);
    assert_string_equal(written(), "<3>store: disk full\n");
    unsetenv("JOURNAL_STREAM");
}

static void terminal_gets_colours(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        skip();
    }
    int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    for (int coloured = 1; coloured >= 0; coloured--) {
        char text[256];
        setenv("NO_COLOR", coloured ? "" : "1", 1);
        log_open(&(struct log_options){.level = LOG_LEVEL_INFO, .fd = slave});
        log_event(LOG_LEVEL_ERROR, "a", "b", LOG_END);
        ssize_t size = read(terminal, text, sizeof text - 1);
        assert_true(size > 0);
        text[size] = '\0';
        assert_int_equal(strstr(text, "\033[31m") != NULL, coloured);
    }
    unsetenv("NO_COLOR");
    close(slave);
    close(terminal);
}

static void *write_many(void *name)
{
    for (unsigned i = 0; i < 200; i++) {
        log_event(LOG_LEVEL_INFO, name, "event", LOG_U64("i", i), LOG_END);
    }
    return NULL;
}

static void threads_do_not_mix_lines(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    int file = open(test_path(path, test_temp_dir(), "log"), O_RDWR | O_CREAT | O_APPEND, 0600);
    assert_true(file >= 0);
    log_open(&(struct log_options){.level = LOG_LEVEL_INFO, .fd = file});
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, "abcd"), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ssize_t size = pread(file, lines, sizeof lines - 1, 0);
    lines[size] = '\0';
    unsigned count = 0;
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_non_null(strstr(line, "Z abcd: event i="));
        count++;
    }
    assert_int_equal(count, 800);
    close(file);
}

static char sent[16][256];
static int sent_count;
static int send_result;

static int take_fields(const struct iovec *fields, int count)
{
    sent_count = count;
    for (int i = 0; i < count && i < 16; i++) {
        snprintf(sent[i], sizeof sent[i], "%.*s", (int)fields[i].iov_len,
            (const char *)fields[i].iov_base);
    }
    return send_result;
}

static bool was_sent(const char *field)
{
    for (int i = 0; i < sent_count; i++) {
        if (strcmp(sent[i], field) == 0) {
            return true;
        }
    }
    return false;
}

/* Standard error is the journal's: `journalctl CADRE_JOB=3` finds the event. */
static void the_journal_gets_fields(void **state)
{
    (void)state;
    struct stat status;
    char stream[64];
    assert_int_equal(fstat(sink, &status), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
        (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_set_journal(take_fields);
    send_result = 0;
    open_log(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_WARNING, "agents", "task ended", LOG_U64("job", 3),
        LOG_STR("exit-text", "two\nlines"), LOG_STR("none", NULL));
    assert_string_equal(written(), "");
    assert_true(was_sent("MESSAGE=agents: task ended job=3 exit-text=\"two\\nlines\" none=-"));
    assert_true(was_sent("PRIORITY=4"));
    assert_true(was_sent("SYSLOG_IDENTIFIER=base_log_test"));
    assert_true(was_sent("CADRE_COMPONENT=agents"));
    assert_true(was_sent("CADRE_JOB=3"));
    assert_true(was_sent("CADRE_EXIT_TEXT=two\nlines"));
    assert_true(was_sent("CADRE_NONE=-"));

    send_result = -1; /* no journal answers: the line is written */
    log_event(LOG_LEVEL_INFO, "a", "m", LOG_END);
    assert_string_equal(written(), "<6>a: m\n");

    setenv("JOURNAL_STREAM", "1:1", 1); /* another stream's: inherited */
    sent_count = 0;
    open_log(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_INFO, "a", "m", LOG_END);
    assert_int_equal(sent_count, 0);
    unsetenv("JOURNAL_STREAM");
    log_set_journal(NULL);
}

int main(void)
{
    unsetenv("JOURNAL_STREAM");
    sink = memfd_create("log", MFD_CLOEXEC);
    int flags = fcntl(sink, F_GETFL);
    if (sink < 0 || fcntl(sink, F_SETFL, flags | O_APPEND) != 0) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_line),
        cmocka_unit_test(values_cannot_break_the_line),
        cmocka_unit_test(json_line),
        cmocka_unit_test(level_is_respected),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(journal_gets_priorities),
        cmocka_unit_test(the_journal_gets_fields),
        cmocka_unit_test(terminal_gets_colours),
        cmocka_unit_test(threads_do_not_mix_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
