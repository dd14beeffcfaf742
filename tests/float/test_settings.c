/* The one table of settings: every row is complete, values can be written and parsed again, errors have one wording,
 * and the refusal of a resumed run names the setting that changed. */
#include "base/settings.h"

#include "training_of.h"

#include "models/kinds.h"

#include <string.h>

/* ---- The rows ------------------------------------------------------------------------------------------------- */

static void every_row_is_complete(void **state)
{
    (void)state;
    int count = 0;
    for (; at_training_setting(count); count++) {
        const at_setting *row = at_training_setting(count);
        if (row->resume == AT_RESUME_UNDECIDED)
            fail_msg("`%s` has not decided whether a resumed run must share it: set .resume of its row", row->name);
        if (!row->group || !row->help || strstr(row->help, "--"))
            fail_msg("`%s` needs a group and a help text that names settings in backquotes", row->name);
        if (!row->argument && row->type != AT_SETTING_SWITCH)
            fail_msg("`%s` is no switch, so help needs a name for its value", row->name);
        if (at_setting_find(at_training_setting, row->name) != count)
            fail_msg("there are two rows `%s`", row->name);
        if (row->type == AT_SETTING_NUMBER && row->limits & AT_BELOW_MOST && row->most == 0)
            fail_msg("`%s` must be below a limit that it does not have", row->name);
    }
    assert_true(count > 70 && count <= AT_MOST_SETTINGS);
}

/* A default is compared with the value as text, so it must be written as at_setting_text writes it. */
static void defaults_are_written_as_values_are(void **state)
{
    (void)state;
    for (int i = 0; at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        at_setting alone = *row;
        at_error error = {0};
        union {
            char bytes[80];
            int64_t number;
        } field = {{0}};
        char text[80];
        alone.offset = 0;
        if (!row->fallback)
            continue;
        if (!at_setting_parse(&alone, NULL, row->fallback, &field, &error))
            fail_msg("the default of `%s`: %s", row->name, error.text);
        assert_string_equal(at_setting_text(&alone, &field, text, sizeof text), row->fallback);
    }
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

typedef struct fields {
    bool on;
    char name[6];
    int64_t count;
    double number;
    uint64_t seed;
    int choice;
    at_columns columns;
    at_counts counts;
    at_texts texts;
    at_pairs pairs;
} fields;

static const char *const colours[] = {"", "red", "green", NULL};

#define FIELD(type_, member_, ...)                                                                                     \
    {                                                                                                                  \
        .type = AT_SETTING_##type_, .name = #member_, .offset = offsetof(fields, member_), __VA_ARGS__                 \
    }
static const at_setting on = FIELD(SWITCH, on), name = FIELD(NAME, name, .size = 6, .fallback = "none"),
                        count = FIELD(COUNT, count, .least = 1, .most = 64), open = FIELD(COUNT, count, .least = -3),
                        number = FIELD(NUMBER, number, .least = 0.5, .most = 2),
                        above = FIELD(NUMBER, number, .limits = 1),
                        share = FIELD(NUMBER, number, .most = 1, .limits = AT_BELOW_MOST),
                        whole = FIELD(NUMBER, number, .limits = AT_WHOLE), seed = FIELD(SEED, seed),
                        choice = FIELD(CHOICE, choice, .choices = colours), columns = FIELD(COLUMNS, columns),
                        counts = FIELD(COUNTS, counts, .least = 1), texts = FIELD(TEXTS, texts, .argument = "FILE"),
                        pairs = FIELD(PAIRS, pairs);

static void values_can_be_parsed_again(void **state)
{
    (void)state;
    static const struct {
        const at_setting *row;
        const char *text, *back;
    } cases[] = {{&on, "true", "true"},       {&on, "yes", "true"},     {&on, "off", "false"},
                 {&name, "fives", "fives"},   {&count, "64", "64"},     {&open, "-3", "-3"},
                 {&number, "0.5", "0.5"},     {&number, "1.1", "1.1"},  {&share, "0.1", "0.1"},
                 {&number, "1e0", "1"},       {&whole, "7", "7"},       {&seed, "18446744073709551615", NULL},
                 {&choice, "green", "green"}, {&columns, "3,1", "3,1"}, {&columns, "4", "4"},
                 {&above, "1e-300", "1e-300"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fields f = {0};
        at_error error = {0};
        char text[80];
        assert_true(at_setting_parse(cases[i].row, NULL, cases[i].text, &f, &error));
        assert_string_equal(at_setting_text(cases[i].row, &f, text, sizeof text),
                            cases[i].back ? cases[i].back : cases[i].text);
        assert_true(at_setting_is_zero(cases[i].row, &f) == (strcmp(text, "false") == 0));
    }
}

static void errors_have_one_wording(void **state)
{
    (void)state;
    static const struct {
        const at_setting *row;
        const char *text, *message;
    } cases[] = {
        {&on, "perhaps", "`on` takes true or false, not 'perhaps'"},
        {&name, "sixsix", "`name` takes a name of 1 to 5 characters, not 'sixsix'"},
        {&name, "", "`name` takes a name of 1 to 5 characters, not ''"},
        {&count, "65", "`count` takes a whole number from 1 to 64, not '65'"},
        {&count, "1.5", "`count` takes a whole number from 1 to 64, not '1.5'"},
        {&open, "-4", "`count` takes a whole number, -3 or more, not '-4'"},
        {&open, "99999999999999999999", "`count` takes a whole number, -3 or more, not '99999999999999999999'"},
        {&number, "nan", "`number` takes a number from 0.5 to 2, not 'nan'"},
        {&number, "", "`number` takes a number from 0.5 to 2, not ''"},
        {&above, "0", "`number` takes a number above 0, not '0'"},
        {&above, "inf", "`number` takes a number above 0, not 'inf'"},
        {&share, "1", "`number` takes a number from 0 to below 1, not '1'"},
        {&share, "0.999999999", "`number` takes a number from 0 to below 1, rounded to a float, not '0.999999999'"},
        {&whole, "0.5", "`number` takes a whole number, 0 or more, not '0.5'"},
        {&seed, "-1", "`seed` takes a whole number from 0 to 18446744073709551615, not '-1'"},
        {&seed, " 1", "`seed` takes a whole number from 0 to 18446744073709551615, not ' 1'"},
        {&seed, "18446744073709551616",
         "`seed` takes a whole number from 0 to 18446744073709551615, not '18446744073709551616'"},
        {&choice, "blue", "`choice` takes red or green, not 'blue'"},
        {&choice, "", "`choice` takes red or green, not ''"},
        {&columns, "0,1", "`columns` takes two numbers from 1, such as 1,2, or one for a language model, not '0,1'"},
        {&counts, "3,x", "`counts` takes a whole number, 1 or more, not 'x'"},
        {&texts, "", "`texts` takes FILE, not an empty word"},
        {&pairs, "W", "`pairs` takes NAME=FILE, like W=w.npy, not 'W'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fields f = {0};
        at_error error = {0};
        assert_false(at_setting_parse(cases[i].row, NULL, cases[i].text, &f, &error));
        assert_string_equal(error.text, cases[i].message);
        assert_int_equal(error.code, AT_USAGE);
        assert_memory_equal(&f, &(fields){0}, sizeof f);
        if (*cases[i].text) { /* a label replaces the name */
            error = (at_error){0};
            assert_false(at_setting_parse(cases[i].row, "a.conf:3: it", cases[i].text, &f, &error));
            assert_non_null(strstr(error.text, "a.conf:3: it takes "));
        }
    }
}

static void lists_grow(void **state)
{
    (void)state;
    fields f = {0};
    at_error error = {0};
    assert_true(at_setting_parse(&counts, NULL, "5,3,8", &f, &error));
    assert_true(f.counts.count == 3 && f.counts.value[2] == 8);
    assert_true(at_setting_parse(&texts, NULL, "one", &f, &error));
    f.texts.settled = true;
    assert_true(at_setting_parse(&texts, NULL, "two", &f, &error) &&
                at_setting_parse(&texts, NULL, "three", &f, &error));
    assert_int_equal(f.texts.count, 2);
    assert_string_equal(f.texts.value[0], "two");
    assert_true(at_setting_parse(&pairs, NULL, "W=a", &f, &error) && at_setting_parse(&pairs, NULL, "U=b", &f, &error));
    assert_true(at_setting_parse(&pairs, NULL, "W=c", &f, &error));
    assert_int_equal(f.pairs.count, 2);
    assert_string_equal(f.pairs.file[0], "c");
    at_setting_release(&counts, &f);
    at_setting_release(&texts, &f);
    at_setting_release(&pairs, &f);
}

static void unknown_names_are_suggested(void **state)
{
    (void)state;
    at_error error = {0};
    assert_int_equal(at_setting_expect(at_training_setting, "lerning-rate", &error), -1);
    assert_string_equal(error.text, "no setting 'lerning-rate'; did you mean 'learning-rate'?");
    error = (at_error){0};
    assert_false(at_unknown("colour", "purple", colours + 1, 2, &error));
    assert_string_equal(error.text, "no colour 'purple'; there are 'red' and 'green'");
}

/* ---- What a resumed run must share ---------------------------------------------------------------------------- */

/* How a setting is changed between a run and its resumption; settings that are not listed change by their type. */
typedef struct change {
    const char *name;
    const char *extra;  /* "name value ..." of both runs */
    const char *before; /* its value in the first run; NULL: not set */
    const char *after;  /* NULL: by its type */
} change;

#define VALIDATED "valid-source valid valid-target valid "
#define PICTURES  "model show-attend-tell source pictures.npy hidden 8 embedding 4 attention 4"
#define FEATURES  "model show-attend-tell source features.npy hidden 8 embedding 4 attention 4"
static const change changes[] = {
    {"model", "model bahdanau hidden 8 embedding 4 attention 4", NULL, "luong"},
    {"score", "", NULL, "dot"},
    {"normaliser", "", NULL, "sparsemax"},
    {"window", "", NULL, "local-m:2"},
    {"position", "model transformer hidden 8 ffn 8 heads 2", NULL, "alibi"},
    {"heads", "", NULL, "2"},
    {"hidden", "", NULL, "16"},
    {"layers", "", NULL, "2"},
    {"kv-heads", "model transformer hidden 8 ffn 8 heads 2", NULL, "1"},
    {"decoder-layers", "model transformer hidden 8 ffn 8 heads 2 layers 2", NULL, "1"},
    {"first-position", "model transformer hidden 8 ffn 8 heads 2", NULL, "1"},
    {"norm", "", NULL, "post"},
    {"positions", "model transformer hidden 8 ffn 8 heads 2 position learned", NULL, "300"},
    {"share-embeddings", "model transformer hidden 8 ffn 8 heads 2 joint-vocab true", NULL, "true"},
    {"encoder-attention", "model transformer hidden 8 ffn 8 heads 2", NULL, "sliding:2"},
    {"decoder-attention", "model transformer hidden 8 ffn 8 heads 2", NULL, "sliding:2"},
    {"cross-attention", "model transformer hidden 8 ffn 8 heads 2", NULL, "sparsemax"},
    {"conv", PICTURES, NULL, "5x3s2"},
    {"image-size", PICTURES, NULL, "6x6"},
    {"image-channels", PICTURES, NULL, "1"},
    {"start-layer", PICTURES, NULL, "5"},
    {"deep-output", PICTURES, NULL, "linear"},
    {"augment", PICTURES, NULL, "0.25"},
    {"elastic", PICTURES, NULL, "0.25"},
    {"r-drop", "dropout 0.5", NULL, "1"},
    {"features", FEATURES, "2", "3"},
    {"guided-head", "model transformer hidden 8 ffn 8 heads 2 guided-alignment links", "1.1", "1.2"},
    {"guided-weight", "model transformer hidden 8 ffn 8 heads 2 guided-alignment links", NULL, "0.25"},
    {"guided-alignment", "model transformer hidden 8 ffn 8 heads 2", "links", "other.links"},
    {"subword-sampling", "source-vocab spm:16 target-vocab spm:16", NULL, "0.25"},
    {"too-long", "", "cut", "keep"},
    {"max-length", "", NULL, "100"},
    {"max-ratio", "", NULL, "3"},
    {"batch-tokens", "", "30", "40"},
    {"schedule", "", NULL, "inverse-sqrt"},
    {"weight-decay", "optimiser adamw", NULL, "0.25"},
    {"coverage", "score additive", NULL, "3"},
    {"coverage-width", "score additive coverage 2", NULL, "3"},
    {"hard-training", "normaliser hard", NULL, "exact"},
    {"reinforce", "normaliser hard", NULL, "0.25"},
    {"entropy", "normaliser hard", NULL, "0.25"},
    {"baseline", "normaliser hard", NULL, "0.25"},
    {"expectation", "normaliser hard", NULL, "0.25"},
    {"average", VALIDATED, "2", "3"},
    {"valid-metric", VALIDATED, NULL, "perplexity"},
    {"valid-samples", VALIDATED, NULL, "1"},
    {"early-stopping", VALIDATED, NULL, "9"},
    {"valid-every", VALIDATED, NULL, "1"},
    {"valid-source", "valid-target valid", "valid", "other.valid"},
    {"valid-target", "valid-source valid", "valid", "other.valid"},
    {"valid-tsv", "", NULL, "tsv"},
    {"source", "target train", "train", "other"},
    {"target", "source train", "train", "other"},
    {"tsv", "", "tsv", "other.tsv"},
    {"columns", "tsv tsv", "1,2", "2,1"},
    {"source-vocab", "", NULL, "char"},
    {"target-vocab", "", NULL, "char"},
    {"init", "", "base", "base2"}, /* which does not exist: a resumed run does not read it */
    {"freeze", "", NULL, "source.*"},
    {"valid-only", VALIDATED, NULL, "true"},
    {"corpus-weights", "", "2", "3"},
    {"seed", "", NULL, "2"},
};

static const change *change_of(const char *name_)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(changes[i].name, name_) == 0)
            return &changes[i];
    return NULL;
}

/* Another value than the default, by the type of the row. */
static const char *other_value(const at_setting *row)
{
    switch (row->type) {
    case AT_SETTING_SWITCH:
        return row->fallback && strcmp(row->fallback, "true") == 0 ? "false" : "true";
    case AT_SETTING_COUNT:
        return "3";
    case AT_SETTING_NUMBER:
        return "0.25";
    case AT_SETTING_CHOICE:
        for (int i = 0; row->choices[i]; i++)
            if (*row->choices[i] && strcmp(row->choices[i], row->fallback) != 0)
                return row->choices[i];
        return NULL;
    default:
        return NULL;
    }
}

static void set_words(at_training *training, const char *words, at_error *error)
{
    char copy[400], *rest = copy, *key;
    snprintf(copy, sizeof copy, "%s", words);
    while ((key = strsep(&rest, " ")) && *key)
        at_training_set(training, key, strsep(&rest, " "), error);
}

/* One update of a small model that uses the row. */
static bool run(const at_setting *row, const change *how, const char *value, bool resume, at_error *error)
{
    static const char *const bases[] = {"model luong hidden 8 embedding 4 attention 4 cell gru",
                                        "model transformer hidden 8 ffn 8 heads 2 layers 1 attention 4",
                                        "model bahdanau hidden 8 embedding 4 attention 4 maxout 4"};
    static const char *const kinds[] = {"luong", "transformer", "bahdanau"};
    at_training *training = at_training_new(error);
    int base = 0;
    while (at_setting_find(at_model_setting, row->name) > 0 && base < 2 &&
           !at_model_uses(at_model_kind_find(kinds[base], error), row->name))
        base++;
    const char *extra = how ? how->extra : "";
    const bool has_tsv = strncmp(extra, "tsv ", 4) == 0 || strcmp(row->name, "tsv") == 0;
    if (strncmp(extra, "model ", 6) != 0)
        set_words(training, bases[base], error);
    if (strcmp(row->name, "source") != 0 && !has_tsv)
        set_words(training, "source train", error);
    if (strcmp(row->name, "target") != 0 && !has_tsv)
        set_words(training, "target train", error);
    set_words(training, extra, error);
    set_words(training, "updates 1 output model", error);
    if (value)
        at_training_set(training, row->name, value, error);
    set_words(training, resume ? "resume true" : "overwrite true", error);
    at_train_result result;
    const bool done = error->code == AT_OK && at_training_run(training, NULL, NULL, NULL, &result, error);
    at_training_free(training);
    return done;
}

static void check_row(const at_setting *row)
{
    const change *how = change_of(row->name);
    const char *after = how && how->after ? how->after : other_value(row);
    char named[80];
    at_error error = {0};
    snprintf(named, sizeof named, "`%s`", row->name);
    if (!after)
        fail_msg("%s: say in `changes` how this row can be changed", named);
    if (!run(row, how, how ? how->before : NULL, false, &error))
        fail_msg("%s: %s", named, error.text);
    const bool resumed = run(row, how, after, true, &error);
    if (row->resume == AT_RESUME_FREE) {
        if (!resumed)
            fail_msg("%s may change, but resuming fails: %s", named, error.text);
    } else if (resumed) {
        fail_msg("%s must not change, but a run with another value resumes", named);
    } else if (strcmp(row->name, "features") == 0) { /* the data is refused before anything is compared */
        assert_non_null(strstr(error.text, "features"));
    } else if (!strstr(error.text, "cannot resume from 'model.state'") ||
               (row->resume == AT_RESUME_SAME && !strstr(error.text, named))) {
        fail_msg("%s changed, and resuming reports: %s", named, error.text);
    }
}

static void a_resumed_run_shares_what_it_must(void **state)
{
    (void)state;
    at_error error = {0};
    assert_true(run(at_training_setting(at_setting_find(at_training_setting, "seed")), NULL, "1", false, &error));
    assert_int_equal(rename("model", "base"), 0); /* for `init` */
    for (int i = 0; at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        if (strcmp(row->name, "output") != 0 && strcmp(row->name, "resume") != 0 &&
            strcmp(row->name, "overwrite") != 0) /* the test itself uses these */
            check_row(row);
    }
}

/* The rate of cosine depends on the number of updates, which otherwise may change. */
static void updates_are_part_of_cosine(void **state)
{
    (void)state;
    const at_setting *row = at_training_setting(at_setting_find(at_training_setting, "updates"));
    const change cosine = {"updates", "schedule cosine", NULL, NULL};
    at_error error = {0};
    assert_true(run(row, &cosine, "2", false, &error));
    assert_false(run(row, &cosine, "3", true, &error));
    assert_non_null(strstr(error.text, "written with `updates` 2 and not with `updates` 3"));
}

/* A path may change if the contents of the file do not. */
static void moved_data_is_the_same_data(void **state)
{
    (void)state;
    const at_setting *row = at_training_setting(at_setting_find(at_training_setting, "source"));
    const change moved = {"source", "target train", NULL, NULL};
    at_error error = {0};
    assert_true(run(row, &moved, "train", false, &error));
    if (!run(row, &moved, "moved", true, &error))
        fail_msg("%s", error.text);
}

static bool write_array(const char *path, at_dtype dtype, int rank, const int64_t *dim)
{
    at_error error = {0};
    at_array *array = at_array_new(dtype, rank, dim, &error); /* zeros */
    const bool written = array && at_npy_write(path, array, &error);
    at_array_free(array);
    return written;
}

static int enter(void **state)
{
    (void)state;
    if (!enter_training() || !write_array("pictures.npy", AT_U8, 3, (const int64_t[]){40, 4, 4}) ||
        !write_array("features.npy", AT_F32, 3, (const int64_t[]){40, 3, 2}))
        return -1;
    write_lines("train", 40, 0, 1);
    write_lines("moved", 40, 0, 1);
    write_lines("valid", 8, 0, 2);
    write_lines("other.valid", 8, 0, 3);
    return system("sed s/a/z/g train >other && paste train other >tsv && paste other train | tac >other.tsv &&"
                  "sed 's/.*/0-0/' train >links && sed 's/.*/0-0 1-1/' train >other.links");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(defaults_are_written_as_values_are),
        cmocka_unit_test(values_can_be_parsed_again),
        cmocka_unit_test(errors_have_one_wording),
        cmocka_unit_test(lists_grow),
        cmocka_unit_test(unknown_names_are_suggested),
        cmocka_unit_test(a_resumed_run_shares_what_it_must),
        cmocka_unit_test(updates_are_part_of_cosine),
        cmocka_unit_test(moved_data_is_the_same_data),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
