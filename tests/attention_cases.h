/* Cases of the operator for tests: every combination of settings, with sizes that change from case to case. The
 * settings come from the catalogue, so a new one is checked as soon as it is listed. */
#ifndef ATTENTION_CASES_H
#define ATTENTION_CASES_H

/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/attention.h"
#include "attention/axes_internal.h"

/* ---- The product of settings ---- */

enum { MOST_CHOICES = 64, MOST_INPUTS = 16 };

/* One choice for an axis: its text, and which optional parameters (by their order in the entry) are left out. */
typedef struct choice {
    const at_entry *entry;
    char text[32];
    unsigned left_out;
} choice;

static choice choices[AT_AXES][MOST_CHOICES];
static int choice_count[AT_AXES];

static inline int axis_of(const at_entry *entry)
{
    for (int axis = 0; axis < AT_AXES; axis++)
        if (strcmp(at_axis_name[axis], entry->axis) == 0)
            return axis;
    fail_msg("no axis '%s'", entry->axis);
    return -1;
}

static inline void add_choices(const at_entry *entry, const char *argument)
{
    int axis = axis_of(entry), optional = 0;
    for (const char *c = entry->parameters; *c; c++)
        optional += *c == '?';
    for (unsigned left_out = 0; left_out < 1u << optional; left_out++) {
        assert_true(choice_count[axis] < MOST_CHOICES);
        choice *c = &choices[axis][choice_count[axis]++];
        *c = (choice){.entry = entry, .left_out = left_out};
        snprintf(c->text, sizeof c->text, "%s%s%s", entry->name, *argument ? ":" : "", argument);
    }
}

static inline int collect(void **state)
{
    (void)state;
    const at_entry *entry;
    at_threads_set(1); /* thousands of tiny runs: starting threads would be most of the time */
    for (int i = 0; (entry = at_catalogue(i)); i++) {
        char argument[64];
        snprintf(argument, sizeof argument, "%s", entry->argument);
        if (strcmp(argument, "[BUCKETS]") == 0) {
            add_choices(entry, "");
            add_choices(entry, "6");
        } else if (argument[0] == '[') { /* alternatives: "[tanh|sigmoid|relu]" */
            for (char *word = strtok(argument + 1, "|]"); word; word = strtok(NULL, "|]"))
                add_choices(entry, word);
        } else {
            add_choices(entry, argument[0] ? "2" : "");
        }
    }
    return 0;
}

/* ---- One case ---- */

typedef struct attention_case {
    at_settings settings;
    at_attention attention;
    int64_t B, Q, K, D, Dv, A;
    int64_t lengths[4];
    bool has_lengths, per_head, projections, sample;
    int64_t query_start;
    at_real drop; /* dropout probability of the weights */
    char name[200];
    int inputs; /* query, key, value, then parameters by these names */
    char input_name[MOST_INPUTS][8];
    at_shape shape[MOST_INPUTS];
} attention_case;

static inline void add_input(attention_case *c, const char *name, at_shape shape)
{
    assert_true(c->inputs < MOST_INPUTS);
    snprintf(c->input_name[c->inputs], sizeof c->input_name[0], "%s", name);
    c->shape[c->inputs++] = shape;
}

/* Settings that must parse. */
static inline at_attention parsed(const at_settings *settings)
{
    at_attention attention;
    at_error error = {0};
    if (!at_attention_parse(settings, &attention, &error))
        fail_msg("%s", error.text);
    return attention;
}

static inline int64_t size_named(const attention_case *c, int axis, const char *word)
{
    return strcmp(word, "A") == 0         ? c->A
           : strcmp(word, "D") == 0       ? c->D
           : strcmp(word, "Dv") == 0      ? c->Dv
           : strcmp(word, "H") == 0       ? c->attention.heads
           : strcmp(word, "2K+1") == 0    ? 2 * c->attention.argument[axis] + 1
           : strcmp(word, "BUCKETS") == 0 ? c->attention.argument[axis]
                                          : -1;
}

/* The parameters the entry's text declares: "v [A], W [A,D], b [A]?". */
static inline void add_parameters(attention_case *c, const choice *from)
{
    char text[100], *rest;
    int optional = 0;
    snprintf(text, sizeof text, "%s", from->entry->parameters);
    for (char *one = text; *one; one = rest) {
        rest = strchr(one, ']') + 1;
        bool may_miss = *rest == '?', missing = may_miss && (from->left_out >> optional & 1);
        optional += may_miss;
        rest += may_miss;
        rest += *rest == ',';
        rest += *rest == ' ';
        char name[8], dims[3][12];
        int rank = sscanf(one, "%7[A-Za-z] [%11[^],],%11[^],]", name, dims[0], dims[1]) - 1;
        assert_true(rank >= 1);
        at_shape shape = {0};
        if (c->per_head && strcmp(dims[rank - 1], "H") != 0)
            shape.dim[shape.rank++] = c->attention.heads;
        for (int i = 0; i < rank; i++)
            shape.dim[shape.rank++] = size_named(c, axis_of(from->entry), dims[i]);
        if (!missing)
            add_input(c, name, shape);
    }
}

/* Fills in the arrays of a case whose settings are parsed. */
static inline void add_arrays(attention_case *c, const choice *const *chosen)
{
    const int64_t H = c->attention.heads, G = c->attention.kv_heads;
    const int64_t q = c->projections ? 5 : H * c->D, k = c->projections ? 3 : G * c->D,
                  v = c->projections ? 4 : G * c->Dv;
    add_input(c, "query", AT_SHAPE(c->B, c->Q, q));
    add_input(c, "key", AT_SHAPE(c->B, c->K, k));
    add_input(c, "value", AT_SHAPE(c->B, c->K, v));
    for (int axis = 0; axis < AT_AXES; axis++)
        add_parameters(c, chosen[axis]);
    if (c->projections) {
        add_input(c, "WQ", AT_SHAPE(H * c->D, q));
        add_input(c, "WK", AT_SHAPE(G * c->D, k));
        add_input(c, "WV", AT_SHAPE(G * c->Dv, v));
        add_input(c, "WO", AT_SHAPE(3, H * c->Dv));
    }
}

static inline at_attention_in in_of(const attention_case *c, at_tensor *const *x)
{
    at_attention_in in = {.query = x[0],
                          .key = x[1],
                          .value = x[2],
                          .lengths = c->has_lengths ? c->lengths : NULL,
                          .query_start = c->query_start,
                          .sample = c->sample,
                          .seed = 7,
                          .drop = {.share = c->drop, .seed = 11, .counter = 4}};
    for (int i = 3; i < c->inputs; i++)
        *at_parameter_slot(&c->attention, &in, c->input_name[i]) = x[i];
    return in;
}

/* Why this combination is refused; NULL if it is not. The text lives until the next call. */
static inline const char *nonsense(const choice *const *chosen)
{
    static char why[200];
    const at_attention score = parsed(&(at_settings){.score = chosen[AT_SCORE]->text});
    const at_attention position = parsed(&(at_settings){.position = chosen[AT_POSITION]->text});
    const bool inner = score.score->inner, tables = position.position->has_tables;
    const char *name = score.score->entry.name;
    if (!inner && position.position->rotates)
        snprintf(why, sizeof why,
                 "position '%s' does not go with score '%s': it rotates the two sides of an inner product, and there "
                 "is none",
                 position.position->entry.name, name);
    else if (tables && chosen[AT_POSITION]->left_out == 3)
        snprintf(why, sizeof why, "position 'shaw' needs parameter 'wK' or 'wV' or both, and neither is given");
    else if (!inner && tables && !(chosen[AT_POSITION]->left_out & 1))
        snprintf(why, sizeof why,
                 "parameter 'wK' does not go with score '%s': there is no inner product for the key positions", name);
    else
        return NULL;
    return why;
}

static inline void refuses(attention_case *c, const char *why)
{
    at_arena *arena = at_arena_new();
    at_tape *tape = at_tape_new(arena, false);
    at_tensor *x[MOST_INPUTS];
    static const at_real numbers[1000];
    for (int i = 0; i < c->inputs; i++)
        x[i] = at_leaf(tape, c->shape[i], numbers, NULL, false);
    at_attention_in in = in_of(c, x);
    assert_null(at_attention_run(tape, &c->attention, &in).out);
    assert_string_equal(at_tape_error(tape)->text, why);
    at_arena_free(arena);
}

/* Sizes other than those of the small cases; 0: as they are. */
static struct {
    int64_t Q, K, D;
    bool no_projections;
} case_sizes;

/* Case `number` of the product. Sizes, heads, lengths and so on change from case to case with periods that are
 * coprime to the numbers of choices, so that every pair of values occurs. */
static inline attention_case case_of(const char *label, const choice *const *chosen, int number)
{
    static const int heads[][2] = {{1, 1}, {4, 2}, {4, 1}};
    static const int64_t lengths[][3] = {{5, 3, 0}, {4, 0, 5}};
    attention_case c = {.B = 2,
                        .Q = case_sizes.Q ? case_sizes.Q : 1 + number % 29 % 3,
                        .K = case_sizes.K ? case_sizes.K : 5,
                        .D = case_sizes.D ? case_sizes.D : 2,
                        .Dv = 3,
                        .A = 3,
                        .per_head = number % 13 % 2,
                        .projections = !case_sizes.no_projections && number % 17 % 4 == 0,
                        .query_start = number % 19 % 3,
                        .has_lengths = number % 11 % 3 > 0};
    memcpy(c.lengths, lengths[number % 11 % 2], sizeof lengths[0]);
    c.settings = (at_settings){.score = chosen[0]->text,
                               .normaliser = chosen[1]->text,
                               .window = chosen[2]->text,
                               .position = chosen[3]->text,
                               .heads = heads[number % 7 % 3][0],
                               .kv_heads = heads[number % 7 % 3][1]};
    const at_attention normaliser = parsed(&(at_settings){.normaliser = chosen[AT_NORMALISER]->text});
    const bool hard = at_attention_samples(&normaliser);
    c.sample = hard && number % 23 % 2;
    c.drop = !hard && number % 31 % 2 ? (at_real)0.3 : 0;
    snprintf(c.name, sizeof c.name, "%s case %d%s: %s %s %s %s, heads %d/%d", label, number,
             c.drop > 0 ? " with dropout" : "", chosen[0]->text, chosen[1]->text, chosen[2]->text, chosen[3]->text,
             c.settings.heads, c.settings.kv_heads);
    return c;
}

typedef void each_case(attention_case *c);

static inline void over_the_product(const char *label, each_case *check)
{
    int number = 0, refused = 0;
    for (int s = 0; s < choice_count[0]; s++)
        for (int n = 0; n < choice_count[1]; n++)
            for (int w = 0; w < choice_count[2]; w++)
                for (int p = 0; p < choice_count[3]; p++, number++) {
                    const choice *chosen[] = {&choices[0][s], &choices[1][n], &choices[2][w], &choices[3][p]};
                    attention_case c = case_of(label, chosen, number);
                    const char *why = nonsense(chosen);
                    at_error error = {0};
                    if (!at_attention_parse(&c.settings, &c.attention, &error)) {
                        assert_non_null(why);
                        assert_string_equal(error.text, why);
                        refused++;
                        continue;
                    }
                    add_arrays(&c, chosen);
                    if (why)
                        refuses(&c, why);
                    else
                        check(&c);
                    refused += why != NULL;
                }
    assert_true(number - refused > 1000);
}

#endif
