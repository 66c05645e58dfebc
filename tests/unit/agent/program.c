/* SPDX-License-Identifier: Apache-2.0
 * A task for the agent's tests: agent_test_program VERB [NUMBER]. What it prints is what the test
 * looks for. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void wait_for_ever(void)
{
    for (;;) {
        pause();
    }
}

/* Sends the test a process id, after the process has started to do its part. */
static void tell(const char *what, pid_t pid)
{
    printf("%s %d\n", what, (int)pid);
    fflush(stdout);
}

static void close_streams(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) {
        dup2(null, fd);
    }
    close(null);
}

/* A child that does `be`; returns once it does. */
static pid_t leave(void (*be)(int ready))
{
    int fds[2];
    char byte = 0;
    if (pipe(fds) != 0) {
        exit(90);
    }
    pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        be(fds[1]);
        wait_for_ever();
    }
    close(fds[1]);
    if (read(fds[0], &byte, 1) != 1) {
        exit(91);
    }
    close(fds[0]);
    return child;
}

static void ready_to_stay(int ready)
{
    if (write(ready, "r", 1) != 1) {
        exit(92);
    }
    close(ready);
}

static void stay(int ready)
{
    close_streams();
    ready_to_stay(ready);
}

static void stay_in_session(int ready)
{
    setsid();
    stay(ready);
}

static void stay_with_output(int ready)
{
    setsid();
    ready_to_stay(ready);
}

/* A process without the task's variable in its environment, whose parent has exited. */
static void stay_unknown(int ready)
{
    setsid();
    pid_t child = fork();
    if (child == 0) {
        static char *const argv[] = {"unknown", "unknown", NULL};
        static char *const nothing[] = {NULL};
        char path[4096];
        ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
        path[size > 0 ? size : 0] = '\0';
        close_streams();
        dup2(ready, 3);
        execve(path, argv, nothing);
        _exit(93);
    }
    tell("stray", child);
    _exit(0);
}

/* In the group, with a child of its own in a session of its own. */
static void stay_with_child(int ready)
{
    tell("stray", leave(stay_in_session));
    stay(ready);
}

static void die_at_once(int ready)
{
    ready_to_stay(ready);
    _exit(0);
}

/* An orphan that ends by itself while the task goes on. */
static void orphan_that_ends(int ready)
{
    pid_t child = leave(die_at_once);
    tell("stray", child);
    ready_to_stay(ready);
    _exit(0);
}

/* An orphan in a session of its own, alive as long as the task. */
static void orphan_that_stays(int ready)
{
    tell("stray", leave(stay_in_session));
    ready_to_stay(ready);
    _exit(0);
}

static int leave_strays(const char *kind)
{
    if (strcmp(kind, "group") == 0) {
        tell("stray", leave(stay));
    } else if (strcmp(kind, "session") == 0) {
        tell("stray", leave(stay_in_session));
    } else if (strcmp(kind, "output") == 0) {
        tell("stray", leave(stay_with_output));
    } else if (strcmp(kind, "chain") == 0) {
        tell("stray", leave(stay_with_child));
    } else if (strcmp(kind, "unknown") == 0) {
        leave(stay_unknown);
    } else if (strcmp(kind, "ended") == 0) {
        leave(orphan_that_ends);
        wait_for_ever();
    } else if (strcmp(kind, "kept") == 0) {
        leave(orphan_that_stays);
        wait_for_ever();
    } else {
        return 94;
    }
    return 0;
}

static int print_much(size_t bytes)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    while (bytes > 0) {
        size_t size = bytes < sizeof block ? bytes : sizeof block;
        ssize_t written = write(STDOUT_FILENO, block, size);
        if (written <= 0) {
            return 95;
        }
        bytes -= (size_t)written;
    }
    return 0;
}

static int ignore_term(void)
{
    signal(SIGTERM, SIG_IGN);
    tell("ready", getpid());
    wait_for_ever();
    return 0;
}

static void on_term(int number)
{
    (void)number;
    _exit(7);
}

static int end_on_term(void)
{
    signal(SIGTERM, on_term);
    tell("ready", getpid());
    wait_for_ever();
    return 0;
}

/* Reports SIGTERM, and ends once it reads a byte of the file. */
static const char *released_by;

static void on_term_slowly(int number)
{
    char byte;
    (void)number;
    (void)!write(STDOUT_FILENO, "term\n", 5);
    int fd = open(released_by, O_RDONLY);
    _exit(fd >= 0 && read(fd, &byte, 1) == 1 ? 9 : 98);
}

static int end_slowly(const char *path)
{
    released_by = path;
    signal(SIGTERM, on_term_slowly);
    tell("ready", getpid());
    wait_for_ever();
    return 0;
}

static int die_of(int number)
{
    struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    raise(number);
    return 96;
}

static int print_environment(char **environment)
{
    for (char **item = environment; *item != NULL; item++) {
        puts(*item);
    }
    return 0;
}

static int print_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && (int)strtol(entry->d_name, NULL, 10) != dirfd(folder)) {
            printf("fd %s\n", entry->d_name);
        }
    }
    closedir(folder);
    return 0;
}

static int print_situation(void)
{
    char folder[4096];
    struct sigaction action;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    sigaction(SIGPIPE, NULL, &action);
    FILE *again = fopen("/dev/stdout", "w");
    printf("uid %d %d gid %d %d groups %d\n", (int)getuid(), (int)geteuid(), (int)getgid(),
        (int)getegid(), getgroups(0, NULL));
    printf("leads %d\n", getsid(0) == getpid());
    printf("folder %s\n", getcwd(folder, sizeof folder));
    printf("pipe %s blocked %d\n", action.sa_handler == SIG_DFL ? "default" : "changed",
        sigismember(&blocked, SIGTERM));
    printf("stdin %d\n", (int)read(STDIN_FILENO, folder, 1));
    printf("stdout %s\n", again != NULL ? "opens" : strerror(errno));
    return 0;
}

static int lines_on_stderr(void)
{
    fprintf(stderr, "first\nsecond\r\n 10%%\r 20%%\rthe last words\n\n");
    printf("not on stderr\n");
    return 3;
}

static int close_output_early(void)
{
    printf("before\n");
    fflush(stdout);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    return 5;
}

/* What a server finds in its memory; then it writes its own, and is killed. */
static int use_memory(const char *text)
{
    char had[64] = "";
    const char *number = getenv("CADRE_SERVER_MEMORY");
    int fd = number != NULL ? (int)strtol(number, NULL, 10) : -1;
    if (fd < 0 || pread(fd, had, sizeof had - 1, 0) < 0) {
        return 96;
    }
    printf("had \"%s\"\n", had);
    fflush(stdout);
    if (pwrite(fd, text, strlen(text), 0) < 0) {
        return 95;
    }
    return die_of(SIGKILL);
}

int main(int argc, char **argv, char **environment)
{
    const char *verb = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (strcmp(argv[0], "unknown") == 0) {
        (void)!write(3, "r", 1);
        close(3);
        wait_for_ever();
    }
    if (strcmp(verb, "exit") == 0) {
        return number;
    } else if (strcmp(verb, "signal") == 0) {
        return die_of(number);
    } else if (strcmp(verb, "print") == 0) {
        return print_much((size_t)number);
    } else if (strcmp(verb, "stderr") == 0) {
        return lines_on_stderr();
    } else if (strcmp(verb, "close") == 0) {
        return close_output_early();
    } else if (strcmp(verb, "ignore-term") == 0) {
        return ignore_term();
    } else if (strcmp(verb, "end-on-term") == 0) {
        return end_on_term();
    } else if (strcmp(verb, "end-slowly") == 0 && argc > 2) {
        return end_slowly(argv[2]);
    } else if (strcmp(verb, "leave") == 0 && argc > 2) {
        return leave_strays(argv[2]);
    } else if (strcmp(verb, "memory") == 0 && argc > 2) {
        return use_memory(argv[2]);
    } else if (strcmp(verb, "environment") == 0) {
        return print_environment(environment);
    } else if (strcmp(verb, "descriptors") == 0) {
        return print_descriptors();
    } else if (strcmp(verb, "situation") == 0) {
        return print_situation();
    }
    return 97;
}
