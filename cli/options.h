/* One table per command yields its parser, its --help with the defaults, the keys of its --config file and its part of
 * the man page. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "console.h"

/* Options are rows of the library's one table type, at_setting. A count that was not given is UNSET, a number NAN. */
#define UNSET INT64_MIN

/* The options of every command; the first member of each command's struct. */
typedef struct cli_common {
    const char *config;
    int64_t threads;
    uint64_t seed;
    bool quiet, verbose, help, version;
    char *config_text; /* what the values read from --config point into */
} cli_common;

/* The options of a command may depend on the value of one of them: those of attend train on --model. */
typedef struct cli_variants {
    const char *option;                                   /* "model" */
    const char *group;                                    /* the heading of the options that differ most */
    const char *(*name_at)(int index);                    /* the values; NULL past the last */
    const at_setting *(*list)(const char *name);          /* the options of one; NULL: there is no such value */
    bool (*is_own)(const char *name, const char *option); /* whether its default differs from the usual one */
    void (*introduce)(const char *name, int right);       /* prints what it is, in lines of `right` columns */
} cli_variants;

typedef struct cli_command {
    const char *name;
    const char *words;                 /* "[TOPIC]": what may stand after the name, for the usage line */
    int most_words;                    /* how many of them */
    const char *(*word_at)(int index); /* names to complete there; NULL past the last, or if there are none */
    const char *line;                  /* what it does, in one line */
    const char *text;                  /* more about it; NULL: what make_text returns */
    const char *(*make_text)(void);
    const char *examples; /* lines of shell, or NULL */
    const char *often;    /* the options that --help alone describes, blank between; NULL: it describes all */
    const cli_variants *variants;
    const at_setting *options; /* its own, ended by a record with neither name nor help; NULL: none */
    size_t size;               /* of its struct of options */
    /* Or this returns the options, for a command whose options the library lists. */
    const at_setting *(*list)(void);
    int (*run)(void *options, int word_count, char **words);
    bool together; /* several processes, which mpirun or srun starts, run it together; false: it is refused then */
} cli_command;

extern const at_setting common_options[];

/* Fills `into` (command->size bytes): defaults, then the --config file, then the command line. The words that are no
 * options are left at the end of argv, from *first_word on. `into` is to be released with options_free either way. */
bool options_parse(const cli_command *command, int argc, char **argv, void *into, int *first_word, at_error *error);
void options_free(const cli_command *command, void *options);

/* The option after another one, the first after NULL: the command's own, then the common ones; NULL past the last.
 * Headings come too. */
const at_setting *option_next(const cli_command *command, const at_setting *option);
const at_setting *own_options(const cli_command *command);
const at_setting *option_after(const at_setting *own, int index); /* by index, for other options than the command's */

/* One of them by its name; NULL if there is none. And the names of all, MOST_OPTIONS at most; returns their count. */
enum { MOST_OPTIONS = 160 };
const at_setting *option_named(const cli_command *command, const char *name);
int option_names(const cli_command *command, const char **names);

/* Sets one option in the command's struct; `label` is what the user wrote it as. */
bool option_assign(const at_setting *option, const char *label, const char *text, void *into, at_error *error);

/* Whether a name has this ending, and something before it. */
bool ends_in(const char *name, const char *ending);

/* A line of a file of settings, cut into its key and its value, which point into it; both are empty for a line of
 * blanks or of a comment, which starts with # at the start of the line or after a blank. */
bool config_line(const char *path, int number, char *line, char **key, char **value, at_error *error);

/* The whole of a file of text, to release with free. */
char *text_of_file(const char *path, at_error *error);

/* An entry of the catalogue as it is typed: "dot", "sliding:W", "t5[:BUCKETS]". Gives `out`. */
enum { ENTRY_TEXT = 60 };
char *entry_typed(const at_entry *entry, char out[ENTRY_TEXT]);

/* The names of an axis as a value would be typed: "global | causal | sliding:W ...". */
void list_axis(const char *axis, char *out, size_t size);

#endif
