/*
 * The extensions of MCP that the gateway knows, and what becomes of their methods. Beside
 * method_table.h, which has the methods of the protocol; those of the tasks extension are there,
 * because 2025-11-25 has them as its own. Included many times; no guard on purpose. Sources:
 * SEP-2663 (tasks), SEP-1865 (ui: no methods, `ui://` is read by `resources/read`), SEP-2640
 * (skills), the two extensions of authorization (no methods).
 *
 * MCP_EXTENSION_ROW(symbol, name, clients): `clients` are those before a server of the legacy era
 *     that see the extension in what that server offers: ALL, or LEGACY alone. A modern server's
 *     is seen by both.
 * MCP_EXTENSION_METHOD_ROW(extension, method, eras, parameter, answer, member, cacheable,
 *     setting): `parameter` of params is judged, URI as that of `resources/read`. In the answer
 *     `member` is a LIST, of which each entry is judged in the same way and left out, or one
 *     ENTRY, which is refused. `cacheable`: the schema's type is a CacheableResult. `setting`: the
 *     member of the server's settings without which the server does not have the method, or "".
 */
/* clang-format off */
#ifdef MCP_EXTENSION_ROW
MCP_EXTENSION_ROW(TASKS, "io.modelcontextprotocol/tasks", ALL)
MCP_EXTENSION_ROW(UI, "io.modelcontextprotocol/ui", ALL)
MCP_EXTENSION_ROW(SKILLS, "io.modelcontextprotocol/skills", LEGACY)
MCP_EXTENSION_ROW(CLIENT_CREDENTIALS, "io.modelcontextprotocol/oauth-client-credentials", ALL)
MCP_EXTENSION_ROW(ENTERPRISE_AUTHORIZATION, "io.modelcontextprotocol/enterprise-managed-authorization", ALL)
#endif

#ifdef MCP_EXTENSION_METHOD_ROW
MCP_EXTENSION_METHOD_ROW(SKILLS, "skills/list", BOTH, NOTHING, LIST, "skills", true, "")
MCP_EXTENSION_METHOD_ROW(SKILLS, "skills/get", BOTH, URI, ENTRY, "skill", true, "")
MCP_EXTENSION_METHOD_ROW(SKILLS, "resources/directory/read", BOTH, URI, LIST, "resources", false, MCP_DIRECTORY_READ)
#endif
/* clang-format on */
