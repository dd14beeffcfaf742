/* replay LOG: prints the states that a file system may show after the power was cut while record.c recorded, each once;
 * those that differ in the bytes of temporary files only are one.
 * replay LOG CUT NAMES DATA FOLDER: makes one of them, whose line begins with these words, in a new folder.
 *
 * CUT is how many entries came before the cut, or `all`. Of the names that they changed, those in a folder that was synced later
 * are as they were then; of the others only the first NAMES are changed, as in a journal, or, with NAMES = -I, all but
 * the I-th, which POSIX allows. Of the bytes, those of a file that was synced later are on disk; for the others DATA says:
 *     present  they are, too
 *     lost     none of these writes and truncations happened
 *     zero     the sizes are the new ones, and the bytes are zeros
 *     short    files were truncated, but nothing was written
 *     torn     the last write wrote only half of its bytes, those before it all */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "power.h"

static const char *const data_names[] = {"present", "lost", "zero", "short", "torn"};
enum { PRESENT, LOST, ZERO, SHORT, TORN, DATA_KINDS };

typedef struct step {
    entry e;
    char *path, *other;
    unsigned char *bytes;
    int id;     /* the file, with its own number for each that was created; -1: a folder, or none */
    int synced; /* the step that syncs it; the number of steps if there is none */
} step;

static step *steps;
static int step_count, start, file_count;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "replay: %s '%s'\n", what, path);
    exit(2);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size + 1);
    if (!memory)
        die("no memory for", "the steps");
    return memory;
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

typedef struct name {
    const char *path;
    int id; /* -1: a folder */
} name;

typedef struct names {
    name *at;
    int count;
} names;

static int find(const names *n, const char *path)
{
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->at[i].path, path) == 0)
            return i;
    return -1;
}

static void remove_name(names *n, const char *path)
{
    const int i = find(n, path);
    if (i >= 0)
        n->at[i] = n->at[--n->count];
}

static void set_name(names *n, const char *path, int id)
{
    remove_name(n, path);
    n->at[n->count++] = (name){path, id};
}

static void apply(names *n, const step *s)
{
    switch (s->e.kind) {
    case CREATE:
    case FOLDER:
        set_name(n, s->path, s->id);
        break;
    case RENAME:
        remove_name(n, s->path);
        set_name(n, s->other, s->id);
        break;
    case REMOVE:
        remove_name(n, s->path);
        break;
    }
}

static bool changes_names(const step *s)
{
    return s->e.kind == CREATE || s->e.kind == FOLDER || s->e.kind == RENAME || s->e.kind == REMOVE;
}

static bool changes_bytes(const step *s)
{
    return s->e.kind == WRITE || s->e.kind == TRUNCATE;
}

/* ---- The log -------------------------------------------------------------------------------------------------- */

static void *read_bytes(FILE *log, size_t size)
{
    char *bytes = allocate(size);
    if (fread(bytes, 1, size, log) != size)
        die("cannot read the log", "");
    return bytes;
}

/* Which file a step is about: numbers of the file system become numbers of ours. */
static void identify(step *s, names *now, uint64_t *number_of)
{
    const int at = s->path ? find(now, s->path) : -1;
    s->id = -1;
    for (int id = file_count - 1; id >= 0 && s->id < 0 && s->e.file != 0; id--)
        if (number_of[id] == s->e.file)
            s->id = id;
    if (s->e.kind == CREATE) {
        bool named = false;
        for (int i = 0; i < now->count; i++)
            named |= now->at[i].id >= 0 && now->at[i].id == s->id;
        if (!named) /* a new file, perhaps with the number of one that is gone */
            number_of[s->id = file_count++] = s->e.file;
    } else if (s->e.kind == RENAME) {
        if (at < 0 || now->at[at].id < 0)
            die("a rename of something unknown:", s->path);
        s->id = now->at[at].id;
    } else if ((s->e.kind == REMOVE && at < 0) || (changes_bytes(s) && s->id < 0)) {
        die("a change of something unknown:", s->path ? s->path : "a file");
    }
    apply(now, s);
}

static void read_log(const char *path)
{
    FILE *log = fopen(path, "rb");
    struct stat status;
    if (!log || stat(path, &status) != 0)
        die("cannot read", path);
    const size_t most = (size_t)status.st_size / sizeof(entry) + 1;
    uint64_t *number_of = allocate(most * sizeof *number_of);
    names now = {allocate(most * sizeof(name)), 0};
    steps = allocate(most * sizeof *steps);
    for (step *s = steps; fread(&s->e, sizeof s->e, 1, log) == 1; s++) {
        s->path = s->e.path_size > 0 || s->e.kind == SYNC_FOLDER ? read_bytes(log, s->e.path_size) : NULL;
        s->other = s->e.other_size > 0 ? read_bytes(log, s->e.other_size) : NULL;
        s->bytes = s->e.kind == WRITE ? read_bytes(log, (size_t)s->e.size) : NULL;
        identify(s, &now, number_of);
        step_count++;
        if (s->e.kind == START)
            start = step_count;
    }
    fclose(log);
    free(number_of);
    free(now.at);
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static bool is_in(const char *path, const char *folder, size_t length)
{
    return folder_length(path) == length && strncmp(path, folder, length) == 0;
}

/* A sync holds for all changes before it. */
static void find_syncs(void)
{
    for (int i = 0; i < step_count; i++) {
        step *s = &steps[i];
        s->synced = i < start ? start - 1 : step_count; /* with START all is on disk */
        if (s->other && !is_in(s->other, s->path, folder_length(s->path)))
            die("a rename to another folder:", s->other);
        for (int j = i + 1; j < s->synced; j++) {
            const step *sync = &steps[j];
            if (sync->e.kind == SYNC_FOLDER ? changes_names(s) && is_in(s->path, sync->path, strlen(sync->path))
                                            : sync->e.kind == SYNC && changes_bytes(s) && sync->id == s->id)
                s->synced = j;
        }
    }
}

/* ---- States --------------------------------------------------------------------------------------------------- */

typedef struct content {
    unsigned char *bytes;
    int64_t size;
} content;

static void resize(content *c, int64_t size)
{
    if (size > c->size) {
        c->bytes = realloc(c->bytes, (size_t)size);
        if (!c->bytes)
            die("no memory for", "a file");
        memset(c->bytes + c->size, 0, (size_t)(size - c->size));
    }
    c->size = size;
}

static content content_of(int id, int cut, int data)
{
    content c = {0};
    int last = -1;
    for (int i = 0; i < cut; i++)
        if (steps[i].id == id && steps[i].e.kind == WRITE)
            last = i;
    for (int i = 0; i < cut; i++) {
        const step *s = &steps[i];
        const int how = s->synced < cut ? PRESENT : data;
        if (s->id != id || !changes_bytes(s) || how == LOST)
            continue;
        if (s->e.kind == TRUNCATE) {
            resize(&c, s->e.offset);
            continue;
        }
        const int64_t size = how == SHORT ? 0 : how == TORN && i == last ? s->e.size / 2 : s->e.size;
        if (size > 0 && s->e.offset + size > c.size)
            resize(&c, s->e.offset + size);
        if (size > 0 && how != ZERO)
            memcpy(c.bytes + s->e.offset, s->bytes, (size_t)size);
        else if (size > 0)
            memset(c.bytes + s->e.offset, 0, (size_t)size);
    }
    return c;
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(((const name *)one)->path, ((const name *)other)->path);
}

/* The names after a cut, sorted, so that a folder is before what is in it. */
static names names_at(int cut, int changed)
{
    names n = {allocate((size_t)step_count * sizeof(name)), 0};
    for (int i = 0, pending = 0; i < cut; i++)
        if (changes_names(&steps[i])) {
            pending += steps[i].synced >= cut;
            if (steps[i].synced < cut || (changed >= 0 ? pending <= changed : pending != -changed))
                apply(&n, &steps[i]);
        }
    qsort(n.at, (size_t)n.count, sizeof *n.at, compare_names);
    int kept = 0;
    for (int i = 0; i < n.count; i++) { /* what is in a folder that is not there is not there either */
        bool there = !strchr(n.at[i].path, '/');
        for (int k = 0; k < kept && !there; k++)
            there = n.at[k].id < 0 && is_in(n.at[i].path, n.at[k].path, strlen(n.at[k].path));
        if (there)
            n.at[kept++] = n.at[i];
    }
    n.count = kept;
    return n;
}

static int count_pending(int cut)
{
    int count = 0;
    for (int i = 0; i < cut; i++)
        count += changes_names(&steps[i]) && steps[i].synced >= cut;
    return count;
}

#define FIRST_HASH UINT64_C(14695981039346656037)

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The hash of a file's bytes, which is the same as for the last cut unless it was written or synced since. */
static uint64_t hash_content(int id, int cut, int data)
{
    static struct known {
        int last; /* the last step about the file, and one more */
        uint64_t hash;
    } * known;
    if (!known)
        known = allocate((size_t)file_count * DATA_KINDS * sizeof *known);
    struct known *k = &known[id * DATA_KINDS + data];
    int last = cut;
    while (last > 0 && (steps[last - 1].id != id || changes_names(&steps[last - 1])))
        last--;
    if (k->last == 0 || k->last != last) {
        content c = content_of(id, cut, data);
        k->hash = mix(mix(FIRST_HASH, &c.size, sizeof c.size), c.bytes, (size_t)c.size);
        k->last = last;
        free(c.bytes);
    }
    return k->hash;
}

static uint64_t hash_state(int cut, int changed, int data)
{
    names n = names_at(cut, changed);
    uint64_t hash = FIRST_HASH;
    for (int i = 0; i < n.count; i++) {
        const bool read = n.at[i].id >= 0 && !is_temporary(n.at[i].path);
        const uint64_t bytes = read ? hash_content(n.at[i].id, cut, data) : 0;
        hash = mix(hash, n.at[i].path, strlen(n.at[i].path) + 1);
        hash = mix(hash, &bytes, sizeof bytes);
    }
    free(n.at);
    return hash;
}

static void make_state(int cut, int changed, int data, const char *folder)
{
    names n = names_at(cut, changed);
    if (mkdir(folder, 0777) != 0 || chdir(folder) != 0)
        die("cannot make", folder);
    for (int i = 0; i < n.count; i++) {
        if (n.at[i].id < 0) {
            if (mkdir(n.at[i].path, 0777) != 0)
                die("cannot make", n.at[i].path);
            continue;
        }
        content c = content_of(n.at[i].id, cut, data);
        FILE *file = fopen(n.at[i].path, "wb");
        if (!file || fwrite(c.bytes, 1, (size_t)c.size, file) != (size_t)c.size || fclose(file) != 0)
            die("cannot write", n.at[i].path);
        free(c.bytes);
    }
    free(n.at);
}

/* ---- All states ----------------------------------------------------------------------------------------------- */

static uint64_t *seen;
static int seen_count, seen_room;

static bool is_new(uint64_t hash)
{
    for (int i = 0; i < seen_count; i++)
        if (seen[i] == hash)
            return false;
    if (seen_count == seen_room) {
        seen = realloc(seen, (size_t)(seen_room = 2 * seen_room + 100) * sizeof *seen);
        if (!seen)
            die("no memory for", "the states");
    }
    seen[seen_count++] = hash;
    return true;
}

static void list_states(void)
{
    for (int cut = start; cut <= step_count; cut++) {
        const step *s = &steps[cut - 1];
        const int pending = count_pending(cut);
        for (int changed = -pending; changed <= pending; changed++)
            for (int data = 0; data < DATA_KINDS; data++)
                if (is_new(hash_state(cut, changed, data)))
                    printf("%d %d %s after %d of %d steps, the last: %c %s %s\n", cut, changed, data_names[data],
                           cut - start, step_count - start, s->e.kind, s->path ? s->path : "",
                           s->other ? s->other : "");
    }
}

static int number_of(const char *word)
{
    return strcmp(word, "all") == 0 ? step_count : atoi(word);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 6) {
        fprintf(stderr, "usage: replay LOG [CUT NAMES DATA FOLDER]\n");
        return 2;
    }
    read_log(argv[1]);
    find_syncs();
    if (argc == 2)
        list_states();
    for (int data = 0; argc == 6 && data < DATA_KINDS; data++)
        if (strcmp(argv[4], data_names[data]) == 0)
            make_state(number_of(argv[2]), number_of(argv[3]), data, argv[5]);
    return 0;
}
