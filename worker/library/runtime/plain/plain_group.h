/* SPDX-License-Identifier: Apache-2.0
 * Tasks of a plain program that make calls together: all of them, or those of a group that the
 * program made (cadre/plain_group.h). Each has a mesh, and a mesh for each two of its tasks that
 * have exchanged a message. */
#ifndef CADRE_RUNTIME_PLAIN_GROUP_H
#define CADRE_RUNTIME_PLAIN_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/plain_group.h"
#include "worker/library/mesh/mesh.h"

struct plain;

/* The text of the last call, kept because a loop makes the same calls again. */
struct plain_note {
    uint64_t key;
    const char *function; /* NULL: there is none yet */
    char text[MESH_NOTE_BYTES];
};

/* The connection to one other task of a group, for messages: a mesh of the two. */
struct plain_pair {
    struct mesh *mesh; /* NULL: not posted yet */
    bool formed;
    struct plain_note notes[2]; /* of what is received, and of what is sent */
};

struct cadre_plain_group {
    struct plain *plain;
    struct mesh *mesh;
    uint32_t rank; /* of this task */
    uint32_t size;
    const struct mesh_member *members; /* by rank; of all tasks: the roster's, else owned */
    uint32_t *numbers;                 /* by rank: ranks in the job; NULL: all tasks; owned */
    uint8_t key[MESH_KEY_BYTES];
    uint64_t splits;          /* that were made of it */
    struct plain_pair *pairs; /* by rank; NULL: no message yet; owned */
    struct plain_note note;
    struct cadre_plain_group *next; /* of the program's groups */
};

/* How errors name the task of a rank. */
static inline uint32_t plain_group_number(const struct cadre_plain_group *group, uint32_t rank)
{
    return group->numbers != NULL ? group->numbers[rank] : rank;
}

/* For errors about a rank that does not exist. */
static inline const char *plain_group_ranks(const struct cadre_plain_group *group)
{
    return group->numbers != NULL ? "group has the ranks" : "job has the tasks";
}

/* Begins a call of `function` among all tasks, or among those of `handle`, which the program gave;
 * errors are those of plain_enter, and INVALID_ARGUMENT: no such group is open. */
cadre_status plain_enter_all(
    const char *function, struct cadre_plain_group **ret_group, struct cadre_error *error);
cadre_status plain_enter_group(const char *function, const cadre_plain_group *handle,
    struct cadre_plain_group **ret_group, struct cadre_error *error);

/* The mesh of all tasks is formed. */
void plain_group_take_all(struct plain *plain, struct mesh *mesh);

/* Waits for all tasks of the group; they must be at a call of the same `key`. `text` names the call
 * in the errors of those that are at another one. */
cadre_status plain_group_barrier(
    struct cadre_plain_group *group, uint64_t key, const char *text, struct cadre_error *error);

/* A wait of this task was too long: says in which call, because the mesh names only its own.
 * Returns the status; others are left as they are. `call`: its note's text. */
cadre_status plain_name_wait(const char *call, cadre_status status, struct cadre_error *error);

/* Meets the others of `mesh`, who are, or will be, in a call that this task cannot make, with a key
 * that equals no other: they do not wait, and get an error that names the call. */
cadre_status plain_refuse(
    const struct plain *plain, struct mesh *mesh, const char *function, struct cadre_error *error);
/* The same in the mesh of a group, when nothing is left to do about its error. */
void plain_group_refuse(struct cadre_plain_group *group, const char *function);

/* Closes all groups, and what belongs to them, before the task is closed. */
void plain_groups_close(struct plain *plain);

/* --- plain_mesh.c: meshes of some tasks --- */

/* Which tasks, and which of the meshes that are made of `key`. */
struct plain_mesh_of {
    const struct mesh_member *members;
    const uint32_t *numbers;
    uint32_t count;
    uint32_t rank;
    const uint8_t *key;
    uint64_t which[3];
};

/* Begins to form one, from now on among those that the job's aborts reach; ret_key: its own. The
 * caller closes it, also when it does not form. */
cadre_status plain_mesh_post(struct plain *plain, const struct plain_mesh_of *of,
    uint8_t ret_key[MESH_KEY_BYTES], struct mesh **ret_mesh, struct cadre_error *error);
/* Accepts NULL. */
void plain_mesh_close(struct plain *plain, struct mesh *mesh);

/* --- plain_pair.c --- */

/* Begins to connect this task with `partners`, other ranks of the group, where it has not yet.
 * After an error the partners wait for this task. */
cadre_status plain_pairs_post(struct cadre_plain_group *group, const uint32_t *partners,
    uint32_t count, struct cadre_error *error);
/* Waits until the partner wants the connection too. `alone`: no other thread forms one meanwhile.
 */
cadre_status plain_pair_form(struct plain_pair *pair, bool alone, struct cadre_error *error);
void plain_pairs_close(struct cadre_plain_group *group);

#endif
