#include "store/pickle_internal.h"

#include <stdio.h>
#include <string.h>

#include "store/bytes_internal.h"

enum { MOST_VALUES = 1 << 22, MOST_MARKS = 10000, MOST_MEMO = 1000000, MOST_TEXT = 1 << 20 };

typedef struct machine {
    at_arena *arena;
    at_bytes in;
    at_pickled **stack, **memo;
    at_pickled *storage; /* the last */
    uint32_t depth, stack_room, memo_count, memo_room;
    int marks, values;
} machine;

/* ---- Bytes and memory ----------------------------------------------------------------------------------------- */

static bool refuse(machine *m, const char *what)
{
    return at_bytes_refuse(&m->in, what);
}

/* Room for one more pointer: the array moves to twice its size. */
static bool grow(machine *m, at_pickled ***array, uint32_t count, uint32_t *room, uint32_t most)
{
    if (count < *room)
        return true;
    const uint32_t more = *room ? 2 * *room : 4;
    at_pickled **moved = count < most ? at_arena_take(m->arena, more * sizeof *moved) : NULL;
    if (!moved)
        return count < most ? at_no_memory(m->in.error, "'%s'", m->in.path) : refuse(m, "a pickle is too deep");
    if (count)
        memcpy(moved, *array, count * sizeof *moved);
    *array = moved;
    *room = more;
    return true;
}

static at_pickled *make(machine *m, at_pickled_kind kind)
{
    if (m->values++ >= MOST_VALUES)
        refuse(m, "a pickle has too many values");
    at_pickled *value = m->in.error->code == AT_OK ? at_arena_take(m->arena, sizeof *value) : NULL;
    if (!value) {
        at_no_memory(m->in.error, "'%s'", m->in.path);
        return NULL;
    }
    *value = (at_pickled){.kind = kind};
    return value;
}

static bool push(machine *m, at_pickled *value)
{
    if (!value || !grow(m, &m->stack, m->depth, &m->stack_room, MOST_VALUES))
        return false;
    m->stack[m->depth++] = value;
    return true;
}

static at_pickled *pop(machine *m)
{
    if (m->depth > 0 && m->stack[m->depth - 1]->kind != AT_PICKLED_MARK)
        return m->stack[--m->depth];
    refuse(m, "a pickle takes a value that is not there");
    return NULL;
}

static bool append(machine *m, at_pickled *list, at_pickled *value)
{
    if (!value || !grow(m, &list->item, list->count, &list->room, MOST_VALUES))
        return false;
    list->item[list->count++] = value;
    return true;
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static bool push_integer(machine *m, int64_t integer)
{
    at_pickled *value = make(m, AT_PICKLED_INTEGER);
    if (value)
        value->integer = integer;
    return push(m, value);
}

/* A copy, so that it ends in a NUL. */
static at_pickled *text_of(machine *m, const unsigned char *bytes, size_t size, at_pickled_kind kind)
{
    at_pickled *value = bytes ? make(m, kind) : NULL;
    char *copy = value ? at_arena_take(m->arena, size + 1) : NULL;
    if (value && !copy)
        at_no_memory(m->in.error, "'%s'", m->in.path);
    if (!copy)
        return NULL;
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    value->text = copy;
    return value;
}

static bool push_text(machine *m, size_t size)
{
    if (size > MOST_TEXT)
        return refuse(m, "a text is too long");
    return push(m, text_of(m, at_bytes_take(&m->in, size), size, AT_PICKLED_TEXT));
}

static bool push_real(machine *m)
{
    const unsigned char *bytes = at_bytes_take(&m->in, 8);
    at_pickled *value = bytes ? make(m, AT_PICKLED_REAL) : NULL;
    uint64_t bits = 0;
    for (int i = 0; bytes && i < 8; i++)
        bits = bits << 8 | bytes[i];
    if (value)
        memcpy(&value->real, &bits, 8);
    return push(m, value);
}

/* A signed number of up to 8 bytes; longer ones, such as the magic number of old files, keep their low 8. */
static bool push_long(machine *m)
{
    const size_t size = at_bytes_number(&m->in, 1);
    const unsigned char *bytes = at_bytes_take(&m->in, size);
    uint64_t number = 0;
    for (size_t i = 0; bytes && i < size && i < 8; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    if (bytes && size > 0 && size < 8 && bytes[size - 1] & 0x80)
        number |= ~UINT64_C(0) << 8 * size;
    return bytes && push_integer(m, (int64_t)number);
}

/* "module\nname\n" */
static bool push_global(machine *m)
{
    const unsigned char *first = m->in.at, *line = memchr(m->in.at, '\n', (size_t)(m->in.end - m->in.at));
    const unsigned char *last = line ? memchr(line + 1, '\n', (size_t)(m->in.end - line - 1)) : NULL;
    if (!last || last - first > MOST_TEXT)
        return refuse(m, "a name does not end");
    m->in.at = last + 1;
    at_pickled *value = text_of(m, first, (size_t)(last - first), AT_PICKLED_GLOBAL);
    if (value)
        ((char *)value->text)[line - first] = ' ';
    return push(m, value);
}

static bool push_stack_global(machine *m)
{
    const at_pickled *name = pop(m), *module = name ? pop(m) : NULL;
    if (!module || name->kind != AT_PICKLED_TEXT || module->kind != AT_PICKLED_TEXT)
        return refuse(m, "a name is not a text");
    at_pickled *value = make(m, AT_PICKLED_GLOBAL);
    const size_t size = strlen(module->text) + strlen(name->text) + 2;
    char *text = value ? at_arena_take(m->arena, size) : NULL;
    if (!text)
        return at_no_memory(m->in.error, "'%s'", m->in.path);
    snprintf(text, size, "%s %s", module->text, name->text);
    value->text = text;
    return push(m, value);
}

/* ---- Lists and dictionaries ----------------------------------------------------------------------------------- */

/* The place of the last mark; -1 with the error set. */
static int64_t find_mark(machine *m)
{
    for (uint32_t i = m->depth; i > 0; i--)
        if (m->stack[i - 1]->kind == AT_PICKLED_MARK)
            return (int64_t)i - 1;
    refuse(m, "a pickle has no mark");
    return -1;
}

/* The values above the mark enter the list; it and the mark leave the stack. */
static bool collect(machine *m, at_pickled *list, int64_t mark)
{
    for (uint32_t i = (uint32_t)mark + 1; i < m->depth; i++)
        if (!append(m, list, m->stack[i]))
            return false;
    m->depth = (uint32_t)mark;
    m->marks--;
    return true;
}

static bool push_tuple(machine *m, int count)
{
    at_pickled *list = make(m, AT_PICKLED_LIST), *last[3];
    for (int i = count - 1; i >= 0; i--)
        if (!(last[i] = pop(m)))
            return false;
    for (int i = 0; i < count; i++)
        if (!append(m, list, last[i]))
            return false;
    return push(m, list);
}

static bool push_marked_tuple(machine *m)
{
    const int64_t mark = find_mark(m);
    at_pickled *list = mark >= 0 ? make(m, AT_PICKLED_LIST) : NULL;
    return list && collect(m, list, mark) && push(m, list);
}

/* What is below the mark gets the values above it: a list, or a dictionary in pairs. Objects of other kinds that behave
 * like lists or dictionaries ignore them. */
static bool add_marked(machine *m, at_pickled_kind kind)
{
    const int64_t mark = find_mark(m);
    if (mark < 1)
        return refuse(m, "a pickle adds to nothing");
    at_pickled *to = m->stack[mark - 1], *ignored = make(m, AT_PICKLED_LIST);
    if (kind == AT_PICKLED_DICTIONARY && (m->depth - (uint32_t)mark - 1) % 2)
        return refuse(m, "a key has no value");
    return ignored && collect(m, to->kind == kind ? to : ignored, mark);
}

static bool add_item(machine *m)
{
    at_pickled *value = pop(m), *key = value ? pop(m) : NULL;
    if (!key || m->depth == 0)
        return refuse(m, "a pickle adds to nothing");
    at_pickled *to = m->stack[m->depth - 1];
    return to->kind != AT_PICKLED_DICTIONARY || (append(m, to, key) && append(m, to, value));
}

static bool add_value(machine *m)
{
    at_pickled *value = pop(m);
    if (!value || m->depth == 0)
        return refuse(m, "a pickle adds to nothing");
    at_pickled *to = m->stack[m->depth - 1];
    return to->kind != AT_PICKLED_LIST || append(m, to, value);
}

/* ---- Objects -------------------------------------------------------------------------------------------------- */

static bool is_named(const at_pickled *value, const char *name)
{
    return value && value->kind == AT_PICKLED_GLOBAL && strcmp(value->text, name) == 0;
}

static at_pickled *argument(const at_pickled *list, size_t index, at_pickled_kind kind)
{
    at_pickled *value = list->kind == AT_PICKLED_LIST && index < list->count ? list->item[index] : NULL;
    return value && value->kind == kind ? value : NULL;
}

/* ('storage', type, key, place, count) */
static bool push_storage(machine *m)
{
    at_pickled *id = pop(m);
    if (!id)
        return false;
    at_pickled *type = argument(id, 1, AT_PICKLED_GLOBAL), *key = argument(id, 2, AT_PICKLED_TEXT),
               *count = argument(id, 4, AT_PICKLED_INTEGER), *value = make(m, AT_PICKLED_STORAGE);
    if (!value || !type || !key || !count || count->integer < 0)
        return refuse(m, "a storage has no type, key or size");
    value->of = type;
    value->text = key->text;
    value->integer = count->integer;
    value->state = m->storage;
    m->storage = value;
    return push(m, value);
}

/* Whether a number of the array, the last one included, lies in its storage. */
static bool lies_inside(const at_pickled *array, int64_t numbers)
{
    int64_t last = array->integer, count = 1;
    if (last < 0)
        return false;
    for (int i = 0; i < array->rank; i++) {
        const int64_t dim = array->dim[i], stride = array->dim[array->rank + i];
        if (dim < 0 || stride < 0 || (dim > 0 && count > INT64_MAX / 16 / dim) ||
            (dim > 1 && stride > (INT64_MAX / 16 - last) / (dim - 1)))
            return false;
        count *= dim;
        last += dim > 1 ? (dim - 1) * stride : 0;
    }
    return count <= numbers && (count == 0 || last < numbers);
}

/* _rebuild_tensor(storage, offset, size, stride, ...) */
static at_pickled *make_array(machine *m, const at_pickled *arguments)
{
    at_pickled *storage = argument(arguments, 0, AT_PICKLED_STORAGE),
               *offset = argument(arguments, 1, AT_PICKLED_INTEGER), *size = argument(arguments, 2, AT_PICKLED_LIST),
               *stride = argument(arguments, 3, AT_PICKLED_LIST), *array = make(m, AT_PICKLED_ARRAY);
    if (!array || !storage || !offset || !size || !stride || size->count != stride->count ||
        size->count > AT_MAX_RANK) {
        refuse(m, "an array lacks its storage or its shape");
        return NULL;
    }
    array->of = storage;
    array->integer = offset->integer;
    array->rank = (int)size->count;
    if (!(array->dim = at_arena_take(m->arena, 2 * AT_MAX_RANK * sizeof *array->dim))) {
        at_no_memory(m->in.error, "'%s'", m->in.path);
        return NULL;
    }
    for (int i = 0; i < array->rank; i++) {
        array->dim[i] = at_pickled_integer(size->item[i], -1);
        array->dim[array->rank + i] = at_pickled_integer(stride->item[i], -1);
    }
    if (lies_inside(array, storage->integer))
        return array;
    refuse(m, "an array is larger than its storage");
    return NULL;
}

static bool make_object(machine *m)
{
    at_pickled *arguments = pop(m), *class = arguments ? pop(m) : NULL, *made;
    if (!class)
        return false;
    if (is_named(class, "torch._utils _rebuild_tensor_v2") || is_named(class, "torch._utils _rebuild_tensor"))
        return push(m, make_array(m, arguments));
    if (is_named(class, "torch._utils _rebuild_parameter") && (made = argument(arguments, 0, AT_PICKLED_ARRAY)))
        return push(m, made);
    if (is_named(class, "torch Size") && (made = argument(arguments, 0, AT_PICKLED_LIST)))
        return push(m, made);
    if (is_named(class, "collections OrderedDict")) {
        at_pickled *pairs = argument(arguments, 0, AT_PICKLED_LIST);
        made = make(m, AT_PICKLED_DICTIONARY);
        for (size_t i = 0; made && pairs && i < pairs->count; i++) {
            const at_pickled *pair = pairs->item[i];
            if (pair->kind == AT_PICKLED_LIST && pair->count == 2 &&
                !(append(m, made, pair->item[0]) && append(m, made, pair->item[1])))
                return false;
        }
        return push(m, made);
    }
    if (!(made = make(m, AT_PICKLED_OBJECT)))
        return false;
    made->of = class;
    return append(m, made, arguments) && push(m, made);
}

static bool set_state(machine *m)
{
    at_pickled *state = pop(m);
    if (!state || m->depth == 0)
        return refuse(m, "a state belongs to nothing");
    if (m->stack[m->depth - 1]->kind == AT_PICKLED_OBJECT)
        m->stack[m->depth - 1]->state = state;
    return true;
}

/* ---- The memo ------------------------------------------------------------------------------------------------- */

static bool put(machine *m, uint64_t index)
{
    if (m->depth == 0 || index >= MOST_MEMO)
        return refuse(m, "a pickle remembers nothing, or too much");
    while (m->memo_count <= index) {
        if (!grow(m, &m->memo, m->memo_count, &m->memo_room, MOST_MEMO))
            return false;
        m->memo[m->memo_count++] = NULL;
    }
    m->memo[index] = m->stack[m->depth - 1];
    return true;
}

static bool get(machine *m, uint64_t index)
{
    if (index >= m->memo_count || !m->memo[index] || m->memo[index]->kind == AT_PICKLED_MARK)
        return refuse(m, "a pickle recalls what it does not remember");
    return push(m, m->memo[index]);
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static bool step(machine *m, unsigned char code)
{
    switch (code) {
    case 0x80: /* PROTO */
        return at_bytes_take(&m->in, 1);
    case 0x95: /* FRAME */
        return at_bytes_take(&m->in, 8);
    case '(': /* MARK */
        return (m->marks++ < MOST_MARKS || refuse(m, "a pickle is too deep")) && push(m, make(m, AT_PICKLED_MARK));
    case 'N':
        return push(m, make(m, AT_PICKLED_NONE));
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_integer(m, code == 0x88);
    case 'J': /* BININT, BININT1, BININT2, LONG1 */
        return push_integer(m, (int32_t)at_bytes_number(&m->in, 4));
    case 'K':
        return push_integer(m, (int64_t)at_bytes_number(&m->in, 1));
    case 'M':
        return push_integer(m, (int64_t)at_bytes_number(&m->in, 2));
    case 0x8a:
        return push_long(m);
    case 'G': /* BINFLOAT */
        return push_real(m);
    case 'X': /* BINUNICODE, SHORT_BINUNICODE */
        return push_text(m, at_bytes_number(&m->in, 4));
    case 0x8c:
        return push_text(m, at_bytes_number(&m->in, 1));
    case ')': /* EMPTY_TUPLE, TUPLE1 to TUPLE3, TUPLE */
        return push_tuple(m, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_tuple(m, code - 0x84);
    case 't':
        return push_marked_tuple(m);
    case ']': /* EMPTY_LIST, APPEND, APPENDS */
        return push(m, make(m, AT_PICKLED_LIST));
    case 'a':
        return add_value(m);
    case 'e':
        return add_marked(m, AT_PICKLED_LIST);
    case '}': /* EMPTY_DICT, SETITEM, SETITEMS */
        return push(m, make(m, AT_PICKLED_DICTIONARY));
    case 's':
        return add_item(m);
    case 'u':
        return add_marked(m, AT_PICKLED_DICTIONARY);
    case 'c': /* GLOBAL, STACK_GLOBAL */
        return push_global(m);
    case 0x93:
        return push_stack_global(m);
    case 'Q': /* BINPERSID */
        return push_storage(m);
    case 'R': /* REDUCE, NEWOBJ, BUILD */
    case 0x81:
        return make_object(m);
    case 'b':
        return set_state(m);
    case 'q': /* BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET */
        return put(m, at_bytes_number(&m->in, 1));
    case 'r':
        return put(m, at_bytes_number(&m->in, 4));
    case 0x94:
        return put(m, m->memo_count);
    case 'h':
        return get(m, at_bytes_number(&m->in, 1));
    case 'j':
        return get(m, at_bytes_number(&m->in, 4));
    default:
        return at_fail(m->in.error, AT_UNSUPPORTED,
                       "'%s' has a pickle with the code 0x%02x, which this reader does not run", m->in.path, code);
    }
}

at_pickled *at_pickle_read(at_arena *arena, const unsigned char **at, const unsigned char *end, const char *path,
                           at_pickled **storage, at_error *error)
{
    machine m = {.arena = arena, .in = {.at = *at, .end = end, .path = path, .what = "a pickle", .error = error}};
    while (error->code == AT_OK) {
        const unsigned char *code = at_bytes_take(&m.in, 1);
        if (!code)
            return NULL;
        if (*code == '.') { /* STOP */
            *at = m.in.at;
            if (storage)
                *storage = m.storage;
            return pop(&m);
        }
        if (!step(&m, *code))
            return NULL;
    }
    return NULL;
}

at_pickled *at_pickled_get(const at_pickled *value, const char *key)
{
    if (value && value->kind == AT_PICKLED_OBJECT)
        value = value->state;
    if (!value || value->kind != AT_PICKLED_DICTIONARY)
        return NULL;
    for (uint32_t i = value->count; i >= 2; i -= 2) {
        const at_pickled *name = value->item[i - 2];
        if (name->kind == AT_PICKLED_TEXT && strcmp(name->text, key) == 0)
            return value->item[i - 1];
    }
    return NULL;
}

const char *at_pickled_text(const at_pickled *value)
{
    return value && value->kind == AT_PICKLED_TEXT ? value->text : NULL;
}

int64_t at_pickled_integer(const at_pickled *value, int64_t fallback)
{
    return value && value->kind == AT_PICKLED_INTEGER ? value->integer : fallback;
}
