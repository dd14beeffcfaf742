/* Messages between the processes of a group by MPI, which is loaded when a process finds itself started by mpirun or srun. */
#include "base/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend_unstable.h"
#include "base/error.h"
#include "base/library.h"

/* What mpirun and srun tell the processes that they start together. */
static const struct {
    const char *size, *rank;
} launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                 {"PMI_SIZE", "PMI_RANK"},
                 {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static int number_in(const char *variable)
{
    const char *value = getenv(variable);
    return value ? atoi(value) : 0;
}

/* The launcher that started this process and others; LAUNCHERS: none did. */
static int launcher(void)
{
    int i = 0;
    while (i < LAUNCHERS && number_in(launchers[i].size) <= 1)
        i++;
    return i;
}

int at_processes(void)
{
    return launcher() < LAUNCHERS ? number_in(launchers[launcher()].size) : 1;
}

#ifdef AT_HAVE_MPI
#include <dlfcn.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>

/* ---- Open MPI, loaded ------------------------------------------------------------------------------------------ */

static struct {
    int (*Init_thread)(int *, char ***, int, int *);
    int (*Comm_rank)(MPI_Comm, int *);
    int (*Comm_size)(MPI_Comm, int *);
    int (*Isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*Irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*Test)(MPI_Request *, int *, MPI_Status *);
    int (*Finalize)(void);
    MPI_Comm world;
    MPI_Datatype byte;
} mpi;

static bool find(void *library, const char *name, void *place, at_error *error)
{
    void *found = dlsym(library, name);
    memcpy(place, &found, sizeof found); /* C has no conversion of an object to a function */
    return found || at_fail(error, AT_UNSUPPORTED, "the library of MPI has no '%s': Open MPI 4 is needed", name);
}

static bool load(at_error *error)
{
    static const char name[] = "libmpi.so.40";
    void *library = at_library_load(name, true, "a process that is one of several", "libopenmpi3", error);
    if (!library) /* its own parts look for its names, so they are global */
        return false;
    return find(library, "MPI_Init_thread", &mpi.Init_thread, error) &&
           find(library, "MPI_Comm_rank", &mpi.Comm_rank, error) &&
           find(library, "MPI_Comm_size", &mpi.Comm_size, error) && find(library, "MPI_Isend", &mpi.Isend, error) &&
           find(library, "MPI_Irecv", &mpi.Irecv, error) && find(library, "MPI_Test", &mpi.Test, error) &&
           find(library, "MPI_Finalize", &mpi.Finalize, error) &&
           find(library, "ompi_mpi_comm_world", &mpi.world, error) && find(library, "ompi_mpi_byte", &mpi.byte, error);
}

/* ---- The group --------------------------------------------------------------------------------------------------- */

struct at_group {
    int rank, size;
    double seconds;
    const volatile int *stop;
    bool broken;             /* a message did not arrive: no further one can */
    int lost;                /* the rank that it was for or from */
    struct message *message; /* [room] under way; the first `messages` are in use */
    int messages, room;
};

typedef struct message {
    MPI_Request request;
    int other; /* the rank it goes to or comes from */
} message;

static at_group *joined; /* MPI can be started once in a process */

/* A group that lost a rank cannot end together: then mpirun ends the others. */
static void leave(void)
{
    if (!joined->broken)
        mpi.Finalize();
}

bool at_group_join(at_group **group, double seconds, const volatile int *stop, at_error *error)
{
    *group = joined;
    if (error->code != AT_OK)
        return false;
    if (!joined && at_processes() > 1) {
        int level;
        if (!load(error))
            return false;
        at_group *g = calloc(1, sizeof *g);
        if (!g)
            return at_no_memory(error, "a group of processes");
        /* Both directions at once: with one connection between two machines Open MPI sends in one at a time. */
        setenv("OMPI_MCA_btl_tcp_links", "2", 0);
        if (mpi.Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS ||
            mpi.Comm_rank(mpi.world, &g->rank) != MPI_SUCCESS || mpi.Comm_size(mpi.world, &g->size) != MPI_SUCCESS) {
            free(g);
            return at_fail(error, AT_FAILED, "MPI did not start");
        }
        joined = *group = g;
        atexit(leave);
    }
    if (joined) {
        joined->seconds = seconds;
        joined->stop = stop;
    }
    return true;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 30 }; /* in one message: MPI counts in ints */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Begins to send or to receive a part, in messages of at most MOST_BYTES. */
static bool post(at_group *g, bool sends, at_part part, int other, int number, at_error *error)
{
    for (size_t at = 0; at < part.size; at += MOST_BYTES) {
        const size_t left = part.size - at;
        const int size = left < MOST_BYTES ? (int)left : MOST_BYTES;
        if (g->messages == g->room) {
            const int room = 2 * g->room + 16;
            message *more = realloc(g->message, (size_t)room * sizeof *more);
            if (!more)
                return at_no_memory(error, "the messages between %d processes", g->size);
            g->message = more;
            g->room = room;
        }
        char *bytes = (char *)part.bytes + at;
        message *m = &g->message[g->messages++];
        m->other = other;
        const int result = sends ? mpi.Isend(bytes, size, mpi.byte, other, number, mpi.world, &m->request)
                                 : mpi.Irecv(bytes, size, mpi.byte, other, number, mpi.world, &m->request);
        if (result != MPI_SUCCESS)
            return at_fail(error, AT_FAILED, "MPI cannot exchange messages with rank %d", other);
    }
    return true;
}

/* Removes the messages that have arrived. */
static bool settle(at_group *g, at_error *error)
{
    for (int i = 0; i < g->messages;) {
        int done = 0;
        if (mpi.Test(&g->message[i].request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return at_fail(error, AT_FAILED, "MPI lost a message from or to rank %d", g->message[i].other);
        if (done)
            g->message[i] = g->message[--g->messages];
        else
            i++;
    }
    return true;
}

/* Waits for all messages: busy at first, then it leaves the processor to others. `seconds` 0: without a limit. */
static bool await(at_group *g, double seconds, at_error *error)
{
    enum { BUSY = 1000, PATIENT = 20000 };
    const double began = now();
    double stopped = 0;
    for (int64_t turn = 0; settle(g, error) && g->messages > 0; turn++) {
        if (turn <= BUSY)
            continue;
        usleep(turn < PATIENT ? 20 : 500);
        if (g->stop && *g->stop && stopped == 0)
            stopped = now();
        if (stopped > 0 && now() - stopped > 1)
            return at_fail(error, AT_FAILED, "interrupted while waiting for rank %d", g->message[0].other);
        if (seconds > 0 && now() - began > seconds)
            return at_fail(error, AT_FAILED, "rank %d did not answer for %g seconds", g->message[0].other, seconds);
    }
    return error->code == AT_OK;
}

static bool is_whole(const at_group *g, at_error *error)
{
    return error->code == AT_OK && (!g->broken || at_fail(error, AT_FAILED, "a rank of this group was lost before"));
}

/* After an attempt to exchange messages: remembers whether it was the last that can be made. */
static bool keep(at_group *g, bool good)
{
    if (!good && !g->broken) {
        g->broken = true;
        g->lost = g->messages > 0 ? g->message[0].other : 0;
    }
    return good;
}

bool at_group_begin(at_group *group, bool sends, int other, int number, at_part part, at_error *error)
{
    return is_whole(group, error) && keep(group, post(group, sends, part, other, number, error));
}

bool at_group_go_on(at_group *group, at_error *error)
{
    return is_whole(group, error) && keep(group, settle(group, error));
}

bool at_group_await(at_group *group, at_error *error)
{
    return is_whole(group, error) && keep(group, await(group, group->seconds, error));
}

static bool exchange(at_group *g, const at_part *out, const at_part *in, double seconds, at_error *error)
{
    if (!is_whole(g, error))
        return false;
    bool good = true;
    for (int i = 1; good && i < g->size; i++)
        good = post(g, false, in[(g->rank + i) % g->size], (g->rank + i) % g->size, 0, error);
    for (int i = 1; good && i < g->size; i++)
        good = post(g, true, out[(g->rank + i) % g->size], (g->rank + i) % g->size, 0, error);
    return keep(g, good && await(g, seconds, error));
}
#else
struct at_group {
    int rank, size;
    double seconds;
    bool broken;
    int lost;
};
static at_group *const joined = NULL;

bool at_group_join(at_group **group, double seconds, const volatile int *stop, at_error *error)
{
    (void)seconds, (void)stop;
    *group = NULL;
    if (error->code == AT_OK && at_processes() > 1)
        at_fail(error, AT_UNSUPPORTED,
                "this process is one of %d, and this attend was built without MPI (Debian package libopenmpi-dev)",
                at_processes());
    return error->code == AT_OK;
}

static bool exchange(at_group *g, const at_part *out, const at_part *in, double seconds, at_error *error)
{
    (void)out, (void)in, (void)seconds;
    return at_fail(error, AT_UNSUPPORTED, "a group of %d ranks needs MPI", g->size);
}

bool at_group_begin(at_group *group, bool sends, int other, int number, at_part part, at_error *error)
{
    (void)sends, (void)other, (void)number;
    return exchange(group, &part, &part, 0, error);
}

bool at_group_go_on(at_group *group, at_error *error)
{
    return exchange(group, NULL, NULL, 0, error);
}

bool at_group_await(at_group *group, at_error *error)
{
    return exchange(group, NULL, NULL, 0, error);
}
#endif

int at_group_rank(const at_group *group)
{
    return group ? group->rank : 0;
}

int at_group_size(const at_group *group)
{
    return group ? group->size : 1;
}

bool at_group_is_lost(const at_group *group)
{
    return group && group->broken;
}

int at_process_rank(void)
{
    return joined || launcher() == LAUNCHERS ? at_group_rank(joined) : number_in(launchers[launcher()].rank);
}

bool at_process_speaks(void)
{
    const bool lost_first = joined && joined->broken && joined->lost == 0;
    return at_process_rank() == (lost_first && joined->rank > 0 ? 1 : 0);
}

bool at_processes_agree(at_error *error)
{
    enum { PATIENCE = 600 };
    at_error why = {0};
    at_group *group = joined;
    if (!joined && at_processes() > 1 && at_group_join(&group, PATIENCE, NULL, &why))
        at_group_agree(group, error);
    return error->code == AT_OK;
}

bool at_group_exchange(at_group *group, const at_part *out, const at_part *in, at_error *error)
{
    return !group ? error->code == AT_OK : exchange(group, out, in, group->seconds, error);
}

/* The parts of both directions for every rank; release with free. */
static at_part *make_parts(const at_group *group, at_error *error)
{
    at_part *parts = calloc(2 * (size_t)group->size, sizeof *parts);
    if (!parts)
        at_no_memory(error, "the messages between %d processes", group->size);
    return parts;
}

bool at_group_gather(at_group *group, void *block, const size_t *begin, at_error *error)
{
    if (!group)
        return error->code == AT_OK;
    at_part *out = make_parts(group, error), *in = out ? out + group->size : NULL;
    for (int r = 0; out && r < group->size; r++) {
        out[r] = (at_part){(char *)block + begin[group->rank], begin[group->rank + 1] - begin[group->rank]};
        in[r] = (at_part){(char *)block + begin[r], begin[r + 1] - begin[r]};
    }
    const bool done = out && at_group_exchange(group, out, in, error);
    free(out);
    return done;
}

bool at_group_tell(at_group *group, void *bytes, size_t size, at_error *error)
{
    if (!group)
        return error->code == AT_OK;
    at_part *out = make_parts(group, error), *in = out ? out + group->size : NULL;
    for (int r = 0; out && r < group->size; r++) {
        if (group->rank == 0)
            out[r] = (at_part){bytes, size};
        else if (r == 0)
            in[r] = (at_part){bytes, size};
    }
    const bool done = out && exchange(group, out, in, group->rank == 0 ? group->seconds : 0, error);
    free(out);
    return done;
}

bool at_group_same_build(at_group *group, const char *kernels, at_error *error)
{
    struct {
        char version[64], kernels[64];
    } first = {0};
    snprintf(first.version, sizeof first.version, "%s", at_version());
    snprintf(first.kernels, sizeof first.kernels, "%s", kernels);
    if (!at_group_tell(group, &first, sizeof first, error))
        return false;
    if (strcmp(first.version, at_version()) != 0)
        return at_fail(error, AT_USAGE, "this is attend %s, and rank 0 runs %s; all need the same build", at_version(),
                       first.version);
    return strcmp(first.kernels, kernels) == 0 ||
           at_fail(error, AT_USAGE,
                   "it uses the kernels '%s', and rank 0 '%s'; ATTEND_ISA=%s selects them where the processor has them",
                   kernels, first.kernels, first.kernels);
}

bool at_group_agree(at_group *group, at_error *error)
{
    if (!group)
        return error->code == AT_OK;
    at_error failed = {0};
    at_error *all = calloc((size_t)group->size, sizeof *all);
    size_t *begin = calloc((size_t)group->size + 1, sizeof *begin);
    if (!all || !begin)
        at_no_memory(&failed, "the messages between %d processes", group->size);
    for (int r = 0; failed.code == AT_OK && r <= group->size; r++)
        begin[r] = (size_t)r * sizeof *all;
    if (failed.code == AT_OK) {
        all[group->rank] = *error;
        at_group_gather(group, all, begin, &failed);
    }
    if (failed.code != AT_OK) {
        if (error->code == AT_OK)
            *error = failed;
    } else {
        int first = 0;
        while (first < group->size && all[first].code == AT_OK)
            first++;
        if (first < group->size) {
            *error = (at_error){0};
            if (first > 0)
                at_fail(error, (at_code)all[first].code, "rank %d: %s", first, all[first].text);
            else
                *error = all[0];
        }
    }
    free(all);
    free(begin);
    return error->code == AT_OK;
}
