/*
 * The test cases of the gateway's rooms, one file each. room_test.c runs those of one room.
 */
#pragma once

#include <check.h>

TCase *accepted_pairs_tests(void);
TCase *arguments_tests(void);
TCase *authorization_tests(void);
TCase *broadcast_tests(void);
TCase *call_counters_tests(void);
TCase *call_memory_tests(void);
TCase *call_part_tests(void);
TCase *carry_tests(void);
TCase *conversation_tests(void);
TCase *cursor_tests(void);
TCase *definition_watch_tests(void);
TCase *headers_tests(void);
TCase *inbox_tests(void);
TCase *question_table_tests(void);
TCase *inquiry_tests(void);
TCase *invocation_tests(void);
TCase *list_cache_tests(void);
TCase *name_pattern_tests(void);
TCase *news_text_tests(void);
TCase *quota_tests(void);
TCase *rate_limit_tests(void);
TCase *recorded_name_tests(void);
TCase *relay_signature_tests(void);
TCase *relay_tests(void);
TCase *request_parts_tests(void);
TCase *rewritten_lists_tests(void);
TCase *http_tests(void);
TCase *server_budget_tests(void);
TCase *server_status_tests(void);
TCase *session_table_tests(void);
TCase *task_aliases_tests(void);
TCase *task_marks_tests(void);
TCase *rounds_tests(void);
TCase *tool_catalog_tests(void);
TCase *tool_names_tests(void);
TCase *tools_found_tests(void);
