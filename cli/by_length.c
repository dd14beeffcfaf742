#include "by_length.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    int64_t group, line;
} member;

static int by_group(const void *left, const void *right)
{
    const member *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static int64_t group_of(const at_counts *bounds, int64_t words)
{
    int64_t group = 0;
    if (bounds->count == 1)
        return words > 0 ? (words - 1) / bounds->value[0] : 0;
    while (group < bounds->count && words > bounds->value[group])
        group++;
    return group;
}

static length_group limits_of(const at_counts *bounds, int64_t group)
{
    if (bounds->count == 1)
        return (length_group){.from = group ? group * bounds->value[0] + 1 : 0, .to = (group + 1) * bounds->value[0]};
    return (length_group){.from = group ? bounds->value[group - 1] + 1 : 0,
                          .to = group < bounds->count ? bounds->value[group] : UNSET};
}

static bool bounds_rise(const at_counts *bounds, at_error *error)
{
    for (int64_t i = 1; i < bounds->count; i++)
        if (bounds->value[i] <= bounds->value[i - 1])
            return fail(error, AT_USAGE, "--by-length takes increasing limits, and %lld follows %lld",
                        (long long)bounds->value[i], (long long)bounds->value[i - 1]);
    return true;
}

bool length_groups_make(const at_counts *bounds, const at_line_list *lines, length_groups *groups, at_error *error)
{
    const size_t room = (size_t)lines->count + 1;
    if (!bounds_rise(bounds, error))
        return false;
    member *members = malloc(room * sizeof *members);
    *groups =
        (length_groups){.group = malloc(room * sizeof *groups->group), .lines = malloc(room * sizeof *groups->lines)};
    if (!members || !groups->group || !groups->lines)
        fail(error, AT_MEMORY, "out of memory for the lengths of %lld lines", (long long)lines->count);
    for (int64_t i = 0; i < lines->count && error->code == AT_OK; i++)
        members[i] = (member){group_of(bounds, at_word_numbers(lines->line[i], NULL, 0, NULL)), i};
    if (error->code == AT_OK)
        qsort(members, (size_t)lines->count, sizeof *members, by_group);
    for (int64_t i = 0; i < lines->count && error->code == AT_OK; i++) {
        groups->lines[i] = members[i].line;
        if (i == 0 || members[i].group != members[i - 1].group) {
            length_group *begun = &groups->group[groups->count++];
            *begun = limits_of(bounds, members[i].group);
            begun->lines = groups->lines + i;
        }
        groups->group[groups->count - 1].end = groups->lines + i + 1;
    }
    free(members);
    return error->code == AT_OK;
}

void length_groups_free(length_groups *groups)
{
    free(groups->group);
    free(groups->lines);
    *groups = (length_groups){0};
}

static int64_t lines_of(const length_group *group)
{
    return group->end - group->lines;
}

static double score_of(const length_column *column, const length_group *group)
{
    return at_scores_part(column->scores, group->lines, lines_of(group));
}

static int width_of(const length_column *column)
{
    const int width = text_width(column->name);
    return width > 7 ? width : 7;
}

enum { FIRST = 20 }; /* the width of the first column */

static void print_headings(const char *of, const length_column *columns, int first, int last)
{
    char text[40];
    snprintf(text, sizeof text, "words of a %s", of);
    printf("%-*s %7s", FIRST, text, "lines");
    for (int c = first; c < last; c++)
        printf("  %*s%s", width_of(&columns[c]) - text_width(columns[c].name), "", columns[c].name);
    putchar('\n');
}

static void print_group(const length_group *group, const length_column *columns, int first, int last, int64_t decimals)
{
    char text[40];
    if (group->to == UNSET)
        snprintf(text, sizeof text, "%lld-", (long long)group->from);
    else
        snprintf(text, sizeof text, "%lld-%lld", (long long)group->from, (long long)group->to);
    printf("%-*s %7lld", FIRST, text, (long long)lines_of(group));
    for (int c = first; c < last; c++) {
        const double score = score_of(&columns[c], group);
        const int digits = decimals != UNSET ? (int)decimals : at_scores_signature(columns[c].scores)[0] ? 1 : 2;
        if (isnan(score))
            printf("  %*s", width_of(&columns[c]), "-");
        else
            printf("  %*.*f", width_of(&columns[c]), digits, score);
    }
    putchar('\n');
}

/* As many columns as the terminal is wide; the others follow in tables of their own. */
void length_groups_print(const length_groups *groups, const char *of, const length_column *columns, int count,
                         int64_t decimals)
{
    const int room = terminal_width();
    for (int first = 0, last; first < count; first = last) {
        int used = FIRST + 8 + 2 + width_of(&columns[first]);
        for (last = first + 1; last < count; last++) {
            used += 2 + width_of(&columns[last]);
            if (room && used > room)
                break;
        }
        if (first)
            putchar('\n');
        print_headings(of, columns, first, last);
        for (int64_t g = 0; g < groups->count; g++)
            print_group(&groups->group[g], columns, first, last, decimals);
    }
}

void length_groups_print_json(const length_groups *groups, const char *of, const length_column *columns, int count)
{
    printf(",\"by_length\":{\"words_of\":\"%s\",\"groups\":[", of);
    for (int64_t g = 0; g < groups->count; g++) {
        const length_group *group = &groups->group[g];
        printf("%s{\"from\":%lld,\"to\":", g ? "," : "", (long long)group->from);
        if (group->to == UNSET)
            printf("null");
        else
            printf("%lld", (long long)group->to);
        printf(",\"lines\":%lld", (long long)lines_of(group));
        for (int c = 0; c < count; c++) {
            const double score = score_of(&columns[c], group);
            printf(isnan(score) ? ",\"%s\":null" : ",\"%s\":%.17g", columns[c].name, score);
        }
        putchar('}');
    }
    printf("]}");
}
