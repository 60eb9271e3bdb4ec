"""The official Python SDK as a client: `python_client.py URL MODE STEPS`.

MODE is auto, legacy or a revision. STEPS is a JSON list of [action, tool, arguments]; the actions are list, call,
progress (a call that hears of it), cancel (a call that is given up) and wait (for a line of the standard input). Prints the revision, what came of each step,
and at last the progress that was heard of, each as one line of JSON.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client

LIMIT_SECONDS = 1.5


async def answer_question(context, params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def take(client, heard, action, tool=None, arguments=None):
    if action == "list":
        return {"tools": [tool.name for tool in (await client.list_tools()).tools]}
    if action == "wait":
        return {"line": (await asyncio.to_thread(sys.stdin.readline)).strip()}

    async def on_progress(progress, total, message):
        heard.append([progress, total])

    hears = {"progress_callback": on_progress} if action == "progress" else {}
    result = await client.call_tool(tool, arguments, read_timeout_seconds=LIMIT_SECONDS, **hears)
    return {"text": result.content[0].text, "isError": bool(result.is_error)}


async def main(url, mode, steps):
    http = httpx2.AsyncClient(headers={"authorization": "Bearer client"}, timeout=httpx2.Timeout(60))
    transport = streamable_http_client(url, http_client=http)
    async with http, Client(transport, mode=mode, elicitation_callback=answer_question) as client:
        print(json.dumps({"version": client.protocol_version}), flush=True)
        heard = []
        for step in json.loads(steps):
            try:
                outcome = await take(client, heard, *step)
            except MCPError as error:
                outcome = {"error": {"code": error.error.code, "message": error.error.message}}
            print(json.dumps(outcome), flush=True)
        print(json.dumps({"progress": heard}), flush=True)


asyncio.run(main(*sys.argv[1:]))
