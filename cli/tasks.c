#include "tasks.h"

#include <string.h>

enum { FIRST_YEAR = 1950, YEARS = 100, KEEP_ONE_IN = 20, MOST_DRAWS = 10000 };

uint64_t task_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int task_draw(uint64_t *state, int below)
{
    *state += 0x9E3779B97F4A7C15u;
    return (int)((task_mix(*state) >> 32) * (uint64_t)below >> 32);
}

static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                     "july",    "august",   "september", "october", "november", "december"};
static const char *const weekdays[] = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};

/* ---- Dates ---------------------------------------------------------------------------------------------------- */

typedef struct date {
    int day, month, year, weekday; /* month and weekday from 0 */
} date;

static int month_days(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month] + (month == 1 && (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)));
}

/* The date so many days after 1 January 1950, a Sunday. */
static date date_of(int number)
{
    date d = {.year = FIRST_YEAR, .weekday = (number + 6) % 7};
    while (number >= month_days(d.month, d.year)) {
        number -= month_days(d.month, d.year);
        d.month = (d.month + 1) % 12;
        d.year += d.month == 0;
    }
    d.day = number + 1;
    return d;
}

/* One day in so many is kept for the test. */
static bool is_kept_day(int number)
{
    return task_mix((uint64_t)number) % KEEP_ONE_IN == 0;
}

static const char *ending(int day)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    return endings[day % 10 < 4 && day / 10 != 1 ? day % 10 : 0];
}

/* The date as one of many people would write it. Figures alone are day, month, year. */
static void write_date(date d, uint64_t *random, char text[DATE_TEXT])
{
    char month[16], weekday[16];
    int cut = task_draw(random, 2);
    snprintf(month, sizeof month, "%.*s", cut ? 3 : 9, months[d.month]);
    snprintf(weekday, sizeof weekday, "%.*s", task_draw(random, 2) ? 3 : 9, weekdays[d.weekday]);
    if (task_draw(random, 4) == 0)
        month[0] -= 'a' - 'A';
    switch (task_draw(random, 12)) {
    case 0:
        snprintf(text, DATE_TEXT, "%d%s of %s %d", d.day, ending(d.day), month, d.year);
        break;
    case 1:
        snprintf(text, DATE_TEXT, "%s, %d %s %d", weekday, d.day, month, d.year);
        break;
    case 2:
        snprintf(text, DATE_TEXT, "%02d/%02d/%d", d.day, d.month + 1, d.year);
        break;
    case 3:
        snprintf(text, DATE_TEXT, "%d.%d.%d", d.day, d.month + 1, d.year);
        break;
    case 4:
        snprintf(text, DATE_TEXT, "%s %d, %d", month, d.day, d.year);
        break;
    case 5:
        snprintf(text, DATE_TEXT, "%d %s %d", d.day, month, d.year);
        break;
    case 6:
        snprintf(text, DATE_TEXT, "%s the %d%s, %d", month, d.day, ending(d.day), d.year);
        break;
    case 7:
        snprintf(text, DATE_TEXT, "%s the %d%s of %s %d", weekday, d.day, ending(d.day), month, d.year);
        break;
    case 8:
        snprintf(text, DATE_TEXT, "%d-%s-%d", d.day, month, d.year);
        break;
    case 9:
        snprintf(text, DATE_TEXT, "%s %s %d%s %d", weekday, month, d.day, ending(d.day), d.year);
        break;
    case 10:
        snprintf(text, DATE_TEXT, "%d, %d %s", d.year, d.day, month);
        break;
    default:
        snprintf(text, DATE_TEXT, "in %d on %s %d", d.year, month, d.day);
        break;
    }
}

void task_date(uint64_t *random, bool kept, char text[DATE_TEXT], char iso[DATE_TEXT])
{
    int number;
    do
        number = task_draw(random, YEARS * 365);
    while (is_kept_day(number) != kept);
    date d = date_of(number);
    write_date(d, random, text);
    snprintf(iso, DATE_TEXT, "%04d-%02d-%02d", d.year, d.month + 1, d.day);
}

/* ---- Orders of words ------------------------------------------------------------------------------------------ */

static void copied(const int *words, int count, int *from)
{
    (void)words;
    for (int j = 0; j < count; j++)
        from[j] = j;
}

static void reversed(const int *words, int count, int *from)
{
    (void)words;
    for (int j = 0; j < count; j++)
        from[j] = count - 1 - j;
}

/* Neighbours are swapped: 1 0 3 2 ...; the last of an odd number of words stays. */
static void swapped(const int *words, int count, int *from)
{
    (void)words;
    for (int j = 0; j < count; j++)
        from[j] = (j ^ 1) < count ? j ^ 1 : j;
}

/* Insertion sort: equal words keep their order. */
static void sorted(const int *words, int count, int *from)
{
    for (int j = 0; j < count; j++) {
        int at = j;
        for (; at > 0 && words[from[at - 1]] > words[j]; at--)
            from[at] = from[at - 1];
        from[at] = j;
    }
}

static const cli_task tasks[] = {
    {"copy", "the words as they are", .order = copied},
    {"reverse", "the words from the last to the first", .order = reversed},
    {"swap", "neighbours are swapped", .order = swapped},
    {"sort", "the words by their numbers; their order in the source does not matter", .order = sorted, .by_word = true},
    {"dates", "dates in twelve forms, by letters, to one: 3rd of May 1979 -> 1979-05-03", .order = NULL},
    {"scenes", "pictures of one to three objects -> a small red ring above a large blue square", .pictures = true},
};

const cli_task *task_at(int index)
{
    return index >= 0 && index < (int)(sizeof tasks / sizeof *tasks) ? &tasks[index] : NULL;
}

/* One line in so many is kept for the test. */
static bool is_kept_line(const int *words, int count)
{
    uint64_t line = 0;
    for (int i = 0; i < count; i++)
        line = task_mix(line + (uint64_t)words[i] + 1);
    return line % KEEP_ONE_IN == 0;
}

static void write_words(FILE *file, const int *words, const int *from, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(file, "%sw%d", i ? " " : "", words[from ? from[i] : i]);
    fputc('\n', file);
}

static void write_links(FILE *file, const cli_task *task, const int *words, const int *from, int count)
{
    const char *blank = "";
    for (int j = 0; j < count; j++) {
        int equal = 0;
        for (int i = 0; i < count; i++)
            equal += words[i] == words[from[j]];
        for (int i = 0; i < count; i++)
            if (i == from[j] || (task->by_word && words[i] == words[from[j]])) {
                fprintf(file, "%s%d%c%d", blank, i, task->by_word && equal > 1 ? '?' : '-', j);
                blank = " ";
            }
    }
    fputc('\n', file);
}

bool task_write(const cli_task *task, task_size size, uint64_t *random, bool kept, FILE *source, FILE *target,
                FILE *links)
{
    if (!task->order) {
        char text[DATE_TEXT], iso[DATE_TEXT];
        task_date(random, kept, text, iso);
        fprintf(source, "%s\n", text);
        fprintf(target, "%s\n", iso);
        return true;
    }
    int words[MOST_WORDS], from[MOST_WORDS], count, draws = 0;
    do {
        if (draws++ == MOST_DRAWS)
            return false;
        count = size.least + task_draw(random, size.most - size.least + 1);
        for (int i = 0; i < count; i++)
            words[i] = task_draw(random, size.symbols);
    } while (is_kept_line(words, count) != kept);
    task->order(words, count, from);
    write_words(source, words, NULL, count);
    write_words(target, words, from, count);
    if (links)
        write_links(links, task, words, from, count);
    return true;
}
