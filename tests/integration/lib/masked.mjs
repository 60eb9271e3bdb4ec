// Whole messages for comparison: what is made anew for each call has a name in place of its value.

const MASKS = [
  [/tg_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'TASK'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID'],
  [/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, 'ULID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/\btg1\.[\w-]+/g, 'STATE'],
];

/** A copy of `value` in which ids of tasks, of events and of refusals, times and states are words. */
export const masked = (value) => JSON.parse(MASKS.reduce((text, [pattern, word]) => text.replace(pattern, word), JSON.stringify(value)));
