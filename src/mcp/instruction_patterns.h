/*
 * Words in definitions that instruct a model rather than describe: INSTRUCTION(pattern, source). A
 * pattern has parts with "..." between them. The parts follow one another, each at most 80 bytes
 * behind the one before it. Text is compared as it folds: small letters, one blank for white space,
 * Latin letters for those that look the same, nothing for characters without width.
 *
 * Sources: OATF-nnn is a scenario of the public library of the Open Agent Threat Format
 * (github.com/oatf-spec/scenarios); INVARIANT is "MCP Security Notification: Tool Poisoning
 * Attacks" (Invariant Labs, April 2025); CYBERARK is "Poison everywhere: No output from your MCP
 * server is safe" (CyberArk Labs, May 2025); OWASP is LLM01:2025 (Prompt Injection).
 */
/* clang-format off */
#ifndef INSTRUCTION
#error "define INSTRUCTION before including this table"
#endif
INSTRUCTION("<important>", "INVARIANT; OATF-001, OATF-002, OATF-007, OATF-008-001")
INSTRUCTION("<system>", "OWASP")
INSTRUCTION("[system note]", "OATF-001-003")
INSTRUCTION("[system]", "OWASP")
INSTRUCTION("<!--", "OATF-001-001, OATF-002-001")
INSTRUCTION("do not mention...user", "INVARIANT; OATF-001")
INSTRUCTION("do not tell...user", "INVARIANT")
INSTRUCTION("don't tell the user", "INVARIANT")
INSTRUCTION("do not inform...user", "OATF-001-003")
INSTRUCTION("do not ask the user for", "OATF-008")
INSTRUCTION("without telling the user", "INVARIANT")
INSTRUCTION("ignore...previous instructions", "OWASP")
INSTRUCTION("ignore all previous", "OWASP")
INSTRUCTION("disregard...instructions", "OWASP")
INSTRUCTION("your system prompt", "OWASP")
INSTRUCTION("your...system instructions", "OATF-018, OATF-027")
INSTRUCTION(".ssh/id_", "INVARIANT; OATF-001")
INSTRUCTION(".aws/credentials", "OATF-008")
INSTRUCTION(".cursor/mcp.json", "INVARIANT")
INSTRUCTION("contents of the file...as...parameter", "INVARIANT")
INSTRUCTION("include...full contents...as", "OATF-001")
INSTRUCTION("include...full file contents", "OATF-001-002, OATF-008-001")
INSTRUCTION("include the file contents as this parameter", "OATF-008-002; CYBERARK")
INSTRUCTION("pass the complete file contents", "OATF-008; CYBERARK")
INSTRUCTION("sending the complete contents to", "OATF-007")
INSTRUCTION("decode from base64 and", "OATF-001-004")
INSTRUCTION("always bcc", "OATF-002-001")
INSTRUCTION("always...include...bcc", "OATF-002-002, OATF-002-003")
INSTRUCTION("always add...bcc", "OATF-002")
INSTRUCTION("forward the...token...authorization headers", "OATF-013")
INSTRUCTION("ask the user...credentials", "OATF-012; CYBERARK")
INSTRUCTION("ask the user...password", "OATF-012; CYBERARK")
INSTRUCTION("your aws access key", "OATF-012")
/* clang-format on */
