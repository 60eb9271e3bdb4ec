/*
 * An intrusive doubly linked ring. A node that is in no list points at itself, so that
 * list_remove() is safe at any time. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* `safe` holds the next node, so that `node` may be removed or freed in the body. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the two are names that are declared here. */
#define LIST_FOR_EACH_SAFE(node, safe, head)                                                       \
    for (struct list *node = (head)->next, *safe = node->next; node != (head);                     \
         node = safe, safe = node->next)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void list_init(struct list *list)
{
    list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->previous = head->previous;
    node->next = head;
    head->previous->next = node;
    head->previous = node;
}

static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}
