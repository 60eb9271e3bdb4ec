/*
 * The index: an Aho-Corasick automaton over one literal of every glob.
 *
 * One pass over the name visits the states of all literals that occur in it, wherever they
 * stand; the globs behind these, and those that have no literal, are the only ones tried.
 */
#include "index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define NONE UINT32_MAX
#define ROOT 0
/* In a name up to here no literal stands often enough for its globs to be worth remembering. */
#define SHORT_NAME_BYTES 256

struct state {
    uint32_t fallback; /* longest proper suffix that is a state too */
    uint32_t output;   /* nearest state with globs on the way of fallbacks, itself first */
    uint32_t first;    /* of the globs behind this state, a chain through `next_glob` */
};

struct index {
    struct glob *const *globs;
    size_t count;
    unsigned char symbols[256]; /* bytes of the literals, numbered from 1; 0: all others */
    size_t symbol_count;
    struct state *states;
    size_t state_count;
    uint32_t *moves;     /* state × symbol → state */
    uint32_t *next_glob; /* glob → the next behind the same state, ascending */
    uint32_t first_free; /* of the globs without a literal, the same chain */
};

/* How many globs have each literal: the rarest leads to the fewest. */
static struct map *count_literals(struct glob *const *globs, size_t count)
{
    struct map *counts = map_create();
    for (size_t i = 0; i < count; i++) {
        size_t position = 0;
        for (struct str literal; glob_next_literal(globs[i], &position, &literal);) {
            uintptr_t seen = (uintptr_t)map_get(counts, literal);
            map_put(counts, literal, (void *)(seen + 1));
        }
    }
    return counts;
}

/* The literal a glob is found through: the rarest, then the longest. */
static struct str choose_literal(const struct glob *glob, const struct map *counts)
{
    struct str best = STR_EMPTY;
    uintptr_t best_count = 0;
    size_t position = 0;
    for (struct str literal; glob_next_literal(glob, &position, &literal);) {
        uintptr_t count = (uintptr_t)map_get(counts, literal);
        bool is_better =
            count < best_count || (count == best_count && literal.length > best.length);
        if (best_count == 0 || is_better) {
            best = literal;
            best_count = count;
        }
    }
    return best;
}

static void number_symbols(struct index *index, const struct str *literals)
{
    for (size_t i = 0; i < index->count; i++) {
        for (size_t j = 0; j < literals[i].length; j++)
            index->symbols[(unsigned char)literals[i].bytes[j]] = 1;
    }
    index->symbol_count = 1;
    for (size_t byte = 0; byte < 256; byte++) {
        /* All 256 bytes in use would overflow to 0; UTF-8 never uses 0xC0, 0xC1, 0xF5 … */
        if (index->symbols[byte])
            index->symbols[byte] = (unsigned char)index->symbol_count++;
    }
}

static uint32_t *move_of(const struct index *index, uint32_t state, size_t symbol)
{
    return &index->moves[state * index->symbol_count + symbol];
}

/* The state of `literal`, made with all before it where they are missing. */
static uint32_t index_add_literal(struct index *index, struct str literal)
{
    uint32_t state = ROOT;
    for (size_t i = 0; i < literal.length; i++) {
        uint32_t *move = move_of(index, state, index->symbols[(unsigned char)literal.bytes[i]]);
        if (*move == NONE) {
            *move = (uint32_t)index->state_count++;
            index->states[*move] = (struct state){.fallback = ROOT, .output = NONE, .first = NONE};
        }
        state = *move;
    }
    return state;
}

/* Breadth first, so that a state's fallback is complete before the state. */
static void connect(struct index *index)
{
    OWNED uint32_t *queue = memory_alloc_array(index->state_count, sizeof *queue);
    size_t head = 0, tail = 0;
    queue[tail++] = ROOT;
    while (head < tail) {
        uint32_t state = queue[head++];
        uint32_t fallback = index->states[state].fallback;
        if (index->states[state].first != NONE)
            index->states[state].output = state;
        else if (state != ROOT)
            index->states[state].output = index->states[fallback].output;
        for (size_t symbol = 0; symbol < index->symbol_count; symbol++) {
            uint32_t *move = move_of(index, state, symbol);
            uint32_t otherwise = state == ROOT ? ROOT : *move_of(index, fallback, symbol);
            if (*move == NONE) {
                *move = otherwise;
                continue;
            }
            index->states[*move].fallback = otherwise;
            queue[tail++] = *move;
        }
    }
}

struct index *index_create(struct glob *const *globs, size_t count)
{
    struct index *index = memory_alloc(sizeof *index);
    OWNED struct str *literals = memory_alloc_array(count, sizeof *literals);
    struct map *counts = count_literals(globs, count);
    size_t most_states = 1;
    index->globs = globs;
    index->count = count;
    for (size_t i = 0; i < count; i++) {
        literals[i] = choose_literal(globs[i], counts);
        most_states += literals[i].length;
    }
    map_destroy(counts, NULL);
    number_symbols(index, literals);
    size_t move_count = most_states * index->symbol_count;
    index->states = memory_alloc_array(most_states, sizeof *index->states);
    index->moves = memory_alloc_array(move_count, sizeof *index->moves);
    memset(index->moves, 0xFF, move_count * sizeof *index->moves); /* NONE */
    index->states[ROOT] = (struct state){.fallback = ROOT, .output = NONE, .first = NONE};
    index->state_count = 1;
    index->next_glob = memory_alloc_array(count, sizeof *index->next_glob);
    index->first_free = NONE;
    /* From the last to the first, each put in front: the chains end up ascending. */
    for (size_t i = count; i-- > 0;) {
        uint32_t *first = &index->first_free;
        if (literals[i].length)
            first = &index->states[index_add_literal(index, literals[i])].first;
        index->next_glob[i] = *first;
        *first = (uint32_t)i;
    }
    connect(index);
    return index;
}

void index_destroy(struct index *index)
{
    if (!index)
        return;
    free(index->states);
    free(index->moves);
    free(index->next_glob);
    free(index);
}

static bool index_is_allowed(const struct index_filter *filter, uint32_t glob)
{
    return !filter || !filter->allowed || filter->allowed[glob];
}

static bool index_fits(const struct index_filter *filter, uint32_t glob)
{
    return !filter || !filter->fits || filter->fits(filter->context, glob);
}

/* The first match of an ascending chain that comes before `best`, or `best`. */
static uint32_t try_chain(const struct index *index, uint32_t first, struct str name,
                          const struct index_filter *filter, uint32_t best)
{
    for (uint32_t i = first; i < best; i = index->next_glob[i]) {
        if (index_is_allowed(filter, i) && glob_matches(index->globs[i], name) &&
            index_fits(filter, i))
            return i;
    }
    return best;
}

/* Tries all globs of the states on the way of outputs. A state leads to the same globs at every
 * place of its literal, so it is tried once: `seen` has a byte for each state, or is NULL. */
static uint32_t try_outputs(const struct index *index, uint32_t state, struct str name,
                            const struct index_filter *filter, unsigned char *seen, uint32_t best)
{
    uint32_t output = index->states[state].output;
    while (output != NONE && !(seen && seen[output])) {
        best = try_chain(index, index->states[output].first, name, filter, best);
        if (seen)
            seen[output] = 1;
        output = index->states[index->states[output].fallback].output;
    }
    return best;
}

bool index_first(const struct index *index, struct str name, const struct index_filter *filter,
                 size_t *position)
{
    uint32_t best = try_chain(index, index->first_free, name, filter, NONE);
    uint32_t state = ROOT;
    unsigned char *seen = NULL;
    if (name.length > SHORT_NAME_BYTES)
        seen = memory_alloc_array(index->state_count, 1);
    for (size_t i = 0; i < name.length; i++) {
        state = *move_of(index, state, index->symbols[(unsigned char)name.bytes[i]]);
        best = try_outputs(index, state, name, filter, seen, best);
    }
    free(seen);
    *position = best;
    return best != NONE;
}
