"""One call of a tool by a library with what it has by default: `library_client.py LIBRARY URL TOOL ARGUMENTS`.

Prints one line of JSON: the text that the library hands to its model, or the error that ends its run.
"""

import asyncio
import json
import sys


async def mcp(url, tool, arguments):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        return (await session.call_tool(tool, arguments)).content[0].text


async def langchain(url, tool, arguments):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    tools = await MultiServerMCPClient({"server": {"transport": "streamable_http", "url": url}}).get_tools()
    message = await next(one for one in tools if one.name == tool).ainvoke(
        {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
    )
    return message.content if isinstance(message.content, str) else message.content[0]["text"]


async def openai_agents(url, tool, arguments):
    from agents.mcp import MCPServerStreamableHttp

    async with MCPServerStreamableHttp({"url": url}) as server:
        await server.list_tools()
        return (await server.call_tool(tool, arguments)).content[0].text


async def pydantic_ai(url, tool, arguments):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.mcp import MCPToolset

    def model(messages, info):
        for part in messages[-1].parts:
            if part.part_kind in ("tool-return", "retry-prompt"):
                return ModelResponse(parts=[TextPart(part.content if isinstance(part.content, str) else json.dumps(part.content))])
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])

    return (await Agent(FunctionModel(model), toolsets=[MCPToolset(url)]).run("go")).output


async def main(library, url, tool, arguments):
    try:
        outcome = {"text": await globals()[library](url, tool, json.loads(arguments))}
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        outcome = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(outcome), flush=True)


asyncio.run(main(*sys.argv[1:]))
