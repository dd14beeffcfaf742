/* attend score --by-length: groups of lines by their number of words, and the scores of each group. */
#ifndef BY_LENGTH_H
#define BY_LENGTH_H

#include "options.h"

typedef struct length_group {
    int64_t from, to;           /* words; to UNSET: no limit */
    const int64_t *lines, *end; /* the numbers of its lines, from 0 */
} length_group;

typedef struct length_groups {
    length_group *group; /* those that have lines, the shortest first */
    int64_t count;
    int64_t *lines; /* what the groups point into */
} length_groups;

/* Groups the lines by their number of words, separated by white space. One bound: every group is that many words wide;
 * lines without words are in the first. Several: the most words of each group but the last, which has no limit. */
bool length_groups_make(const at_counts *bounds, const at_line_list *lines, length_groups *groups, at_error *error);
void length_groups_free(length_groups *groups);

/* A column of the table: a metric's scores under a name. */
typedef struct length_column {
    const char *name;
    const at_scores *scores;
} length_column;

/* Prints a table with a row for each group; decimals UNSET: as many as the scores are published with. `of`: "reference". */
void length_groups_print(const length_groups *groups, const char *of, const length_column *columns, int count,
                         int64_t decimals);
/* The same as a member "by_length" of a JSON object, after a comma. */
void length_groups_print_json(const length_groups *groups, const char *of, const length_column *columns, int count);

#endif
