/* SPDX-License-Identifier: Apache-2.0
 * `cadre new`: a folder with a program, how it is built, and how it is run, from the templates that
 * are inside this command. */
#include "deploy/cadre/new.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "deploy/cadre/templates.h"

#define PLACEHOLDER    "@NAME@"
#define NEW_NAME_BYTES 64

/* A file of the new folder: of which template, and its name there. */
struct new_file {
    const char *from;
    const char *to;
};

#define C_FILES                                                                                    \
    {"c/CMakeLists.txt", "CMakeLists.txt"},                                                        \
    {                                                                                              \
        "c/Makefile", "Makefile"                                                                   \
    }
#define FILES_MAX 5

static const struct example {
    const char *name;
    const char *run; /* behind "cadre " and before "./NAME" */
    struct new_file files[FILES_MAX];
} examples[] = {
    {"mlp", "run -n 2",
        {C_FILES, {"c/gitignore", ".gitignore"}, {"mlp/README.md", "README.md"},
            {"mlp/program.c", PLACEHOLDER ".c"}}},
    {"plain", "run -n 2",
        {C_FILES, {"c/gitignore", ".gitignore"}, {"plain/README.md", "README.md"},
            {"plain/program.c", PLACEHOLDER ".c"}}},
    {"cuda", "run -n 2",
        {{"cuda/CMakeLists.txt", "CMakeLists.txt"}, {"cuda/Makefile", "Makefile"},
            {"c/gitignore", ".gitignore"}, {"cuda/README.md", "README.md"},
            {"cuda/program.cu", PLACEHOLDER ".cu"}}},
    {"ps", "run --strategy parameter_server --workers 2 --ps 2",
        {C_FILES, {"c/gitignore", ".gitignore"}, {"ps/README.md", "README.md"},
            {"ps/program.c", PLACEHOLDER ".c"}}},
};

struct new_options {
    unsigned example;
};

static const char *const example_names[] = {"mlp", "plain", "cuda", "ps", NULL};

static const struct option_row rows[] = {
    {OPTION_ROW(CHOICE, "example", struct new_options, example, "EXAMPLE", "mlp"), .letter = 'e',
        .choices = example_names,
        .help =
            "What the program is: mlp, a small network with data, steps and checkpoints; plain, "
            "its own loop with the calls that MPI has; cuda, kernels on GPUs; ps, a table on "
            "parameter servers."},
};

static const struct option_table new_table = {.program = "cadre new",
    .usage = "NAME",
    .summary = "Writes a folder NAME with a program to begin with: NAME.c, a CMakeLists.txt and a "
               "Makefile that build it with the installed libcadre, and a README.md that says how "
               "to run, submit and kill it. NAME may be a path; its last part is the program's "
               "name. The folder must not exist.",
    .notes = "  cadre new fit\n"
             "  cadre new fit --example cuda\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .positionals_max = 1};

/* ---- the name ---- */

/* It becomes a target of CMake and make, the program and a file: these are taken there. */
static bool new_name_is_taken(const char *name)
{
    static const char *const taken[] = {"all", "build", "cadre", "clean", "help", "install",
        "package", "package_source", "preinstall", "edit_cache", "rebuild_cache", "test",
        "uninstall", "CMakeFiles", "Makefile", "ALL_BUILD", "INSTALL", "PACKAGE", "RUN_TESTS",
        "ZERO_CHECK"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(name, taken[i]) == 0) {
            return true;
        }
    }
    return false;
}

static cadre_status new_check_name(const char *name, struct cadre_error *error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(name);
    if (length == 0 || length > NEW_NAME_BYTES || strspn(name, letters) == 0 ||
        strspn(name, rest) != length) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%.100s\" cannot be a program's name: write 1 to %d letters, digits, \"_\" and "
            "\"-\", "
            "beginning with a letter",
            name, NEW_NAME_BYTES);
    }
    if (new_name_is_taken(name)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%s\" has a meaning of its own to make, CMake or this folder: choose another name",
            name);
    }
    return CADRE_OK;
}

/* ---- the files ---- */

/* The text with each placeholder replaced; NULL: no memory. The caller's to free(). */
static char *new_fill(const char *text, size_t size, const char *name, size_t *ret_size)
{
    const size_t width = strlen(PLACEHOLDER);
    const char *end = text + size;
    size_t most = size / width * strlen(name) + size + 1;
    char *filled = malloc(most);
    size_t used = 0;
    while (filled != NULL && text < end) {
        if ((size_t)(end - text) >= width && memcmp(text, PLACEHOLDER, width) == 0) {
            memcpy(filled + used, name, strlen(name));
            used += strlen(name);
            text += width;
        } else {
            filled[used++] = *text++;
        }
    }
    if (filled != NULL) {
        filled[used] = '\0';
    }
    *ret_size = used;
    return filled;
}

static const struct template_file *new_template(const char *path)
{
    const struct template_file *file = template_files;
    while (strcmp(file->path, path) != 0) {
        file++; /* the table has all that `examples` names: a test makes each */
    }
    return file;
}

static cadre_status new_write_file(
    const char *folder, const char *name, const struct new_file *file, struct cadre_error *error)
{
    const struct template_file *source = new_template(file->from);
    size_t size = 0;
    size_t name_size = 0;
    CADRE_FREE_AT_EXIT char *path = NULL;
    CADRE_FREE_AT_EXIT char *own = new_fill(file->to, strlen(file->to), name, &name_size);
    CADRE_FREE_AT_EXIT char *text = new_fill(source->bytes, source->size, name, &size);
    if (own == NULL || text == NULL || asprintf(&path, "%s/%s", folder, own) < 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %s", file->to);
    }
    return file_write_atomic(path, text, size, 0644, error);
}

/* The whole folder, or nothing of it. */
static cadre_status new_write(
    const char *folder, const char *name, const struct example *example, struct cadre_error *error)
{
    if (mkdir(folder, 0755) != 0) {
        return errno == EEXIST
                   ? cadre_error_set(error, CADRE_ALREADY_EXISTS,
                         "%.300s is there already: give another name, or remove it", folder)
                   : cadre_error_errno(error, errno, "cannot make the folder %.300s", folder);
    }
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < FILES_MAX && status == CADRE_OK; i++) {
        status = new_write_file(folder, name, &example->files[i], error);
    }
    if (status != CADRE_OK) {
        (void)tree_remove(folder, NULL);
    }
    return status;
}

static void print_next(const char *folder, const char *name, const struct example *example)
{
    printf("%s has a program, %s.%s, and a README.md about it. Next:\n\n"
           "  cd %s\n"
           "  make\n"
           "  ./%s\n"
           "  cadre %s ./%s\n",
        folder, name, strcmp(example->name, "cuda") == 0 ? "cu" : "c", folder, name, example->run,
        name);
}

static int new_new(const struct invocation *invocation)
{
    const struct new_options *options = invocation->values;
    struct cadre_error error = {0};
    if (invocation_argument_count(invocation) == 0) {
        return invocation_usage(invocation, "which name? `cadre new fit`; --help shows more");
    }
    CADRE_FREE_AT_EXIT char *folder = strdup(invocation_argument(invocation, 0));
    if (folder == NULL) {
        return invocation_fail_with(invocation, CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--) {
        folder[end - 1] = '\0';
    }
    const char *slash = strrchr(folder, '/');
    const char *name = slash != NULL ? slash + 1 : folder;
    const struct example *example = &examples[options->example];
    cadre_status status = new_check_name(name, &error);
    if (status == CADRE_OK) {
        status = new_write(folder, name, example, &error);
    }
    if (status != CADRE_OK) {
        return invocation_fail_with(invocation, status, error.text);
    }
    print_next(folder, name, example);
    return CLI_DONE;
}

int verb_new(const struct cli *cli, int argc, char **argv)
{
    struct new_options options = {0};
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &new_table, &options, argc, argv, &code)) {
        code = invocation_end(&invocation, new_new(&invocation));
    }
    invocation_close(&invocation);
    return code;
}
